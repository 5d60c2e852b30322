import { expect, it } from 'vitest'
import { formatBytes, formatCost, formatRelative, formatSpan } from './format'
import { pseudo } from './pseudo'
import { t, tn } from './t'

it('fills in names and leaves what it does not know', () => {
  expect(t('{a} and {b}', { a: 1 })).toBe('1 and {b}')
})

it('says one as one and many as many', () => {
  expect([tn(1, '{n} file', '{n} files'), tn(1200, '{n} file', '{n} files')]).toEqual(['1 file', '1,200 files'])
})

it('marks every text of the made-up locale', () => {
  expect(pseudo('Save')).toBe('⟦Sávé⟧')
})

it('says spans and distances in their natural unit', () => {
  expect([formatSpan(12), formatSpan(1500), formatSpan(120_000)]).toEqual(['12 ms', '1.5 s', '2 min'])
  expect(formatRelative('2026-01-01T02:00:00Z', Date.parse('2026-01-01T00:00:00Z'))).toBe('in 2 hours')
})

it('says what something came to in digits that say something', () => {
  expect([0, 12.3456, 0.1815, 0.0315, 0.00421].map(formatCost)).toEqual(['$0.00', '$12.35', '$0.18', '$0.032', '$0.0042'])
})

it('says how much there is in a unit that fits', () => {
  expect([0, 323, 126_100, 2_500_000].map(formatBytes)).toEqual(['0 bytes', '323 bytes', '126.1 kB', '2.5 MB'])
})
