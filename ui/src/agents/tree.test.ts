import { expect, it } from 'vitest'
import type { FolderRow } from './draft'
import { stateOf, toggled, withGrant } from './tree'

const row = (path: string, ...verbs: ('read' | 'write')[]): FolderRow => ({
  path,
  verbs: { read: verbs.includes('read'), write: verbs.includes('write'), create: false, delete: false },
})

it('knows what is granted here, from above, and only below', () => {
  const rows = [row('/notes', 'read'), row('/notes/drafts', 'write')]
  expect(stateOf(rows, '/notes', 'read')).toBe('own')
  expect(stateOf(rows, '/notes/drafts', 'read')).toBe('above')
  expect(stateOf(rows, '/notes', 'write')).toBe('below')
  expect(stateOf(rows, '/', 'write')).toBe('below')
  expect(stateOf(rows, '/notesbook', 'read')).toBe('none')
})

it('does not guess what a pattern with signs reaches', () => {
  expect(stateOf([row('/notes/*.md', 'read')], '/notes', 'read')).toBe('none')
})

it('adds a row, changes it, and takes it away when nothing is left', () => {
  const one = toggled([], '/notes', 'read')
  expect(one).toEqual([row('/notes', 'read')])
  const two = toggled(one, '/notes', 'write')
  expect(two).toEqual([row('/notes', 'read', 'write')])
  expect(toggled(toggled(two, '/notes', 'read'), '/notes', 'write')).toEqual([])
})

it('takes what a refusal names for a row, once, and nothing else', () => {
  const rows = [row('/notes', 'read')]
  expect(withGrant(rows, '"/secret"')).toEqual([...rows, row('/secret', 'read')])
  const wider = withGrant(rows, '{"path":"/notes","operations":["read","write","list"]}')
  expect(wider).toEqual([...rows, row('/notes', 'read', 'write')])
  expect([withGrant(wider, '{"path":"/notes","operations":["write"]}'), withGrant(rows, '"/notes"')]).toEqual([wider, rows])
  for (const wrong of ['/secret', '{"path":1}', '{}', 'null', '7', '']) expect(withGrant(rows, wrong)).toBe(rows)
})
