// Follows a stream of server-sent events, and comes back when it ends.
import { createParser } from 'eventsource-parser'
import { send } from './client'
import { Problem } from './problem'
import type { WireEvent } from './types'

export interface Follow {
  /** Where it is, asked anew each time: it says what is known already. */
  url: () => string
  onEvent: (event: WireEvent) => void
  signal: AbortSignal
  /** How long to wait before the n-th try; tests make it short. */
  wait?: (attempt: number) => number
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 10_000
const backOff = (attempt: number): number => Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS)

/** Whether asking again would change nothing. */
export const isRefusal = (error: unknown): boolean => error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429

/** Ends when the signal is given; fails when the server refuses. */
export async function follow(options: Follow): Promise<void> {
  let attempt = 0
  const seen = (event: WireEvent): void => {
    attempt = 0
    options.onEvent(event)
  }
  while (!options.signal.aborted) {
    try {
      await read(await send('get', options.url(), { signal: options.signal }, { accept: 'text/event-stream' }), seen)
    } catch (error) {
      if (options.signal.aborted) return
      if (isRefusal(error)) throw error
    }
    await pause((options.wait ?? backOff)(attempt++), options.signal)
  }
}

async function read(response: Response, seen: (event: WireEvent) => void): Promise<void> {
  if (!response.body) return
  const parser = createParser({
    onEvent(message) {
      const event: WireEvent = { event: message.event ?? 'message', data: JSON.parse(message.data) }
      const id = Number(message.id)
      if (message.id && Number.isInteger(id)) event.id = id
      seen(event)
    },
  })
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    parser.feed(decoder.decode(value, { stream: true }))
  }
}

/** Some time, or until the signal is given. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
