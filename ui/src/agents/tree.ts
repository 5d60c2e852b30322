// What the rows of a scope mean for one folder: granted there, granted from above, only somewhere below. Pure.
import type { FolderRow, Verb } from './draft'

export type State = 'own' | 'above' | 'below' | 'none'

const isPlain = (path: string): boolean => !/[*?[\]{}]/.test(path)
const clean = (path: string): string => (path.length > 1 ? path.replace(/\/+$/, '') : path)
const isUnder = (path: string, folder: string): boolean => folder === '/' || path === folder || path.startsWith(`${folder}/`)

/** Patterns with signs are left to the guard: they show in its preview, not here. */
export function stateOf(rows: FolderRow[], folder: string, verb: Verb): State {
  const granted = rows.filter((row) => row.verbs[verb] && isPlain(row.path)).map((row) => clean(row.path.trim()))
  if (granted.includes(folder)) return 'own'
  if (granted.some((path) => path !== '' && isUnder(folder, path))) return 'above'
  return granted.some((path) => isUnder(path, folder)) ? 'below' : 'none'
}

const NOTHING = { read: false, write: false, create: false, delete: false }

/** The rows after one press. A row that grants nothing any more goes. */
export function toggled(rows: FolderRow[], folder: string, verb: Verb): FolderRow[] {
  const at = rows.findIndex((row) => clean(row.path.trim()) === folder)
  const row = rows[at] ?? { path: folder, verbs: { ...NOTHING } }
  const next = { path: row.path, verbs: { ...row.verbs, [verb]: !row.verbs[verb] } }
  const isEmpty = !Object.values(next.verbs).some(Boolean)
  if (at < 0) return [...rows, next]
  return rows.flatMap((one, index) => (index !== at ? [one] : isEmpty ? [] : [next]))
}
