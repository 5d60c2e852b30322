import { expect, it } from 'vitest'
import { textIn } from './text'

it('reads a text, and takes no picture for one', () => {
  expect(textIn(new TextEncoder().encode('Grüße\n'))).toBe('Grüße\n')
  expect(textIn(new Uint8Array())).toBe('')
  expect(textIn(new Uint8Array([0x89, 0x50, 0x4e, 0x47]))).toBe(null)
  expect(textIn(new Uint8Array([0x61, 0x00, 0x62]))).toBe(null)
})
