// What changed between two versions of an agent, field by field. Pure.
import type { Agent } from '../api/types'

export interface Difference {
  field: string
  before: string
  after: string
}

/** Of its people and its owner only the present ones are known, for every version the same. */
const UNTOLD = new Set(['id', 'version', 'updated_at', 'reach', 'workspace_id', 'owner', 'owner_id', 'shared_with', 'approvers'])
const LONGEST = 160

const shown = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

export function differencesOf(before: Agent, after: Agent): Difference[] {
  const old = before as unknown as Record<string, unknown>
  const fresh = after as unknown as Record<string, unknown>
  return Object.keys(fresh)
    .filter((field) => !UNTOLD.has(field) && JSON.stringify(old[field]) !== JSON.stringify(fresh[field]))
    .map((field) => ({ field, before: shown(old[field]), after: shown(fresh[field]) }))
}
