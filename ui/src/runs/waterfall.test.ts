import { expect, it } from 'vitest'
import type { WireEvent } from '../api/types'
import { waterfallOf } from './waterfall'

const at = (id: number, second: number, event: string, data: object = {}): WireEvent => ({
  event,
  id,
  data: { ...data, ts: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString() },
})

it('shows model turns, calls and waiting from when they began until they ended', () => {
  const { bars, span } = waterfallOf([
    at(1, 0, 'interaction_started'),
    at(2, 2, 'usage', { model: 'demo' }),
    at(3, 2, 'tool_call', { id: 'c1', tool_name: 'read_file', tool_input: '{"path":"/a"}' }),
    at(4, 3, 'tool_result', { id: 'c1', tool_name: 'read_file' }),
    at(5, 4, 'approval_required', { approval_id: 'a1', tool_name: 'write_file' }),
    at(6, 9, 'rejected', { approval_id: 'a1' }),
  ])
  expect(span).toBe(9000)
  expect(bars.map((bar) => [bar.kind, bar.from, bar.to, bar.isBad])).toEqual([
    ['model', 0, 2000, false],
    ['call', 2000, 3000, false],
    ['wait', 4000, 9000, true],
  ])
})

it('lets what is still open reach to the end', () => {
  const { bars } = waterfallOf([at(1, 0, 'interaction_started'), at(2, 1, 'tool_call', { id: 'c1', tool_name: 'x' }), at(3, 5, 'thinking')])
  expect(bars.map((bar) => [bar.from, bar.to])).toEqual([[1000, 5000]])
})

it('ends a doubt where its call goes on, and a pause where the run does', () => {
  const { bars } = waterfallOf([
    at(1, 0, 'interaction_started'),
    at(2, 1, 'tool_call', { id: 'c1', tool_name: 'ring_bell' }),
    at(3, 4, 'in_doubt', { approval_id: 'a1', call_id: 'c1', tool_name: 'ring_bell' }),
    at(4, 9, 'tool_call', { id: 'c1', tool_name: 'ring_bell' }),
    at(5, 10, 'tool_result', { id: 'c1', tool_name: 'ring_bell' }),
    at(6, 11, 'paused', { reason: 'budget', approval_id: 'a2' }),
    at(7, 15, 'resumed', { by: 'usr_1' }),
    at(8, 20, 'interaction_complete'),
  ])
  expect(bars.map((bar) => [bar.kind, bar.label, bar.from, bar.to])).toEqual([
    ['call', 'ring_bell', 1000, 4000],
    ['wait', 'ring_bell', 4000, 9000],
    ['call', 'ring_bell', 9000, 10000],
    ['wait', 'more money', 11000, 15000],
  ])
})
