// What a model saw in one of its calls, as the server makes it again from the log.
import type { WireEvent } from '../api/types'

export interface SeenPart {
  kind: 'text' | 'image' | 'thinking' | 'call' | 'result'
  tool: string | null
  text: string
  bytes: number
}
export interface Seen {
  n: number
  model: string
  /** It is what was sent, to the last byte. */
  same: boolean
  dropped_bytes: number
  sizes: { system_bytes: number; tools_bytes: number; messages_bytes: number; estimated_tokens: number }
  system: string
  tools: string[]
  messages: { role: string; parts: SeenPart[] }[]
}

const isCall = ({ event }: WireEvent): boolean => event === 'usage' || event === 'retrying'
export const countCalls = (events: WireEvent[]): number => events.filter(isCall).length

/** The number of the last model call up to an event: an answer, or an attempt that failed. */
export function callAt(events: WireEvent[], seq: number): number {
  return Math.max(1, countCalls(events.filter((event) => (event.id ?? 0) <= seq)))
}
