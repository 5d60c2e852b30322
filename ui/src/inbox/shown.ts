// What a question shows before somebody asks for the rest of it. Pure.
import type { Approval } from '../api/types'
import { t } from '../i18n/t'
import { firstRows, parseDiff } from '../parts/diff'
import { beginningOf, visible } from '../parts/visible'

export interface ArgumentRow {
  name: string
  shown: string
  /** How many rows of it are left. */
  hidden: number
}

/** What a tool would get, one argument each, from its beginning or whole. */
export function argumentRows(value: unknown, isWhole: boolean): ArgumentRow[] {
  return namedOf(value).map(([name, given]) => {
    const text = visible(given)
    return { name: visible(name), ...(isWhole ? { shown: text, hidden: 0 } : beginningOf(text)) }
  })
}

function namedOf(value: unknown): [string, string][] {
  if (value === null || typeof value !== 'object') return value === undefined ? [] : [[t('Input'), String(value)]]
  return Object.entries(value).map(([name, given]) => [name, typeof given === 'string' ? given : JSON.stringify(given)])
}

/** How many rows of a question nobody has seen at first: of its difference, or of its arguments where it has none. */
export function unseenOf({ diff, arguments: given }: Pick<Approval, 'diff' | 'arguments'>): number {
  if (diff) return firstRows(parseDiff(diff)).hidden
  return argumentRows(given, false).reduce((sum, row) => sum + row.hidden, 0)
}

/** What a run holds for that asks about money. */
export const moneyTitle = ({ unpriced_model: model }: Pick<Approval, 'unpriced_model'>): string => (model ? t('The price of the model is not known') : t('The money is used up'))

/** Whether a call can be taken back, where its risk says so. What is low says nothing: a request that only reads has left the house. */
export function undoWords({ kind, risk }: Pick<Approval, 'kind' | 'risk'>): string {
  if (kind !== 'call' || !risk || risk === 'low') return ''
  return risk === 'medium' ? t('Can be undone') : t('Cannot be undone')
}
