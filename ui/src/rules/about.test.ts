import { expect, it } from 'vitest'
import type { Approval } from '../api/types'
import { ruleAbout } from './about'

const asked = (more: Partial<Approval>): Approval => ({ tool_name: 'write_file', agent_id: 'a', arguments: {}, ...more }) as Approval

it('begins a rule at the folder of a file, or at the host of an address', () => {
  expect(ruleAbout(asked({ arguments: { path: '/notes/plan.md' } }))).toEqual({ path: '/rules', query: { tool: 'write_file', agent: 'a', folder: '/notes' } })
  expect(ruleAbout(asked({ arguments: { path: '/todo.md' } }))).toMatchObject({ query: { folder: '/' } })
  expect(ruleAbout(asked({ tool_name: 'fetch_web_page', arguments: { url: 'https://docs.example.org/a' } }))).toEqual({ path: '/rules', query: { tool: 'fetch_web_page', agent: 'a', host: 'docs.example.org' } })
  expect(ruleAbout(asked({ arguments: { url: 'https://docs.example.org/a' }, place: { hosts: ['*.example.org'] } }))).toMatchObject({ query: { host: '*.example.org' } })
})

it('begins a rule about a call that acts nowhere at what it is called with', () => {
  expect(ruleAbout(asked({ tool_name: 'kv_set', arguments: { key: 'colour', value: 'blue' }, place: { exactly: 'ab' } }))).toEqual({
    path: '/rules',
    query: { tool: 'kv_set', agent: 'a', argument: ['key=colour', 'value=blue'] },
  })
  const post = { arguments: { method: 'POST', url: 'https://a.example/', body: 'x' }, place: { hosts: ['a.example'], arguments: { method: 'POST' } } }
  expect(ruleAbout(asked({ tool_name: 'http_request', ...post }))).toMatchObject({ query: { host: 'a.example', argument: ['method=POST'] } })
  expect(ruleAbout(asked({ arguments: {} }))).toEqual({ path: '/rules', query: { tool: 'write_file', agent: 'a' } })
})
