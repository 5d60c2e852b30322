import { expect, it } from 'vitest'
import { askedBy, grantWords, placeWords } from './rule-words'

it('says where a rule holds', () => {
  expect(placeWords({ directly_in: ['/a', '/b'] })).toBe('directly in /a, /b')
  expect(placeWords({ folders: ['/drafts'], hosts: ['example.org'] })).toBe('in /drafts and below at example.org')
  expect(placeWords({ exactly: 'ab12' })).toBe('with exactly these arguments')
  expect(placeWords({ hosts: ['a.example'], arguments: { method: 'POST' } })).toBe('at a.example with method like “POST”')
  expect(placeWords({ arguments: { key: 'draft.*' } })).toBe('with key like “draft.*”')
  expect(placeWords(null)).toBe('anywhere')
})

it('lets nothing hide in the rule that somebody is about to write', () => {
  expect(grantWords('write_file', { directly_in: ['/a\u202Egpj.exe'] }, 'always')).toBe('Allow write_file directly in /a\\u{202e}gpj.exe for this agent, from now on.')
  expect(placeWords({ hosts: ['exa\u200bmple.org'] })).toBe('at exa\\u{200b}mple.org')
})

it('says in a sentence why there is a question', () => {
  expect(['autonomy', 'flow', 'rule_01', 'P15'].map(askedBy)).toEqual([
    'Asked because the agent may not do this by itself',
    'Asked because of what the run has read',
    'Asked by a standing rule',
    'Asked by the rule P15',
  ])
})
