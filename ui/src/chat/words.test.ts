import { expect, it } from 'vitest'
import { folderOf, withWord, wordAt } from './words'

it('finds an agent, a file and a command at the caret', () => {
  expect(wordAt('ask @rev', 8)).toEqual({ sign: '@', typed: 'rev', from: 4 })
  expect(wordAt('read #projects/g', 16)).toEqual({ sign: '#', typed: 'projects/g', from: 5 })
  expect(wordAt('/ne', 3)).toEqual({ sign: '/', typed: 'ne', from: 0 })
})

it('leaves addresses, paths and finished words alone', () => {
  expect(wordAt('write to kim@example.org', 24)).toBeNull()
  expect(wordAt('read /todo.md', 13)).toBeNull()
  expect(wordAt('@guide do it', 12)).toBeNull()
})

it('replaces the word and keeps what stands around it', () => {
  const word = wordAt('read #to now', 8)
  expect(word && withWord('read #to now', word, '/todo.md')).toEqual({ text: 'read /todo.md now', caret: 13 })
})

it('knows the folder of a half-written path', () => {
  expect(folderOf('')).toEqual({ folder: '/', rest: '' })
  expect(folderOf('projects/ga')).toEqual({ folder: '/projects', rest: 'ga' })
})
