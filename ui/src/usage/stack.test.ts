import { expect, it } from 'vitest'
import { daysBetween, roundUp, spentDays, stackOf } from './stack'
import type { UsageRow } from './usage'

const row = (group: string, day: string, cost_usd: number): UsageRow => ({
  group, day, cost_usd, name: group.toUpperCase(), calls: 1, failed: 0, unpriced: 0, estimated: 0, tokens: { input: 1, output: 1, cached: 0, reasoning: 0 },
})

it('has every day, also over the end of a month', () => {
  expect(daysBetween('2026-02-27', '2026-03-02')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02'])
})

it('stacks by day with the dearest first', () => {
  const stack = stackOf([row('a', '2026-03-01', 1), row('b', '2026-03-01', 2), row('b', '2026-03-02', 0.5)], daysBetween('2026-03-01', '2026-03-02'), 'others')
  expect(stack.series.map((one) => [one.name, one.values])).toEqual([['B', [2, 0.5]], ['A', [1, 0]]])
  expect(stack.most).toBe(3)
})

it('says the days on which something was spent, the newest first', () => {
  const stack = stackOf([row('a', '2026-03-01', 1), row('b', '2026-03-01', 2), row('b', '2026-03-03', 0.5)], daysBetween('2026-02-28', '2026-03-04'), 'others')
  expect(spentDays(stack)).toEqual([
    { day: '2026-03-03', values: [0.5, 0], total: 0.5 },
    { day: '2026-03-01', values: [2, 1], total: 3 },
  ])
})

it('puts together what would not be told apart, without losing a cent', () => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name, n) => row(name, '2026-03-01', n + 1))
  const { series } = stackOf(rows, ['2026-03-01'], 'others')
  expect(series.at(-1)).toEqual({ group: '', name: 'others', values: [3], total: 3 })
  expect(series.reduce((sum, one) => sum + one.total, 0)).toBe(28)
})

it('ends its scale at a round number', () => {
  expect([0, 0.0031, 0.7, 3, 12].map(roundUp)).toEqual([1, 0.005, 1, 5, 20])
})
