// Searches of the record: those that everybody has, and those that somebody keeps in this browser.
import { ref } from 'vue'

export type View = [label: string, words: string]

export const COMMON: View[] = [
  ['Everything', ''],
  ['Refused', 'verdict:deny'],
  ['Asked', 'verdict:ask'],
  ['Failed', 'outcome:error'],
  ['The last day', 'since:24h'],
]

const KEPT = 'adjutant.audit-views'
const MOST = 20

function read(): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]')
    const isView = (one: unknown): one is View => Array.isArray(one) && one.length === 2 && one.every((part) => typeof part === 'string')
    return Array.isArray(found) ? found.filter(isView) : []
  } catch {
    return []
  }
}

export const kept = ref<View[]>(read())

function write(views: View[]): void {
  kept.value = views.slice(0, MOST)
  localStorage.setItem(KEPT, JSON.stringify(kept.value))
}
/** A view with the same name is replaced. */
export const keep = (label: string, words: string): void => write([...kept.value.filter(([name]) => name !== label), [label, words]])
export const forget = (label: string): void => write(kept.value.filter(([name]) => name !== label))
