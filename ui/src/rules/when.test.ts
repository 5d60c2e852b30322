import { expect, it } from 'vitest'
import { namedOf, namedText, readNamed, whenOf } from './when'

it('asks of a call what was filled in, and nothing else', () => {
  expect(whenOf('', ' ', [])).toEqual({})
  expect(whenOf('/drafts, /notes/*.md', 'a.example', [{ name: ' key ', like: 'draft.*' }, { name: ' ', like: 'x' }])).toEqual({
    folders: ['/drafts', '/notes/*.md'],
    hosts: ['a.example'],
    arguments: { key: 'draft.*' },
  })
})

it('names the arguments of a call that can be read in a rule', () => {
  const given = { key: 'colour', times: 3, loud: true, body: 'x'.repeat(201), lines: 'a\nb', star: 'a*b', secret: '[REDACTED:token:40]', list: ['a'], none: null }
  expect(namedOf(given)).toEqual([{ name: 'key', like: 'colour' }, { name: 'times', like: '3' }, { name: 'loud', like: 'true' }])
})

it('keeps a value with its own signs on the way through an address', () => {
  const named = { name: 'query', like: 'a=b & c' }
  expect(readNamed(namedText(named))).toEqual(named)
  expect(readNamed('key')).toEqual({ name: 'key', like: '*' })
})
