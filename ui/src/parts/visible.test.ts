import { expect, it } from 'vitest'
import { FIRST_ROWS, beginningOf, visible } from './visible'

it('writes out what cannot be seen or turns others around', () => {
  expect(visible('pay\u200bpal \u202Etxt.exe\u{E0041}\u00AD\uFEFF\u2028a\rb\u0007')).toBe('pay\\u{200b}pal \\u{202e}txt.exe\\u{e0041}\\u{ad}\\u{feff}\\u{2028}a\\u{d}b\\u{7}')
  expect(visible('half \uD800')).toBe('half \\u{d800}')
  expect(visible('Grüße 👍🏽\n\tzwei')).toBe('Grüße 👍🏽\n\tzwei')
})

it('shows the beginning of a long text and says how much is left', () => {
  expect(beginningOf('a\nb')).toEqual({ shown: 'a\nb', hidden: 0 })
  const lines = 'x\n'.repeat(FIRST_ROWS + 1) + 'end'
  expect(beginningOf(lines).hidden).toBe(2)
  expect(beginningOf(lines).shown.split('\n')).toHaveLength(FIRST_ROWS)
  const one = 'y'.repeat(64 * 1024)
  expect([beginningOf(one).shown.length, beginningOf(one).hidden]).toEqual([FIRST_ROWS * 100, 656 - FIRST_ROWS])
})
