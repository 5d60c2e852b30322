import { expect, it } from 'vitest'
import { safetyName, weakIn } from './safety'

it('tells what was not enforced in a run, and nothing else', () => {
  const off = { state: 'off', reason: 'nothing here' } as const
  const weak = { state: 'degraded', reason: 'a power cut may take the last commits' } as const
  expect(weakIn({ audit_chain: { state: 'enforced' }, durability: weak, price_known: off, sandbox: off })).toEqual([['durability', weak], ['price_known', off]])
  expect(weakIn({ sandbox: weak })).toEqual([['sandbox', weak]])
})

it('calls what it does not know by its own word', () => {
  expect(safetyName('price_known')).toBe('Known prices')
  expect(safetyName('luck')).toBe('luck')
})
