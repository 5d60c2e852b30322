import { expect, it } from 'vitest'
import { windowOf } from './window'

it('draws what can be seen and a little beside it', () => {
  expect(windowOf(5000, 28, 28_000, 560)).toEqual({ from: 988, to: 1032 })
})

it('ends at both ends of the list', () => {
  expect(windowOf(5, 28, 0, 560)).toEqual({ from: 0, to: 5 })
  expect(windowOf(100, 28, 2800, 560)).toEqual({ from: 88, to: 100 })
  expect(windowOf(0, 28, 0, 560)).toEqual({ from: 0, to: 0 })
})

it('stays inside when the list has become shorter', () => {
  const { from, to } = windowOf(3, 28, 9000, 560)
  expect([from <= to, to]).toEqual([true, 3])
})
