// What the rows of a scope mean for one folder: granted there, granted from above, only somewhere below. Pure.
import { VERBS, type FolderRow, type Verb } from './draft'

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

/** What a refusal names as the least that would allow it: a folder to read, or a folder with its verbs. Nothing else is a row. */
function rowOf(grant: string): FolderRow | null {
  try {
    const said: unknown = JSON.parse(grant)
    if (typeof said === 'string') return { path: said, verbs: { ...NOTHING, read: true } }
    const { path, operations } = said as { path: string; operations: string[] }
    return typeof path === 'string' ? { path, verbs: Object.fromEntries(VERBS.map((verb) => [verb, operations.includes(verb)])) as Record<Verb, boolean> } : null
  } catch {
    return null
  }
}
/** The rows with that one, ready to be looked at before they are saved. */
export function withGrant(rows: FolderRow[], grant: string): FolderRow[] {
  const row = rowOf(grant)
  if (!row || rows.some((one) => one.path === row.path && VERBS.every((verb) => one.verbs[verb] || !row.verbs[verb]))) return rows
  return [...rows, row]
}
