// What was being written when this tab was left, kept in the tab until it is back: the server does not tell it twice.
import type { RunView, Unfinished } from './view'

/** Longer than this, only the end is shown anyway. */
const MOST = 200_000
const nameOf = (run: string): string => `adjutant.unfinished.${run}`

export function leaveUnfinished({ id, lastSeq, live, liveThinking, liveTurn }: RunView): void {
  if ((!live && !liveThinking) || live.length + liveThinking.length > MOST) return
  sessionStorage.setItem(nameOf(id), JSON.stringify({ lastSeq, live, liveThinking, liveTurn } satisfies Unfinished))
}
/** Gives it back once. */
export function takeUnfinished(run: string): Unfinished | null {
  const kept = sessionStorage.getItem(nameOf(run))
  sessionStorage.removeItem(nameOf(run))
  return kept === null ? null : (JSON.parse(kept) as Unfinished)
}
