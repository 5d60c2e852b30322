import { expect, it } from 'vitest'
import { callAt, countCalls } from './seen'

const events = ['interaction_started', 'retrying', 'usage', 'tool_call', 'usage', 'answer'].map((event, n) => ({ event, id: n + 1, data: {} }))

it('counts answers and failed attempts as calls of the model', () => {
  expect(countCalls(events)).toBe(3)
})

it('finds the call that an event belongs to, and the first before any', () => {
  expect([1, 2, 4, 6].map((seq) => callAt(events, seq))).toEqual([1, 1, 2, 3])
})
