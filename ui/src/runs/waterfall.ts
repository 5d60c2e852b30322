// Bars of a run on a line of time: its model turns, its calls, its waiting. Pure.
import type { WireEvent } from '../api/types'
import { t } from '../i18n/t'
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
const PAUSE = 'pause'
const doubtOf = (call: string): string => `doubt ${call}`
const text = (event: WireEvent, name: string): string => String(event.data[name] ?? '')

export function waterfallOf(events: WireEvent[]): Waterfall {
  const first = events[0]
  if (!first) return { bars: [], span: 0 }
  const start = at(first)
  const bars: Bar[] = []
  const open = new Map<string, Bar>()
  let modelFrom = 0
  const close = (key: string, moment: number, isBad: boolean): void => {
    const bar = open.get(key)
    if (bar) bars.push({ ...bar, to: moment, isBad })
    open.delete(key)
  }
  /** Nothing of its own says what was found; that its call goes on or ends does. */
  const settle = (call: string, moment: number): void => close(doubtOf(call), moment, false)
  for (const event of events) {
    const moment = at(event) - start
    const seq = event.id ?? 0
    switch (event.event) {
      case 'usage':
        bars.push({ kind: 'model', label: text(event, 'model'), detail: '', from: modelFrom, to: moment, seq, isBad: false })
        break
      case 'tool_call':
        // A call that was in doubt is made again.
        settle(text(event, 'id'), moment)
        open.set(text(event, 'id'), { kind: 'call', label: text(event, 'tool_name'), detail: targetOf(text(event, 'tool_input')), from: moment, to: moment, seq, isBad: false })
        break
      case 'tool_result': {
        const isBad = event.data['is_error'] === true
        settle(text(event, 'id'), moment)
        const began = open.get(text(event, 'id')) ?? { kind: 'call', label: text(event, 'tool_name'), detail: '', from: moment, seq }
        bars.push({ ...began, kind: 'call', to: moment, isBad })
        open.delete(text(event, 'id'))
        modelFrom = moment
        break
      }
      case 'paused':
        open.set(PAUSE, { kind: 'wait', label: event.data['approval_id'] ? t('more money') : t('paused'), detail: '', from: moment, to: moment, seq, isBad: false })
        break
      case 'resumed':
        close(PAUSE, moment, false)
        modelFrom = moment
        break
      case 'in_doubt':
        // Its call is open since it began; from here on it is a person that is waited for.
        close(text(event, 'call_id'), moment, false)
        open.set(doubtOf(text(event, 'call_id')), { kind: 'wait', label: text(event, 'tool_name'), detail: '', from: moment, to: moment, seq, isBad: false })
        break
      case 'approval_required':
        open.set(text(event, 'approval_id'), { kind: 'wait', label: text(event, 'tool_name'), detail: '', from: moment, to: moment, seq, isBad: false })
        break
      case 'approved':
      case 'rejected':
        close(text(event, 'approval_id'), moment, event.event === 'rejected')
        break
    }
  }
  const last = events.at(-1) ?? first
  const span = at(last) - start
  for (const bar of open.values()) bars.push({ ...bar, to: span })
  return { bars: bars.sort((a, b) => a.from - b.from || a.seq - b.seq), span }
}
