import { expect, it } from 'vitest'
import type { Agent } from '../api/types'
import openapi from '../../../docs/openapi.json'
import { changeOf, copyOf, draftOf, draftOfFile, draftOfTemplate, fieldsOf, HIDDEN, merged, newDraft, toolChoice, withToolChoice } from './draft'

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
  max_concurrent_runs: 4,
  max_tokens_per_request: 4000,
  is_active: true,
  owner: 'user',
  permission_level: 'write',
  categories: ['file_read', 'file_write'],
  flow: 'deny',
  tool_limits: { read_file: 5 },
  keywords: ['tidy'],
  approval_expires_in: '1h',
  budget: { run_usd: 0.5, day_usd: null, month_usd: 20, allow_unpriced: true },
} as unknown as Agent

it('knows every field of an agent, whether its form shows it or not', () => {
  const { AgentBody, AgentBudget } = openapi.components.schemas
  // A short name is chosen once, a workspace is where one is, a preset is written out before it comes here, and only older
  // clients name a provider apart from its model.
  const known = [...Object.keys(fieldsOf(newDraft())), ...HIDDEN, 'slug', 'workspace_id', 'preset', 'provider']
  expect(known.sort()).toEqual(Object.keys(AgentBody.properties).sort())
  expect(Object.keys(fieldsOf(newDraft())['budget'] as object).sort()).toEqual(Object.keys(AgentBudget.properties).sort())
})

it('holds a copy to the limits of what it was made from', () => {
  const copy = fieldsOf(copyOf({ ...agent, slug: 'guide' }))
  expect(copy).toMatchObject({ name: 'Guide (copy)', flow: 'deny', permission_level: 'write', categories: ['file_read', 'file_write'], tool_limits: { read_file: 5 }, approval_expires_in: '1h', budget: { allow_unpriced: true } })
  expect(copy).not.toHaveProperty('slug')
})

it('shares a copy with nobody, and leaves the people of an agent to a file that does not name any', () => {
  const shared = { ...agent, shared_with: ['user_b', 'user_a'], approvers: ['user_c'] }
  expect(fieldsOf(copyOf(shared))).toMatchObject({ shared_with: [], approvers: [] })
  expect(fieldsOf(draftOfFile({ name: 'Guide' }, shared))).toMatchObject({ shared_with: ['user_a', 'user_b'], approvers: ['user_c'] })
  expect(fieldsOf(draftOfFile({ name: 'Guide', approvers: [] }, shared))).toMatchObject({ approvers: [] })
  expect(changeOf(shared, { ...draftOf(shared), shared_with: ['user_a', 'user_b'] })).toEqual({})
  expect(changeOf(shared, { ...draftOf(shared), shared_with: ['user_a'] })).toEqual({ shared_with: ['user_a'] })
})

it('leaves the level of a copy to the server once other things are granted', () => {
  const draft = copyOf(agent)
  for (const row of draft.folders) row.verbs.delete = true
  expect(fieldsOf(draft)).not.toHaveProperty('permission_level')
})

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
  const listed = { ...agent, allowed_hosts: ['a.example'] } as unknown as Agent
  expect(changeOf(listed, draftOf(listed))).toEqual({})
  expect(changeOf(listed, { ...draftOf(listed), hosts: 'b.example' })).toEqual({ allowed_hosts: ['b.example'] })
})

it('keeps money as numbers, and nothing as no limit', () => {
  const draft = newDraft()
  const plain = { run_usd: 0.5, day_usd: null, month_usd: 20, soft_usd: null, alert_at_usd: [1, 5, 10, 50], cheaper_model: null, allow_unpriced: false }
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
  expect(fieldsOf({ ...draft, model: 'e/f' })).toMatchObject({ model: 'e/f' })
})

it('keeps what finds a template by its words', () => {
  expect(fieldsOf(draftOfTemplate({ name: 'Writer', category: 'writing', keywords: ['draft'] } as Partial<Agent>))).toMatchObject({ category: 'writing', keywords: ['draft'] })
})

it('takes back over an agent what its file no longer says', () => {
  const before = { ...agent, owner: 'workspace' as const }
  const change = changeOf(before, draftOfFile({ name: before.name, content_filter: [{ category: 'secrets' }], tool_limits: { list_files: 9 } }, before))
  expect(change).toMatchObject({ content_filter: [{ category: 'secrets' }], keywords: null, flow: null, tool_limits: { list_files: 9, read_file: null }, approval_expires_in: null })
  expect(change).not.toHaveProperty('owner')
  expect(merged(before, change)).toMatchObject({ name: 'Guide', tool_limits: { list_files: 9 }, budget: { allow_unpriced: false } })
  expect(merged(before, change)).not.toHaveProperty('approval_expires_in')
})

it('takes the level from a file that names it', () => {
  const file = { name: 'Guide', can_write: true, can_delete: true, permission_level: 'write', scope: agent.scope, toolsets: ['files'] }
  const after = merged(agent, changeOf(agent, draftOfFile(file, agent)))
  expect(after).toMatchObject({ can_delete: true, permission_level: 'write' })
})
