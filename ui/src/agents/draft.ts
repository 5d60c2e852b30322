// An agent while it is edited: what the form holds, and how it becomes fields again. Pure.
import type { Agent, AgentScope, FolderEntry, HostPolicy } from '../api/types'
import { t } from '../i18n/t'

export const VERBS = ['read', 'write', 'create', 'delete'] as const
export type Verb = (typeof VERBS)[number]

export interface FolderRow {
  path: string
  verbs: Record<Verb, boolean>
}

export interface Draft {
  name: string
  emoji: string
  description: string
  model: string
  system_prompt: string
  autonomy: Agent['autonomy']
  folders: FolderRow[]
  notebooks: string
  file_types: string
  toolsets: string[]
  tools: string[]
  denied_tools: string[]
  can_access_integrations: boolean
  hosts: string
  host_policy: HostPolicy
  requires_approval: string[]
  max_turns: number
  max_tool_calls: number
  max_requests_per_hour: number
  max_concurrent_runs: number
  max_tokens_per_request: number
  /** Dollars; empty is no limit. */
  budget: Record<Purse, number | ''>
  /** Dollars of a month at which somebody is told. */
  alerts: string
  /** From `soft_usd` in a month on it asks this model. */
  cheaper_model: string
  is_active: boolean
  owner: Agent['owner']
  /** Who sees and runs it beside its owner, and who else decides what it asks. */
  shared_with: string[]
  approvers: string[]
  /** Whether models without a known price are asked although there is a limit. */
  allow_unpriced: boolean
  /** What the form does not show, as the agent, the template or the file says it that this begins with. */
  rest: Record<string, unknown>
  /** The verbs that were granted then: a level that came with them fits them and no others. */
  granted: Verb[]
}
/** The fields of an agent that the form does not show. */
export const HIDDEN = ['category', 'keywords', 'fallback_models', 'routing', 'temperature', 'model_options', 'requires', 'provider_key_id', 'output_schema', 'permission_level', 'can_execute_code', 'categories', 'flow', 'tool_limits', 'content_filter', 'approval_expires_in', 'metadata', 'memory', 'data_access'] as const
export const PURSES = ['run_usd', 'day_usd', 'month_usd', 'soft_usd'] as const
export type Purse = (typeof PURSES)[number]

export function newDraft(): Draft {
  return {
    name: '',
    emoji: '',
    description: '',
    model: 'default',
    system_prompt: '',
    autonomy: 'low',
    folders: [{ path: '/', verbs: { read: true, write: false, create: false, delete: false } }],
    notebooks: '*',
    file_types: '',
    toolsets: ['files'],
    tools: [],
    denied_tools: [],
    can_access_integrations: false,
    hosts: '',
    host_policy: {},
    requires_approval: [],
    max_turns: 50,
    max_tool_calls: 200,
    max_requests_per_hour: 600,
    max_concurrent_runs: 4,
    max_tokens_per_request: 4000,
    budget: { run_usd: 0.5, day_usd: '', month_usd: 20, soft_usd: '' },
    alerts: '1, 5, 10, 50',
    cheaper_model: '',
    is_active: true,
    owner: 'user',
    shared_with: [],
    approvers: [],
    allow_unpriced: false,
    rest: {},
    granted: ['read'],
  }
}

/** The fields that the form does not show. */
function hiddenOf(agent: Partial<Agent>): Record<string, unknown> {
  const said: Record<string, unknown> = { ...agent }
  return Object.fromEntries(HIDDEN.filter((name) => (said[name] ?? null) !== null).map((name) => [name, said[name]]))
}

/** What some folder grants. What none does is not granted at all. */
const grantedBy = (folders: FolderRow[]): Verb[] => VERBS.filter((verb) => folders.some((row) => row.verbs[verb]))

/** The hosts of an agent as a policy: a list is one that says nothing else. */
const policyOf = (agent: Agent): HostPolicy => (Array.isArray(agent.allowed_hosts) ? { hosts: agent.allowed_hosts } : (agent.allowed_hosts ?? {}))

/** The hosts as they are written: a list, unless there is more to say. */
function hostsOf(draft: Draft): string[] | HostPolicy {
  const hosts = words(draft.hosts)
  const more = Object.entries(draft.host_policy).some(([name, value]) => name !== 'hosts' && value !== null)
  return more ? { ...draft.host_policy, hosts } : hosts
}

/** What the flags of an agent allow at all. */
function flagsOf(agent: Agent): Record<Verb, boolean> {
  return { read: agent.can_read, write: agent.can_write, create: agent.can_create, delete: agent.can_delete }
}

export function draftOf(agent: Agent): Draft {
  const flags = flagsOf(agent)
  const general = agent.scope.operations
  const allowed = (verb: Verb, entry?: FolderEntry): boolean =>
    flags[verb] && (general?.includes(verb) ?? true) && (entry ? entry.operations.includes(verb) : true)
  const rows = (agent.scope.folders ?? []).map((entry): FolderRow => {
    const narrow = typeof entry === 'string' ? undefined : entry
    const verbs = Object.fromEntries(VERBS.map((verb) => [verb, allowed(verb, narrow)])) as Record<Verb, boolean>
    return { path: typeof entry === 'string' ? entry : entry.path, verbs }
  })
  return {
    name: agent.name,
    emoji: agent.emoji ?? '',
    description: agent.description,
    model: agent.model,
    system_prompt: agent.system_prompt,
    autonomy: agent.autonomy,
    folders: rows,
    notebooks: (agent.scope.notebooks ?? []).join(', '),
    file_types: (agent.scope.file_types ?? []).join(', '),
    toolsets: [...agent.toolsets],
    tools: [...(agent.tools ?? [])],
    denied_tools: [...(agent.denied_tools ?? [])],
    can_access_integrations: agent.can_access_integrations,
    hosts: (policyOf(agent).hosts ?? []).join(', '),
    host_policy: policyOf(agent),
    requires_approval: [...agent.requires_approval],
    max_turns: agent.max_turns,
    max_tool_calls: agent.max_tool_calls,
    max_requests_per_hour: agent.max_requests_per_hour,
    max_concurrent_runs: agent.max_concurrent_runs,
    max_tokens_per_request: agent.max_tokens_per_request,
    budget: Object.fromEntries(PURSES.map((purse) => [purse, agent.budget?.[purse] ?? ''])) as Draft['budget'],
    alerts: (agent.budget?.alert_at_usd ?? []).join(', '),
    cheaper_model: agent.budget?.cheaper_model ?? '',
    is_active: agent.is_active,
    owner: agent.owner,
    shared_with: [...(agent.shared_with ?? [])],
    approvers: [...(agent.approvers ?? [])],
    allow_unpriced: agent.budget?.allow_unpriced ?? false,
    rest: hiddenOf(agent),
    granted: grantedBy(rows),
  }
}

/** The beginning of another agent: the same, held by the same limits, but for its name. Nobody else has to do with it yet. */
export const copyOf = (agent: Agent): Draft => ({ ...draftOf(agent), name: t('{name} (copy)', { name: agent.name }), owner: 'user', shared_with: [], approvers: [] })

const OF_BUDGET = ['budget', 'alerts', 'cheaper_model', 'allow_unpriced']
/** A template says only what is special about it. What it leaves out is the careful choice. */
export function draftOfTemplate(template: Partial<Agent>): Draft {
  const careful = { can_read: true, can_write: false, can_create: false, can_delete: false, can_access_integrations: false, scope: {}, toolsets: ['files'], requires_approval: [], description: '', system_prompt: '' }
  const plain = newDraft()
  const draft = draftOf({ ...careful, ...template } as Agent)
  const given = Object.entries(draft).filter(([name, value]) => value !== undefined && (!OF_BUDGET.includes(name) || template.budget !== undefined))
  return { ...plain, ...Object.fromEntries(given), owner: 'user', is_active: true }
}

/** What a file says, as the server read it. Over an agent that is there, what it does not say is as usual again. */
export function draftOfFile(body: Partial<Agent> & Record<string, unknown>, over: Agent | null): Draft {
  const model = body['model'] as unknown
  const plain = typeof model === 'string' || model === undefined
  const draft = draftOfTemplate({ ...body, model: plain ? (model as string | undefined) : 'default' } as Partial<Agent>)
  const rest = { ...draft.rest, ...(!plain && { model }), ...(!over && body.slug && { slug: body.slug }) }
  const { shared_with, approvers } = { ...over, ...body }
  return { ...draft, rest, owner: over?.owner ?? 'user', shared_with: [...(shared_with ?? [])], approvers: [...(approvers ?? [])], is_active: body.is_active ?? true }
}

const words = (text: string): string[] => text.split(',').map((word) => word.trim()).filter(Boolean)

function scopeOf(draft: Draft): AgentScope {
  const folders = draft.folders.filter((row) => row.path.trim() !== '')
  const types = words(draft.file_types)
  return {
    notebooks: words(draft.notebooks),
    folders: folders.map((row) => ({ path: row.path.trim(), operations: VERBS.filter((verb) => row.verbs[verb]) })),
    ...(types.length > 0 && { file_types: types }),
  }
}

/** The fields of an agent. Where other verbs are granted than at first, the level is left to the server: it finds the lowest that fits. */
export function fieldsOf(draft: Draft): Record<string, unknown> {
  const granted = grantedBy(draft.folders)
  const { permission_level, model: several, ...rest } = draft.rest
  const model = draft.model.trim() || 'default'
  return {
    name: draft.name.trim(),
    emoji: draft.emoji.trim() || null,
    description: draft.description.trim(),
    // A file may name several, for which the form has no words; one that is typed over them counts.
    model: model === 'default' ? (several ?? model) : model,
    system_prompt: draft.system_prompt,
    autonomy: draft.autonomy,
    can_read: granted.includes('read'),
    can_write: granted.includes('write'),
    can_create: granted.includes('create'),
    can_delete: granted.includes('delete'),
    scope: scopeOf(draft),
    toolsets: draft.toolsets,
    tools: draft.tools,
    denied_tools: draft.denied_tools,
    can_access_integrations: draft.can_access_integrations,
    allowed_hosts: hostsOf(draft),
    requires_approval: draft.requires_approval,
    max_turns: draft.max_turns,
    max_tool_calls: draft.max_tool_calls,
    max_requests_per_hour: draft.max_requests_per_hour,
    max_concurrent_runs: draft.max_concurrent_runs,
    max_tokens_per_request: draft.max_tokens_per_request,
    budget: {
      ...Object.fromEntries(PURSES.map((purse) => [purse, draft.budget[purse] === '' ? null : draft.budget[purse]])),
      alert_at_usd: words(draft.alerts).map(Number),
      cheaper_model: draft.cheaper_model.trim() || null,
      allow_unpriced: draft.allow_unpriced,
    },
    is_active: draft.is_active,
    owner: draft.owner,
    // In one order, so that whoever is taken out and in again is no change.
    shared_with: draft.shared_with.toSorted(),
    approvers: draft.approvers.toSorted(),
    ...rest,
    ...(permission_level !== undefined && granted.join() === draft.granted.join() && { permission_level }),
  }
}

/** What is said of one tool: nothing special, that it always asks, or that it is never used. */
export type ToolChoice = 'usual' | 'ask' | 'never'
export function toolChoice(draft: Draft, tool: string): ToolChoice {
  if (draft.denied_tools.includes(tool)) return 'never'
  return draft.requires_approval.includes(tool) ? 'ask' : 'usual'
}
export function withToolChoice(draft: Draft, tool: string, choice: ToolChoice): Draft {
  const without = (list: string[]): string[] => list.filter((name) => name !== tool)
  return {
    ...draft,
    denied_tools: choice === 'never' ? [...without(draft.denied_tools), tool] : without(draft.denied_tools),
    requires_approval: choice === 'ask' ? [...without(draft.requires_approval), tool] : without(draft.requires_approval),
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
/** The change that makes one value of another: what an object no longer has is null. */
function replacing(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after ?? null
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return Object.fromEntries(names.map((name) => [name, replacing(before[name], after[name])]))
}
/** What a change makes of a value, as the server does it: what is null is gone, and objects go into each other. */
export function merged(before: unknown, change: unknown): unknown {
  if (!isObject(change)) return change
  const after: Record<string, unknown> = isObject(before) ? { ...before } : {}
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete after[name]
    else after[name] = merged(after[name], value)
  }
  return after
}

/** The fields that an edit changes. What was said before and is said no longer is as usual again. */
export function changeOf(agent: Agent, draft: Draft): Record<string, unknown> {
  const saved: Record<string, unknown> = { ...agent }
  const before = fieldsOf(draftOf(agent))
  const after = fieldsOf(draft)
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = names.filter((name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]))
  return Object.fromEntries(changed.map((name) => [name, replacing(saved[name], after[name])]))
}
