import { expect, it } from 'vitest'
import { numbered, plainName, withFiles } from './attachments'

it('makes one plain piece of a path of any name', () => {
  expect(['plan.md', '../../etc/passwd', 'C:\\notes\\a.txt', '.env', 'a\u0000b\n.md', '  ', '...'].map(plainName)).toEqual(['plan.md', 'passwd', 'a.txt', 'env', 'a_b_.md', 'file', 'file'])
})

it('counts before the ending', () => {
  expect([numbered('a.md', 1), numbered('a.md', 2), numbered('README', 3)]).toEqual(['a.md', 'a-2.md', 'README-3'])
})

it('says where the files are, and nothing without any', () => {
  expect(withFiles('Look', [], 'Attached:')).toBe('Look')
  expect(withFiles('Look', ['/a/b.md'], 'Attached:')).toBe('Look\n\nAttached:\n- /a/b.md')
  expect(withFiles('', ['/a/b.md'], 'Attached:')).toBe('Attached:\n- /a/b.md')
})
