// Dates, money and spans, as `Intl` writes them.
import { t, tn } from './t'

const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 4 })
const rough = [2, 3, 4].map((digits) => new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: digits }))
const number = new Intl.NumberFormat('en')
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const dayOfThisYear = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' })
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

const SPANS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

/** An amount that somebody sets or agrees to: to the last digit. */
export const formatMoney = (usd: number): string => money.format(usd)
/** What something came to, in two digits that say something. */
export function formatCost(usd: number): string {
  const small = Math.abs(usd)
  return (rough[small === 0 || small >= 0.1 ? 0 : small >= 0.01 ? 1 : 2] ?? money).format(usd)
}
export const formatNumber = (n: number): string => number.format(n)
export const formatCompact = (n: number): string => compact.format(n)
/** The year is said where it is another one. */
export function formatDate(iso: string): string {
  const date = new Date(iso)
  return (date.getFullYear() === new Date().getFullYear() ? dayOfThisYear : day).format(date)
}
/** An amount of data in its natural unit. */
export function formatBytes(n: number): string {
  if (n < 1000) return tn(n, '{n} byte', '{n} bytes')
  if (n < 1e6) return t('{n} kB', { n: tenths.format(n / 1e3) })
  return n < 1e9 ? t('{n} MB', { n: tenths.format(n / 1e6) }) : t('{n} GB', { n: tenths.format(n / 1e9) })
}
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
