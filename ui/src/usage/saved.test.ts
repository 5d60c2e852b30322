import { expect, it } from 'vitest'
import type { Model } from '../models/store'
import { savedBy } from './saved'
import type { UsageRow } from './usage'

const row = (group: string, cached: number): UsageRow => ({ group, tokens: { input: cached, output: 0, cached, reasoning: 0 } }) as UsageRow
const model = (id: string, input_usd: number | null, cached_usd: number | null): Model => ({ id, prices: { input_usd, output_usd: 0, cached_usd } }) as Model

it('counts what the cache saved at the price of each model, and nothing where a price is not known', () => {
  const models = [model('a/dear', 3, 0.3), model('a/cheap', 1, 0.5), model('a/unknown', 2, null)]
  expect(savedBy([row('a/dear', 1_000_000), row('a/cheap', 500_000), row('a/unknown', 200_000), row('a/gone', 100)], models)).toEqual({ tokens: 1_700_100, usd: 2.95 })
})
