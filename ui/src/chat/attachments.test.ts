import { expect, it } from 'vitest'
import { numbered, plainName } from './attachments'

it('makes one plain piece of a path of any name', () => {
  expect(['plan.md', '../../etc/passwd', 'C:\\notes\\a.txt', '.env', 'a\u0000b\n.md', '  ', '...'].map(plainName)).toEqual(['plan.md', 'passwd', 'a.txt', 'env', 'a_b_.md', 'file', 'file'])
})

it('counts before the ending', () => {
  expect([numbered('a.md', 1), numbered('a.md', 2), numbered('README', 3)]).toEqual(['a.md', 'a-2.md', 'README-3'])
})
