// The one stream of a tab: what changes, and every event of the runs that it shows. A browser keeps six connections to a server
// for all of its tabs together, so only tabs that somebody looks at have one; where there is none, one of the others has. Whoever
// listens tells the rest when something waits for somebody. They catch up with everything else when they are looked at.
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

/** Shared by all tabs that are looked at; alone it is held by the one that listens while none is. Without locks, as on a page without TLS, none does. */
const LOCK = 'adjutant.stream'
const CHANNEL = 'adjutant.inbox'

export function tabOf(hear: (news: WireEvent) => void): Tab {
  const followed = new Set<Followed>()
  let leave = new AbortController()
  let isOpen = false
  let turning: ReturnType<typeof setTimeout> | undefined
  let isKeeper = false
  /** Gives the lock up, or the place in its queue. */
  let yieldLock = (): void => {}
  let others: BroadcastChannel | undefined
  const mayListen = (): boolean => !document.hidden || isKeeper

  const url = (): string => {
    const runs = [...followed].slice(-MOST).map((run) => `run:${run.id}@${run.after()}`)
    return addressOf('/events', {}, { topics: [TOPICS, ...runs].join(',') })
  }
  function take(event: WireEvent): void {
    if (!NEWS.includes(event.event)) followed.forEach((run) => run.id === event.data['run_id'] && run.onEvent(event))
    // Something of a run was lost on the way: it is taken up where it was left.
    else if (event.event === 'reread' && event.data['topics']) turn(LOST_MS)
    else {
      hear(event)
      if (event.event === 'inbox' || event.event === 'run') others?.postMessage(0)
    }
  }
  /** Waits for the lock, and holds it until it is given up. */
  function queue(mode: LockMode): void {
    const waiting = new AbortController()
    let leaveLock = (): void => {}
    yieldLock = () => {
      isKeeper = false
      waiting.abort()
      leaveLock()
    }
    const hold = async (): Promise<void> => {
      if (waiting.signal.aborted) return
      isKeeper = mode === 'exclusive'
      if (isKeeper) turnNow()
      await new Promise<void>((resolve) => (leaveLock = resolve))
    }
    void navigator.locks?.request(LOCK, { mode, signal: waiting.signal }, hold).catch(() => undefined)
  }
  function onLook(): void {
    yieldLock()
    queue(document.hidden ? 'exclusive' : 'shared')
    turnNow()
  }

  /** Opens the stream anew, with the runs that are followed now; leaves it if this tab may not listen. */
  function turnNow(): void {
    clearTimeout(turning)
    turning = undefined
    leave.abort()
    leave = new AbortController()
    if (isOpen && mayListen()) void listen(leave.signal)
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
      others = new BroadcastChannel(CHANNEL)
      others.onmessage = () => mayListen() || hear({ event: 'inbox', data: {} })
      document.addEventListener('visibilitychange', onLook)
      onLook()
    },
    close() {
      isOpen = false
      others?.close()
      document.removeEventListener('visibilitychange', onLook)
      yieldLock()
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
