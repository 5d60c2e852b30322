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
  max_tokens_per_request: number
  /** Dollars; empty is no limit. */
  budget: Record<Purse, number | ''>
  /** Dollars of a month at which somebody is told. */
  alerts: string
  /** From `soft_usd` in a month on it asks this model. */
  cheaper_model: string
  is_active: boolean
  owner: Agent['owner']
  /** Fields of a file that the form does not show. */
  rest: Record<string, unknown>
}
/** Fields that only a file says. */
const ONLY_IN_FILES = ['category', 'keywords', 'fallback_models', 'routing', 'temperature', 'permission_level', 'can_execute_code', 'categories', 'flow', 'tool_limits', 'content_filter', 'approval_expires_in', 'metadata'] as const
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
    max_tokens_per_request: 4000,
    budget: { run_usd: 0.5, day_usd: '', month_usd: 20, soft_usd: '' },
    alerts: '1, 5, 10, 50',
    cheaper_model: '',
    is_active: true,
    owner: 'user',
    rest: {},
  }
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
    hosts: (agent.allowed_hosts?.hosts ?? []).join(', '),
    host_policy: agent.allowed_hosts ?? {},
    requires_approval: [...agent.requires_approval],
    max_turns: agent.max_turns,
    max_tool_calls: agent.max_tool_calls,
    max_requests_per_hour: agent.max_requests_per_hour,
    max_tokens_per_request: agent.max_tokens_per_request,
    budget: Object.fromEntries(PURSES.map((purse) => [purse, agent.budget?.[purse] ?? ''])) as Draft['budget'],
    alerts: (agent.budget?.alert_at_usd ?? []).join(', '),
    cheaper_model: agent.budget?.cheaper_model ?? '',
    is_active: agent.is_active,
    owner: agent.owner,
    rest: {},
  }
}

/** The beginning of another agent: the same but for its name. */
export const copyOf = (agent: Agent): Draft => ({ ...draftOf(agent), name: t('{name} (copy)', { name: agent.name }), owner: 'user' })

const OF_BUDGET = ['budget', 'alerts', 'cheaper_model']
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
  const said = ONLY_IN_FILES.filter((name) => over || body[name] !== undefined).map((name) => [name, body[name] ?? null])
  const rest = { ...Object.fromEntries(said), ...(!plain && { model }), ...(!over && body.slug && { slug: body.slug }) }
  return { ...draft, rest, owner: over?.owner ?? 'user', is_active: body.is_active ?? true }
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

/** The fields of an agent. What no folder grants is not granted at all. */
export function fieldsOf(draft: Draft): Record<string, unknown> {
  const some = (verb: Verb): boolean => draft.folders.some((row) => row.verbs[verb])
  return {
    name: draft.name.trim(),
    emoji: draft.emoji.trim() || null,
    description: draft.description.trim(),
    model: draft.model.trim() || 'default',
    system_prompt: draft.system_prompt,
    autonomy: draft.autonomy,
    can_read: some('read'),
    can_write: some('write'),
    can_create: some('create'),
    can_delete: some('delete'),
    scope: scopeOf(draft),
    toolsets: draft.toolsets,
    tools: draft.tools,
    denied_tools: draft.denied_tools,
    can_access_integrations: draft.can_access_integrations,
    allowed_hosts: { ...draft.host_policy, hosts: words(draft.hosts) },
    requires_approval: draft.requires_approval,
    max_turns: draft.max_turns,
    max_tool_calls: draft.max_tool_calls,
    max_requests_per_hour: draft.max_requests_per_hour,
    max_tokens_per_request: draft.max_tokens_per_request,
    budget: {
      ...Object.fromEntries(PURSES.map((purse) => [purse, draft.budget[purse] === '' ? null : draft.budget[purse]])),
      alert_at_usd: words(draft.alerts).map(Number),
      cheaper_model: draft.cheaper_model.trim() || null,
    },
    is_active: draft.is_active,
    owner: draft.owner,
    ...draft.rest,
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

/** The fields that an edit changes. The level is left out when flags change, so that the server finds the lowest that fits. */
export function changeOf(agent: Agent, draft: Draft): Record<string, unknown> {
  const before = fieldsOf(draftOf(agent))
  const after = fieldsOf(draft)
  const changed = Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]))
  const change = Object.fromEntries(changed)
  if ('scope' in change) change['scope'] = { operations: null, file_types: null, ...(change['scope'] as object) }
  if (changed.some(([name]) => name.startsWith('can_'))) change['permission_level'] ??= null
  return change
}
