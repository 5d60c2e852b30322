import { expect, it } from 'vitest'
import { FIRST_LINES, isLong, parseDiff } from './diff'

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

it('is long when not all of it is shown at first', () => {
  const lines = (count: number): string => `--- /a\n+++ /a\n@@ -0,0 +1,${count} @@\n${'+x\n'.repeat(count)}`
  // The line that says where it is counts, too.
  expect([isLong(null), isLong(lines(FIRST_LINES - 1)), isLong(lines(FIRST_LINES))]).toEqual([false, false, true])
})
