import { expect, it } from 'vitest'
import type { Agent } from '../api/types'
import { changeOf, draftOf, draftOfFile, draftOfTemplate, fieldsOf, newDraft, toolChoice, withToolChoice } from './draft'

const agent = {
  name: 'Guide',
  emoji: null,
  description: '',
  model: 'default',
  system_prompt: '',
  autonomy: 'low',
  can_read: true,
  can_write: true,
  can_create: false,
  can_delete: false,
  toolsets: ['files'],
  requires_approval: [],
  scope: { notebooks: ['*'], folders: ['/drafts', { path: '/library', operations: ['read', 'delete'] }] },
  max_turns: 50,
  max_tool_calls: 200,
  max_requests_per_hour: 600,
  max_tokens_per_request: 4000,
  is_active: true,
  owner: 'user',
} as unknown as Agent

it('shows for each folder what flags and entry allow together', () => {
  expect(draftOf(agent).folders).toEqual([
    { path: '/drafts', verbs: { read: true, write: true, create: false, delete: false } },
    { path: '/library', verbs: { read: true, write: false, create: false, delete: false } },
  ])
})

it('changes nothing when nothing was edited', () => {
  expect(changeOf(agent, draftOf(agent))).toEqual({})
})

it('takes a flag away when no folder grants it any more, and lets the server find the level', () => {
  const draft = draftOf(agent)
  for (const row of draft.folders) row.verbs.write = false
  expect(changeOf(agent, draft)).toMatchObject({ can_write: false, permission_level: null })
})

it('begins with an agent that only reads', () => {
  expect(fieldsOf(newDraft())).toMatchObject({ can_read: true, can_write: false, can_create: false, can_delete: false, autonomy: 'low' })
})

it('fills what a template leaves out with the careful choice', () => {
  const draft = draftOfTemplate({ name: 'Writer', can_write: true, scope: { notebooks: ['*'], folders: ['/drafts'] } })
  expect(draft).toMatchObject({ name: 'Writer', autonomy: 'low', max_turns: 50, owner: 'user' })
  expect(draft.folders).toEqual([{ path: '/drafts', verbs: { read: true, write: true, create: false, delete: false } }])
})

it('gives hosts and keeps the rest of their policy', () => {
  const careful = { ...agent, can_access_integrations: true, allowed_hosts: { hosts: ['a.example'], ports: [8443] } } as unknown as Agent
  const draft = draftOf(careful)
  expect(draft.hosts).toBe('a.example')
  draft.hosts = 'a.example, *.b.example ,'
  expect(changeOf(careful, draft)).toEqual({ allowed_hosts: { hosts: ['a.example', '*.b.example'], ports: [8443] } })
})

it('keeps money as numbers, and nothing as no limit', () => {
  const draft = newDraft()
  const plain = { run_usd: 0.5, day_usd: null, month_usd: 20, soft_usd: null, alert_at_usd: [1, 5, 10, 50], cheaper_model: null }
  expect(fieldsOf(draft)['budget']).toEqual(plain)
  draft.budget.day_usd = 3
  draft.alerts = '2.5, 7'
  expect(fieldsOf(draft)['budget']).toEqual({ ...plain, day_usd: 3, alert_at_usd: [2.5, 7] })
})

it('says one thing of a tool: that it always asks, that it is never used, or nothing', () => {
  const asks = withToolChoice(draftOf(agent), 'write_file', 'ask')
  expect([toolChoice(asks, 'write_file'), changeOf(agent, asks)]).toEqual(['ask', { requires_approval: ['write_file'] }])
  const never = withToolChoice(asks, 'write_file', 'never')
  expect([toolChoice(never, 'write_file'), changeOf(agent, never)]).toEqual(['never', { denied_tools: ['write_file'] }])
  expect(changeOf(agent, withToolChoice(never, 'write_file', 'usual'))).toEqual({})
})

it('takes over a file with what the form does not show', () => {
  const draft = draftOfFile({ name: 'Reader', slug: 'reader', model: ['a/b', 'c/d'] as unknown as string, keywords: ['read'], scope: { folders: ['/notes'] } }, null)
  expect(fieldsOf(draft)).toMatchObject({ name: 'Reader', slug: 'reader', model: ['a/b', 'c/d'], keywords: ['read'], can_read: true, can_write: false })
})

it('takes back over an agent what its file no longer says', () => {
  const before = { ...agent, owner: 'workspace' as const }
  const change = changeOf(before, draftOfFile({ name: before.name, content_filter: [{ category: 'secrets' }] }, before))
  expect(change).toMatchObject({ content_filter: [{ category: 'secrets' }], keywords: null })
  expect(change).not.toHaveProperty('owner')
})
