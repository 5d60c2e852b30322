// What a month comes to if it goes on like this. Pure.
const DAY_MS = 86_400_000
/** Before that, one busy hour would look like a month of them. */
const LEAST_DAYS = 1

/** The sum at the end of the month, at the pace of its days so far; `null` while that says nothing. */
export function forecast(spent: number, now: Date, until: string): number | null {
  const end = new Date(until).getTime()
  // Midnight of the workspace is up to half a day from that of UTC, and a month before may be a shorter one.
  const last = new Date(end - DAY_MS / 2)
  const whole = new Date(Date.UTC(last.getUTCFullYear(), last.getUTCMonth() + 1, 0)).getUTCDate() * DAY_MS
  const gone = now.getTime() - (end - whole)
  if (spent <= 0 || gone < LEAST_DAYS * DAY_MS || gone > whole) return null
  return (spent * whole) / gone
}
