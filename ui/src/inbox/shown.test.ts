import { expect, it } from 'vitest'
import { FIRST_LINES } from '../parts/diff'
import { argumentRows, undoWords, unseenOf } from './shown'

it('shows arguments by their names, and long ones from their beginning until all is asked for', () => {
  const given = { url: 'https://example.org/', body: 'x\n'.repeat(99), retries: 3 }
  expect(argumentRows(given, false).map(({ name, hidden }) => [name, hidden])).toEqual([['url', 0], ['body', 60], ['retries', 0]])
  expect(argumentRows(given, true)[1]).toEqual({ name: 'body', shown: given.body, hidden: 0 })
  expect(argumentRows('no JSON', false)).toEqual([{ name: 'Input', shown: 'no JSON', hidden: 0 }])
  expect(argumentRows(undefined, false)).toEqual([])
})

it('counts what nobody has seen of a question, in a difference and in arguments, by lines and by length', () => {
  const diff = (lines: string): string => `--- /a\n+++ /a\n@@ -0,0 +1 @@\n${lines}`
  expect(unseenOf({ diff: diff('+x\n'.repeat(FIRST_LINES - 1)) })).toBe(0)
  expect(unseenOf({ diff: diff('+x\n'.repeat(FIRST_LINES)) })).toBe(1)
  expect(unseenOf({ diff: diff(`+${'x'.repeat(100_000)}\n`) })).toBe(1001 - FIRST_LINES)
  expect(unseenOf({ arguments: { body: 'short' } })).toBe(0)
  expect(unseenOf({ arguments: { body: 'y'.repeat(50_000) } })).toBe(460)
  expect(unseenOf({ diff: null, arguments: { body: { rows: Array.from({ length: 9_000 }, () => 1) } } })).toBeGreaterThan(0)
})

it('promises an undo only where there is one', () => {
  const words = (risk: string | null, kind: 'call' | 'in_doubt' = 'call'): string => undoWords({ kind, risk })
  expect([words('medium'), words('high'), words('low'), words(null), words('medium', 'in_doubt')]).toEqual(['Can be undone', 'Cannot be undone', '', '', ''])
})
