// The times that spending is looked at by: so many days until today, or a month. Pure; days are those of UTC, as the server counts.
import { t } from '../i18n/t'
import { daysBetween } from './stack'

const DAY_MS = 86_400_000
const DAYS = [7, 30, 90]
/** Months that are offered, with the present one. */
const MONTHS = 6
const monthName = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' })
const dayOf = (time: number | Date): string => new Date(time).toISOString().slice(0, 10)
const firstOf = (now: Date, monthsBack: number): Date => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - monthsBack, 1))

/** Each with its name: `30` is that many days, `2026-11` is a month. */
export function spansAt(now: Date): [value: string, label: string][] {
  const days = DAYS.map((n): [string, string] => [String(n), t('The last {n} days', { n })])
  const months = Array.from({ length: MONTHS }, (_, back) => firstOf(now, back)).map((first): [string, string] => [dayOf(first).slice(0, 7), t(monthName.format(first))])
  return [...days, ...months]
}

/** Its days up to today, and the moment it ended where it has. */
export function daysOf(span: string, now: Date): { days: string[]; to: string | null } {
  const today = dayOf(now)
  if (!span.includes('-')) return { days: daysBetween(dayOf(now.getTime() - (Number(span) - 1) * DAY_MS), today), to: null }
  const first = new Date(`${span}-01T00:00:00Z`)
  const next = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1))
  const hasEnded = next <= now
  return { days: daysBetween(dayOf(first), hasEnded ? dayOf(next.getTime() - DAY_MS) : today), to: hasEnded ? next.toISOString() : null }
}
