// Keys of providers that people bring: what is shown of them, and the calls. A value goes in and never comes out.
import { get, post, remove, type BodyOf } from '../api/client'

export type KeyOwner = 'person' | 'workspace' | 'agent'
export interface ProviderKey {
  id: string
  workspace_id: string
  owner: KeyOwner
  owner_id: string
  provider: string
  name: string
  /** The last four characters. */
  hint: string
  hosts: string[]
  created_at: string
  rotated_at: string | null
  calls: number
  cost_microusd: number
}
export interface KeyTested {
  ok: boolean
  model: string
  code?: string | null
  message?: string | null
}

/** Kinds that have an address of their own, so that a key is enough to use them. */
export const WELL_KNOWN = ['anthropic', 'cerebras', 'cohere', 'deepseek', 'fireworks', 'gemini', 'groq', 'mistral', 'moonshot', 'openai', 'openrouter', 'perplexity', 'together', 'xai', 'zai', 'zhipu']

const path = (key: ProviderKey): { key: string } => ({ key: key.id })
export const listKeys = async (): Promise<ProviderKey[]> => (await get<{ data: ProviderKey[] }>('/provider-keys')).data
export const keepKey = (workspace: string | undefined, body: BodyOf<'post', '/provider-keys'>): Promise<ProviderKey> =>
  post<ProviderKey, '/provider-keys'>('/provider-keys', { query: { workspace_id: workspace }, body })
export const rotateKey = (key: ProviderKey, value: string): Promise<ProviderKey> =>
  post<ProviderKey, '/provider-keys/{key}/rotate'>('/provider-keys/{key}/rotate', { path: path(key), body: { value } })
export const testKey = (key: ProviderKey, model: string): Promise<KeyTested> =>
  post<KeyTested, '/provider-keys/{key}/test'>('/provider-keys/{key}/test', { path: path(key), body: { model: model || null } })
export const forgetKey = (key: ProviderKey): Promise<void> => remove('/provider-keys/{key}', { path: path(key) })

const ORDER: readonly KeyOwner[] = ['agent', 'person', 'workspace']
/** For each provider the key a run of the agent uses first: the agent's, then one's own, then the workspace's; of several the newest. */
export function usedBy(keys: ProviderKey[], agentId: string): Map<string, ProviderKey> {
  const mine = keys.filter((key) => key.owner !== 'agent' || key.owner_id === agentId)
  const sorted = mine.sort((a, b) => ORDER.indexOf(a.owner) - ORDER.indexOf(b.owner) || b.created_at.localeCompare(a.created_at))
  const used = new Map<string, ProviderKey>()
  for (const key of sorted) if (!used.has(key.provider)) used.set(key.provider, key)
  return used
}
