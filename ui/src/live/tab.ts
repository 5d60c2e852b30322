// The one stream of a tab: what changes, and every event of the runs that it shows. A browser keeps six connections to a server
// for all of its tabs together, so a tab that nobody looks at lets go of its own, and catches up when somebody does.
import { addressOf, get } from '../api/client'
import { Problem } from '../api/problem'
import { follow, isRefusal, pause } from '../api/stream'
import type { WireEvent } from '../api/types'

/** A run that is shown while it goes on. */
export interface Followed {
  id: string
  /** The last of its events that is known. */
  after: () => number
  onEvent: (event: WireEvent) => void
  /** It cannot be read any more. */
  onRefused: (problem: unknown) => void
}

export interface Tab {
  open: () => void
  close: () => void
  /** Adds a run; the answer takes it out again. */
  follow: (run: Followed) => () => void
}

const TOPICS = 'runs,approvals,chats,settings'
const NEWS: readonly string[] = ['run', 'inbox', 'chat', 'changed', 'reread']
/** Runs that the server puts into one stream. */
const MOST = 16
const AGAIN_MS = 3_000
/** Before a run is taken up again; what cannot be told would otherwise be asked for without end. */
const LOST_MS = 500

export function tabOf(hear: (news: WireEvent) => void): Tab {
  const followed = new Set<Followed>()
  let leave = new AbortController()
  let isOpen = false
  let turning: ReturnType<typeof setTimeout> | undefined

  const url = (): string => {
    const runs = [...followed].slice(-MOST).map((run) => `run:${run.id}@${run.after()}`)
    return addressOf('/events', {}, { topics: [TOPICS, ...runs].join(',') })
  }
  function take(event: WireEvent): void {
    if (!NEWS.includes(event.event)) followed.forEach((run) => run.id === event.data['run_id'] && run.onEvent(event))
    // Something of a run was lost on the way: it is taken up where it was left.
    else if (event.event === 'reread' && event.data['topics']) turn(LOST_MS)
    else hear(event)
  }

  /** Opens the stream anew, with the runs that are followed now; leaves it if nobody looks. */
  function turnNow(): void {
    clearTimeout(turning)
    turning = undefined
    leave.abort()
    leave = new AbortController()
    if (isOpen && !document.hidden) void listen(leave.signal)
  }
  /** What is asked for together is one turn. */
  function turn(afterMs = 0): void {
    turning ??= setTimeout(turnNow, afterMs)
  }
  async function listen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await follow({ url, onEvent: take, signal }).catch(() => sift(signal))
      await pause(AGAIN_MS, signal)
    }
  }
  /** One run that cannot be read is enough for a refusal of all. Each is asked for by itself, so that the others go on. */
  async function sift(signal: AbortSignal): Promise<void> {
    for (const run of [...followed]) {
      try {
        await get('/runs/{run}/events', { path: { run: run.id }, query: { after: run.after(), limit: 1 }, signal })
      } catch (problem) {
        // Whoever has to sign in again goes on with all of them.
        const isNobody = problem instanceof Problem && problem.status === 401
        if (isNobody || !isRefusal(problem) || !followed.delete(run)) continue
        run.onRefused(problem)
        turn()
      }
    }
  }

  return {
    open() {
      isOpen = true
      document.addEventListener('visibilitychange', turnNow)
      turnNow()
    },
    close() {
      isOpen = false
      document.removeEventListener('visibilitychange', turnNow)
      turnNow()
    },
    follow(run) {
      followed.add(run)
      turn()
      // The stream may go on telling of it until it is opened anew; nobody listens.
      return () => void followed.delete(run)
    },
  }
}
