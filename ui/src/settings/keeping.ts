// How long what was said in runs is kept, and whether another choice is a shorter one. Pure.
export const FOREVER = 'forever'
/** The units of a span, as the server reads them. */
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

function secondsOf(span: string): number {
  const [, number, unit] = /^(\d+)([smhd])$/.exec(span) ?? []
  return number && unit ? Number(number) * (SECONDS[unit] ?? 0) : Infinity
}
/** Whether runs that are still kept would be erased. */
export const isShorter = (after: string, before: string): boolean => secondsOf(after) < secondsOf(before)
