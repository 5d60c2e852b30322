// Bars of a run on a line of time: its model turns, its calls, its waiting. Pure.
import type { WireEvent } from '../api/types'
import { targetOf } from '../run/summary'

export interface Bar {
  kind: 'model' | 'call' | 'wait'
  label: string
  detail: string
  from: number
  to: number
  seq: number
  isBad: boolean
}

export interface Waterfall {
  bars: Bar[]
  /** From the first event to the last, in milliseconds. */
  span: number
}

const at = (event: WireEvent): number => Date.parse(String(event.data['ts']))
const text = (event: WireEvent, name: string): string => String(event.data[name] ?? '')

export function waterfallOf(events: WireEvent[]): Waterfall {
  const first = events[0]
  if (!first) return { bars: [], span: 0 }
  const start = at(first)
  const bars: Bar[] = []
  const open = new Map<string, Bar>()
  let modelFrom = 0
  for (const event of events) {
    const moment = at(event) - start
    const seq = event.id ?? 0
    switch (event.event) {
      case 'usage':
        bars.push({ kind: 'model', label: text(event, 'model'), detail: '', from: modelFrom, to: moment, seq, isBad: false })
        break
      case 'tool_call':
        open.set(text(event, 'id'), { kind: 'call', label: text(event, 'tool_name'), detail: targetOf(text(event, 'tool_input')), from: moment, to: moment, seq, isBad: false })
        break
      case 'tool_result': {
        const isBad = event.data['is_error'] === true
        const began = open.get(text(event, 'id')) ?? { kind: 'call', label: text(event, 'tool_name'), detail: '', from: moment, seq }
        bars.push({ ...began, kind: 'call', to: moment, isBad })
        open.delete(text(event, 'id'))
        modelFrom = moment
        break
      }
      case 'approval_required':
      case 'in_doubt':
        open.set(text(event, 'approval_id'), { kind: 'wait', label: text(event, 'tool_name'), detail: '', from: moment, to: moment, seq, isBad: false })
        break
      case 'approved':
      case 'rejected': {
        const asked = open.get(text(event, 'approval_id'))
        if (asked) bars.push({ ...asked, to: moment, isBad: event.event === 'rejected' })
        open.delete(text(event, 'approval_id'))
        break
      }
    }
  }
  const last = events.at(-1) ?? first
  const span = at(last) - start
  for (const bar of open.values()) bars.push({ ...bar, to: span })
  return { bars: bars.sort((a, b) => a.from - b.from || a.seq - b.seq), span }
}
