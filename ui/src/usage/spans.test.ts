import { expect, it } from 'vitest'
import { daysOf, spansAt } from './spans'

const now = new Date('2026-03-10T12:00:00Z')

it('offers days until today, and months by their names', () => {
  expect(spansAt(now).slice(2, 6)).toEqual([['90', 'The last 90 days'], ['2026-03', 'March 2026'], ['2026-02', 'February 2026'], ['2026-01', 'January 2026']])
})

it('ends a month that is over, and no other', () => {
  const [week, march, february] = ['7', '2026-03', '2026-02'].map((span) => daysOf(span, now))
  expect([week?.days.at(0), week?.days.at(-1), week?.to]).toEqual(['2026-03-04', '2026-03-10', null])
  expect([march?.days.length, march?.to]).toEqual([10, null])
  expect([february?.days.length, february?.days.at(-1), february?.to]).toEqual([28, '2026-02-28', '2026-03-01T00:00:00.000Z'])
})
