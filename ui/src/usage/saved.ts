// What reading from the cache of a provider saved, as far as both prices are known. Pure.
import type { Model } from '../models/store'
import type { UsageRow } from './usage'

const MILLION = 1_000_000

export interface Saved {
  tokens: number
  usd: number
}
/** `rows` are sums by model. */
export function savedBy(rows: UsageRow[], models: Model[]): Saved {
  const prices = new Map(models.map((model) => [model.id, model.prices]))
  const saved: Saved = { tokens: 0, usd: 0 }
  for (const { group, tokens } of rows) {
    const { input_usd: whole, cached_usd: cached } = prices.get(group) ?? {}
    saved.tokens += tokens.cached
    if (typeof whole === 'number' && typeof cached === 'number') saved.usd += (tokens.cached * (whole - cached)) / MILLION
  }
  return saved
}
