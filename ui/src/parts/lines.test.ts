import { expect, it } from 'vitest'
import { parseDiff } from './diff'
import { lineDiff } from './lines'

const signs = (before: string, after: string): string => parseDiff(lineDiff(before, after)).lines.slice(1).map((line) => ({ same: ' ', added: '+', removed: '-', hunk: '@' })[line.kind] + line.text).join('|')

it('keeps what is common and shows what came and went', () => {
  expect(signs('a\nb\nc\nd\n', 'a\nc\nx\nd\n')).toBe(' a|-b| c|+x| d')
})

it('shows a file that came from nothing, and one that went', () => {
  expect(signs('', 'a\nb\n')).toBe('+a|+b')
  expect(signs('a\n', '')).toBe('-a')
})
