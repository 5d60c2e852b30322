// Dates, money and spans, as `Intl` writes them.
import { t, tn } from './t'

const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 4 })
const number = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

const SPANS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

export const formatMoney = (usd: number): string => money.format(usd)
export const formatNumber = (n: number): string => number.format(n)
export const formatCompact = (n: number): string => compact.format(n)
export const formatDate = (iso: string): string => day.format(new Date(iso))
export const formatClock = (iso: string): string => clock.format(new Date(iso))

/** How long ago, or how long until. */
export function formatRelative(iso: string, now: number): string {
  const distance = new Date(iso).getTime() - now
  for (const [unit, span] of SPANS) {
    if (Math.abs(distance) >= span) return relative.format(Math.round(distance / span), unit)
  }
  return distance > 0 ? t('in a moment') : t('just now')
}

/** A span of time in its natural unit. */
export function formatSpan(ms: number): string {
  if (ms < 1000) return t('{n} ms', { n: Math.round(ms) })
  if (ms < 60_000) return t('{n} s', { n: (ms / 1000).toFixed(ms < 10_000 ? 1 : 0) })
  if (ms < 3_600_000) return t('{n} min', { n: Math.round(ms / 60_000) })
  return tn(Math.round(ms / 3_600_000), '{n} hour', '{n} hours')
}
