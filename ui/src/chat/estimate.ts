// What an order is likely to cost, in words. Pure.
import { formatCost, formatMoney } from '../i18n/format'
import { t } from '../i18n/t'

export interface Estimate {
  runs: number
  p50_microusd: number | null
  p90_microusd: number | null
  most_microusd: number | null
}
const MICRO = 1_000_000

/** None for what costs nothing: that needs no forecast. */
export function estimateWords({ runs, p50_microusd: half, p90_microusd: most, most_microusd: limit }: Estimate): { short: string; long: string } | null {
  const held = limit ? t('At {limit} it holds and asks.', { limit: formatMoney(limit / MICRO) }) : ''
  // Nothing is known of what it usually costs, but where it holds is.
  if (runs === 0) return limit ? { short: t('at most {limit}', { limit: formatMoney(limit / MICRO) }), long: held } : null
  if (!half && !most) return null
  const usual = t('Half of its runs cost no more than {half}, nine of ten no more than {most}.', { half: formatCost((half ?? 0) / MICRO), most: formatCost((most ?? 0) / MICRO) })
  return { short: t('about {cost}', { cost: formatCost((half ?? 0) / MICRO) }), long: `${usual} ${held}`.trim() }
}
