// Follows a stream of server-sent events until it ends, coming back with the number of the last event it has.
import { createParser } from 'eventsource-parser'
import { send } from './client'
import { Problem } from './problem'
import type { WireEvent } from './types'

export interface Follow {
  url: string
  /** The last event that is already known. */
  after?: number
  onEvent: (event: WireEvent) => void
  onLost?: () => void
  signal: AbortSignal
  /** How long to wait before the n-th try; tests make it short. */
  wait?: (attempt: number) => number
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 10_000
const backOff = (attempt: number): number => Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS)

/** Ends when the server says that nothing follows, when it refuses, or when the signal is given. */
export async function follow(options: Follow): Promise<void> {
  let last = options.after ?? 0
  let attempt = 0
  const seen = (event: WireEvent): void => {
    if (event.id !== undefined) {
      if (event.id <= last) return
      last = event.id
    }
    attempt = 0
    options.onEvent(event)
  }
  while (!options.signal.aborted) {
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' }
      if (last > 0) headers['last-event-id'] = String(last)
      const response = await send('get', options.url, { signal: options.signal }, headers)
      if (response.status === 204) return
      await read(response, seen)
    } catch (error) {
      if (options.signal.aborted) return
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) throw error
      options.onLost?.()
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

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
