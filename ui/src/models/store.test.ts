import { expect, it } from 'vitest'
import { byProvider, type Model } from './store'

const model = (id: string): Model => ({ id, kind: 'chat', abilities: [], context_window: null, max_output: null, prices: { input_usd: null, output_usd: null }, grade: 5, first_piece_ms: null, resting_seconds: null })

it('puts models under their providers, both by name', () => {
  const groups = byProvider([model('b/two'), model('a/x'), model('b/one/with/slashes')])
  expect(groups.map((group) => [group.provider, group.models.map((one) => one.id)])).toEqual([
    ['a', ['a/x']],
    ['b', ['b/one/with/slashes', 'b/two']],
  ])
})
