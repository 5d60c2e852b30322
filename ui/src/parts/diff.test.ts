import { expect, it } from 'vitest'
import { FIRST_LINES, firstRows, parseDiff } from './diff'

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

it('shows the first rows and says how many are left', () => {
  const lines = (count: number): string => `--- /a\n+++ /a\n@@ -0,0 +1,${count} @@\n${'+x\n'.repeat(count)}`
  // The line that says where it is counts, too.
  expect(firstRows(parseDiff(lines(FIRST_LINES - 1)))).toMatchObject({ hidden: 0 })
  const cut = firstRows(parseDiff(lines(FIRST_LINES + 1)))
  expect([cut.shown.length, cut.hidden]).toEqual([FIRST_LINES, 2])
  expect(firstRows(parseDiff(lines(FIRST_LINES + 1)), Infinity).hidden).toBe(0)
})

it('takes one very long line for the many rows it is', () => {
  const diff = parseDiff(`--- /a\n+++ /a\n@@ -1 +1 @@\n-short\n+${'x'.repeat(100_000)} and then harm\n`)
  const cut = firstRows(diff)
  expect(cut.shown.map((line) => line.text.length)).toEqual([11, 5, (FIRST_LINES - 2) * 100])
  expect(cut.hidden).toBe(1 + 1 + 1001 - FIRST_LINES)
  expect(firstRows(diff, Infinity).shown.at(-1)?.text).toContain('harm')
})

it('lets nothing hide in a line, neither from the eye nor from the count', () => {
  const diff = parseDiff(`--- /a\n+++ /a\n@@ -1 +1 @@\n+a\u202Eb${'\u200b'.repeat(1_000)}\n`)
  expect(firstRows(diff).shown[1]?.text).toMatch(/^a\\u\{202e\}b\\u\{200b\}/)
  expect(firstRows(diff).hidden).toBeGreaterThan(0)
})
