// @vitest-environment jsdom
import { describe, expect, it } from 'vitest'
import { isSingleKey } from './keys'

describe('a shortcut of one key', () => {
  const press = (more: KeyboardEventInit = {}): KeyboardEvent => new KeyboardEvent('keydown', { key: 'a', ...more })

  it('is a press with nothing else held', () => {
    expect(isSingleKey(press())).toBe(true)
    expect(isSingleKey(press({ ctrlKey: true }))).toBe(false)
  })

  it('is no key that is held down: it would answer what comes next before anybody has read it', () => {
    expect(isSingleKey(press({ repeat: true }))).toBe(false)
  })
})
