import { expect, it } from 'vitest'
import { forecast } from './forecast'

it('carries the pace of the days so far to the end of the month', () => {
  expect(forecast(10, new Date('2026-11-11T00:00:00Z'), '2026-12-01T00:00:00Z')).toBe(30)
  // A workspace whose midnight is not that of UTC.
  expect(forecast(10, new Date('2026-11-10T23:00:00Z'), '2026-11-30T23:00:00Z')).toBe(30)
})

it('says nothing of a month that has hardly begun, that is over, or in which nothing was spent', () => {
  expect(forecast(10, new Date('2026-11-01T09:00:00Z'), '2026-12-01T00:00:00Z')).toBeNull()
  expect(forecast(10, new Date('2026-12-02T00:00:00Z'), '2026-12-01T00:00:00Z')).toBeNull()
  expect(forecast(0, new Date('2026-11-11T00:00:00Z'), '2026-12-01T00:00:00Z')).toBeNull()
})
