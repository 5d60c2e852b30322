// The lines of a tree of files, from what is known of its folders. Pure.
import type { FileEntry } from './files'

export interface FolderState {
  entries: FileEntry[]
  /** Where the rest begins, if there is more. */
  cursor: string | null
  isLoaded: boolean
  problem: unknown
}
interface Place {
  key: string
  depth: number
}
export type TreeRow = Place & ({ kind: 'entry'; entry: FileEntry; isOpen: boolean } | { kind: 'more' | 'empty' | 'wrong'; folder: string })

/** What is in a folder: other folders first. */
export const foldersFirst = (all: FileEntry[]): FileEntry[] => [...all.filter((one) => one.kind === 'folder'), ...all.filter((one) => one.kind === 'file')]

export function rowsOf(folder: string, folders: ReadonlyMap<string, FolderState>, opened: ReadonlySet<string>, depth = 0): TreeRow[] {
  const state = folders.get(folder)
  if (!state) return []
  const rows: TreeRow[] = []
  for (const entry of state.entries) {
    const isOpen = opened.has(entry.path)
    rows.push({ kind: 'entry', key: entry.path, entry, isOpen, depth })
    if (isOpen) for (const row of rowsOf(entry.path, folders, opened, depth + 1)) rows.push(row)
  }
  const last = (kind: 'more' | 'empty' | 'wrong'): TreeRow => ({ kind, key: `${kind} ${folder}`, folder, depth })
  if (state.problem) rows.push(last('wrong'))
  else if (state.cursor) rows.push(last('more'))
  else if (state.isLoaded && state.entries.length === 0) rows.push(last('empty'))
  return rows
}

/** The folders on the way to a file, the outermost first. */
export function wayTo(path: string): string[] {
  const pieces = path.split('/').slice(1, -1)
  return pieces.map((_, n) => `/${pieces.slice(0, n + 1).join('/')}`)
}
