import { expect, it } from 'vitest'
import { factsOf } from './facts'

it('says of a call what it was about, how it was judged and how long it took', () => {
  const said = factsOf({ event: 'tool_result', id: 9, data: { tool_name: 'read_file', tool_output: 'text', allowed: true, is_error: false, ms: 4, rule: 'S4', seq: 9 } })
  expect(said.title).toBe('A call ended')
  expect(said.facts).toEqual([['Tool', 'read_file'], ['Verdict', 'allowed'], ['Rule', 'S4'], ['Took', '4 ms']])
  expect(said.texts).toEqual([['Output', 'text']])
})

it('says of an answer of a model what it took and cost', () => {
  const said = factsOf({ event: 'usage', id: 3, data: { model: 'house/sonnet', usage: { input: 5200, output: 190, cached: 3000 }, ms: 1200, cost_usd: 0.0184 } })
  expect(said.facts).toEqual([['Model', 'house/sonnet'], ['Took', '1.2 s'], ['Tokens', '5.2K in, 190 out'], ['From the cache', '3,000 tokens'], ['Cost', '$0.0184']])
})

it('shows the input of a call once', () => {
  const plain = factsOf({ event: 'tool_call', id: 5, data: { tool_name: 'list_files', tool_input: '{}' } })
  expect(plain.facts).toEqual([['Tool', 'list_files']])
  const said = factsOf({ event: 'tool_call', id: 5, data: { tool_name: 'read_file', tool_input: '{"path":"/a.md"}' } })
  expect(said.facts).toContainEqual(['About', '/a.md'])
  expect(said.texts).toEqual([['Input', '{\n  "path": "/a.md"\n}']])
})

it('says of a call that ended what it was about, from where it began', () => {
  const begun = { event: 'tool_call', id: 5, data: { id: 'call_1', tool_name: 'read_file', tool_input: '{"path":"/a.md"}' } }
  const ended = { event: 'tool_result', id: 6, data: { id: 'call_1', tool_name: 'read_file', allowed: true, tool_output: '' } }
  expect(factsOf(ended, [begun, ended]).facts).toContainEqual(['About', '/a.md'])
})
