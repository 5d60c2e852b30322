// What the server answers. Fields the page does not use are left out; unknown ones are ignored.
import type { Safety } from '../run/safety'

export interface Page<T> {
  data: T[]
  next_cursor: string | null
  has_more: boolean
}

export type Role = 'read' | 'write' | 'admin'

export interface Me {
  user_id: string
  name: string
  is_owner: boolean
  scopes: string[]
  workspaces: { id: string; slug: string; name: string; role: Role }[]
  /** The model of the runs they start whose agent leaves it to the default. */
  default_model?: string
}

export type RunStatus =
  | 'QUEUED'
  | 'RUNNING'
  | 'WAITING_APPROVAL'
  | 'IN_DOUBT'
  | 'PAUSED'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'

export interface TokenUsage {
  input: number
  output: number
  cached: number
  reasoning: number
}

export interface Run {
  id: string
  chat_id: string
  agent_id: string
  agent: string
  status: RunStatus
  title: string
  result: string | null
  error: string | null
  created_at: string
  updated_at: string
  finished_at: string | null
  steps: number
  calls: number
  token_usage: TokenUsage
  cost_usd: number
  superseded_by: string | null
  head_seq: number
  /** Who gave the order, and where it is; lists leave both out. */
  initiated_by?: { kind: string; id: string }
  workspace_id?: string
  /** What the guard made of it, and what kept it safe; lists leave it out. */
  enforcement?: { safety: Safety }
}

export interface Chat {
  id: string
  workspace_id: string
  agent_id: string
  notebook_id: string | null
  owner_id: string
  title: string
  is_shared: boolean
  last_run_id: string | null
  forked_from: string | null
  created_at: string
  /** Messages that wait until the chat is free, the first first. */
  waiting?: Waiting[]
}

/** A file of the chat's notebook that comes with a message. */
export interface AttachedFile {
  path: string
}

export interface Waiting {
  /** The run that it will be. */
  id: string
  user_message: string
  /** What came with it, where something did. */
  attachments?: AttachedFile[]
  autonomy?: string
  model?: string
  max_cost_usd?: number
  output_schema?: Record<string, unknown>
  created_at: string
  /** Why it could not be started when the chat was free. */
  error?: string | null
}

export type Scope = 'once' | 'run' | 'chat' | 'always'

export interface Approval {
  id: string
  kind: 'call' | 'in_doubt' | 'budget'
  workspace_id: string
  run_id: string
  chat_id: string
  agent_id: string
  call_id: string | null
  status: 'pending' | 'approved' | 'rejected' | 'expired' | 'superseded'
  tool_name: string
  summary: string | null
  risk: string | null
  reason: string | null
  rule: string | null
  created_at: string
  expires_at: string | null
  decided_at: string | null
  decided_by: string | null
  decision: string | null
  /** Whether the decision is theirs who look; the log, which tells everybody the same, does not say. */
  may_decide?: boolean
  /** What was run in place of the arguments. */
  edited_arguments?: unknown
  /** What was said with the decision. */
  message?: string | null
  arguments?: unknown
  diff?: string | null
  fingerprint?: string
  labels?: string[]
  /** Where what is untrusted came from, each in a few words. */
  sources?: string[]
  allowed_decisions?: string[]
  allowed_scopes?: Scope[]
  place?: Place | null
  context_summary?: string | null
  /** What a yes adds, where money is asked for. */
  raise_usd?: number | null
  /** The model whose price is not known, where that is what is asked about. */
  unpriced_model?: string | null
  /** Secrets in it show their kind and length. */
  hidden?: boolean
}

/** Where a yes that lasts would hold. */
export type Place = Record<string, unknown>

export interface FolderEntry {
  path: string
  operations: string[]
}

export interface AgentScope {
  notebooks?: string[]
  folders?: (string | FolderEntry)[]
  file_types?: string[]
  operations?: string[]
}

export interface HostPolicy {
  hosts?: string[] | null
  schemes?: string[]
  ports?: number[]
  allow_private?: string[]
  path_prefix?: string
}

export interface Agent {
  id: string
  workspace_id: string
  slug: string
  name: string
  description: string
  emoji: string | null
  model: string
  system_prompt: string
  is_active: boolean
  /** Whether it starts runs now, and if a budget is used up, until when not. */
  state?: { active: boolean; paused_reason?: string | null; resumes_at?: string | null }
  autonomy: 'none' | 'low' | 'medium' | 'high' | 'full'
  can_read: boolean
  can_write: boolean
  can_create: boolean
  can_delete: boolean
  can_access_integrations: boolean
  /** A list, or a policy where there is more to say than hosts. */
  allowed_hosts?: string[] | HostPolicy
  toolsets: string[]
  tools: string[]
  denied_tools: string[]
  requires_approval: string[]
  max_turns: number
  max_tool_calls: number
  max_requests_per_hour: number
  max_concurrent_runs: number
  max_tokens_per_request: number
  scope: AgentScope
  budget?: { run_usd: number | null; day_usd: number | null; month_usd: number | null; soft_usd?: number | null; cheaper_model?: string | null; alert_at_usd?: number[]; allow_unpriced?: boolean }
  /** How long a question waits, such as `24h`. */
  approval_expires_in?: string
  /** The stored key that its runs use for the provider it is for. */
  provider_key_id?: string | null
  owner: 'user' | 'workspace'
  /** Whose it is; nobody's where it is the workspace's. */
  owner_id: string | null
  /** Ids of the members who see and run it beside its owner, and of those who may decide what it asks. */
  shared_with?: string[]
  approvers?: string[]
  reach: string
  version: number
  updated_at: string
}

export interface Tool {
  name: string
  description: string
  toolset: string
  recovery: string
  schema: JsonSchema
}

export interface JsonSchema {
  type?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  description?: string
  enum?: unknown[]
  default?: unknown
  maxLength?: number
}

export interface Rule {
  id: string
  tool: string
  decision: 'allow' | 'ask' | 'deny'
  agent?: string | null
  /** Only in this chat, or in this run. */
  chat?: string | null
  run?: string | null
  when?: Place | null
  /** Why. */
  note?: string | null
  /** Whether it counts now. */
  live: boolean
  created_at: string
  expires_at: string | null
  origin?: { kind: string; id?: string } | null
}

/** An event of a run, as the stream and the list give it. */
export interface WireEvent {
  event: string
  /** Its place in the log; live deltas have none. */
  id?: number
  data: Record<string, unknown>
}

export interface Resource {
  kind: string
  path: string
  action: string
  undoable: boolean
  /** The hashes of what was there before and after. */
  before?: string | null
  after?: string | null
}
