// Spending by day, stacked by what it was for. Pure.
import type { UsageRow } from './usage'

export interface Series {
  group: string
  name: string
  /** One sum for each day. */
  values: number[]
  total: number
}
export interface Stack {
  days: string[]
  series: Series[]
  /** The highest day. */
  most: number
}
const DAY_MS = 86_400_000
/** More would not be told apart; the rest is one series. */
const MOST_SERIES = 5
const REST = ''

/** Every day from the first to the last, also those on which nothing was spent. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = []
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= Date.parse(`${to}T00:00:00Z`); at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10))
  return days
}

export function stackOf(rows: UsageRow[], days: string[], restName: string): Stack {
  const place = new Map(days.map((day, n) => [day, n]))
  const all = new Map<string, Series>()
  for (const row of rows) {
    const at = place.get(row.day ?? row.group)
    if (at === undefined) continue
    const series = all.get(row.group) ?? { group: row.group, name: row.name ?? row.group, values: days.map(() => 0), total: 0 }
    series.values[at] = (series.values[at] ?? 0) + row.cost_usd
    series.total += row.cost_usd
    all.set(row.group, series)
  }
  const sorted = [...all.values()].sort((a, b) => b.total - a.total)
  const [first, rest] = [sorted.slice(0, MOST_SERIES), sorted.slice(MOST_SERIES)]
  const series = rest.length > 0 ? [...first, sumOf(rest, restName)] : first
  const most = Math.max(0, ...days.map((_, n) => series.reduce((sum, one) => sum + (one.values[n] ?? 0), 0)))
  return { days, series, most }
}

export interface Day {
  day: string
  /** One sum for each series, in their order. */
  values: number[]
  total: number
}
/** The days on which something was spent, the newest first: what a table says of them. */
export function spentDays({ days, series }: Stack): Day[] {
  const all = days.map((day, n): Day => {
    const values = series.map((one) => one.values[n] ?? 0)
    return { day, values, total: values.reduce((sum, value) => sum + value, 0) }
  })
  return all.filter(({ total }) => total > 0).reverse()
}

function sumOf(all: Series[], name: string): Series {
  const values = (all[0]?.values ?? []).map((_, n) => all.reduce((sum, one) => sum + (one.values[n] ?? 0), 0))
  return { group: REST, name, values, total: all.reduce((sum, one) => sum + one.total, 0) }
}

/** A round number at or above, for the top of the scale. */
export function roundUp(value: number): number {
  if (value <= 0) return 1
  const size = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= value) ?? value
}
