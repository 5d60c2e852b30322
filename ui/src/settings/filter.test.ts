import { expect, it } from 'vitest'
import { cleaned, newEntry } from './filter'

it('sends either a category or a pattern, with its points in their order', () => {
  const given = [
    { category: 'personal', pattern: 'left over', points: ['output', 'prompt'], action: 'block' },
    { category: '', pattern: '(?i)merger', points: ['tool'], action: 'ask' },
  ]
  expect(cleaned(given)).toEqual([
    { category: 'personal', points: ['prompt', 'output'], action: 'block' },
    { pattern: '(?i)merger', points: ['tool'], action: 'ask' },
  ])
})

it('begins with something that can be saved', () => {
  expect(cleaned([newEntry()])).toEqual([newEntry()])
})
