import { expect, it } from 'vitest'
import { estimateWords } from './estimate'

const words = (runs: number, p50: number | null, p90: number | null, most: number | null) => estimateWords({ runs, p50_microusd: p50, p90_microusd: p90, most_microusd: most })

it('says what runs usually cost, and where one holds', () => {
  expect(words(3, 20_000, 50_000, 500_000)).toEqual({ short: 'about $0.02', long: 'Half of its runs cost no more than $0.02, nine of ten no more than $0.05. At $0.50 it holds and asks.' })
  expect(words(3, 20_000, 50_000, null)?.long).toBe('Half of its runs cost no more than $0.02, nine of ten no more than $0.05.')
})

it('says the most that the first run can cost, where something holds it', () => {
  expect(words(0, null, null, 500_000)).toEqual({ short: 'at most $0.50', long: 'At $0.50 it holds and asks.' })
  expect(words(0, null, null, null)).toBeNull()
})

it('says nothing of what costs nothing', () => {
  expect([words(4, 0, 0, 500_000), words(4, null, null, 500_000)]).toEqual([null, null])
})
