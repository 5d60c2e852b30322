import { expect, it } from 'vitest'
import { parseDiff } from './diff'

it('numbers the lines of both sides and counts what changed', () => {
  const diff = parseDiff('--- /a\n+++ /a\n@@ -3,3 +3,2 @@\n same\n-old\n-older\n+new\n')
  expect([diff.added, diff.removed]).toEqual([1, 2])
  expect(diff.lines.slice(1).map((line) => [line.kind, line.before, line.after])).toEqual([
    ['same', 3, 3],
    ['removed', 4, null],
    ['removed', 5, null],
    ['added', null, 4],
  ])
})

it('takes a removed line that looks like a file name for what it is', () => {
  expect(parseDiff('--- /a\n+++ /a\n@@ -1 +1 @@\n--- x\n+++ y\n').lines.slice(1).map((line) => line.text)).toEqual(['-- x', '++ y'])
})
