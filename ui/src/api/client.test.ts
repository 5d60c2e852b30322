import { expect, it } from 'vitest'
import { addressOf } from './client'

it('keeps the slashes of a path and nothing else', () => {
  expect(addressOf('/notebooks/{notebook}/files/{path}', { notebook: 'a/b', path: 'notes/my list.md' })).toBe('/api/v1/notebooks/a%2Fb/files/notes/my%20list.md')
})

it('leaves out what was not said', () => {
  expect(addressOf('/runs', {}, { status: undefined, limit: 5 })).toBe('/api/v1/runs?limit=5')
})
