import { expect, it } from 'vitest'
import type { FileEntry } from './files'
import { foldersFirst, rowsOf, wayTo, type FolderState } from './rows'

const entry = (path: string, kind: FileEntry['kind'] = 'file'): FileEntry => ({ path, name: path, kind, size: 0, modified_at: '' })
const state = (entries: FileEntry[], more: Partial<FolderState> = {}): FolderState => ({ entries, cursor: null, isLoaded: true, problem: null, ...more })
const FOLDERS = new Map([
  ['/', state([entry('/notes', 'folder'), entry('/old', 'folder'), entry('/a.md')])],
  ['/notes', state([entry('/notes/b.md')], { cursor: 'next' })],
  ['/old', state([])],
])
const lines = (opened: string[]): string[] => rowsOf('/', FOLDERS, new Set(opened)).map((row) => `${' '.repeat(row.depth)}${row.kind === 'entry' ? row.entry.path : row.kind}`)

it('shows the inside of a folder only when it is open, below it and further in', () => {
  expect(lines([])).toEqual(['/notes', '/old', '/a.md'])
  expect(lines(['/notes', '/old'])).toEqual(['/notes', ' /notes/b.md', ' more', '/old', ' empty', '/a.md'])
})

it('offers to try again where a folder could not be read', () => {
  expect(rowsOf('/', new Map([['/', state([], { problem: new Error('no') })]]), new Set()).map((row) => row.kind)).toEqual(['wrong'])
})

it('puts folders first and knows the way to a file', () => {
  expect(foldersFirst([entry('/b'), entry('/a', 'folder')]).map((one) => one.path)).toEqual(['/a', '/b'])
  expect([wayTo('/a.md'), wayTo('/x/y/a.md')]).toEqual([[], ['/x', '/x/y']])
})
