import { expect, it } from 'vitest'
import { FOREVER, isShorter } from './keeping'

it('is shorter where fewer seconds pass, whatever they are counted in', () => {
  expect(isShorter('30d', '90d')).toBe(true)
  expect(isShorter('36h', '2d')).toBe(true)
  expect(isShorter('48h', '2d')).toBe(false)
  expect(isShorter('365d', '90d')).toBe(false)
})

it('is always shorter than for ever, which is shorter than nothing', () => {
  expect(isShorter('365d', FOREVER)).toBe(true)
  expect(isShorter(FOREVER, '30d')).toBe(false)
  expect(isShorter(FOREVER, FOREVER)).toBe(false)
})
