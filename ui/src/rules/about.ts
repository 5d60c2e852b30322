// Where a rule begins that is about calls such as one in question. Pure.
import type { RouteLocationRaw } from 'vue-router'
import type { Approval } from '../api/types'
import { namedOf, namedText } from './when'

const first = (list: unknown): string => (Array.isArray(list) && typeof list[0] === 'string' ? list[0] : '')
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The form for a rule about such calls: of the same agent and tool, in the same folder, at the same host or with the same arguments. */
export function ruleAbout({ tool_name: tool, agent_id: agent, arguments: given, place }: Approval): RouteLocationRaw {
  const said = (given ?? {}) as Record<string, unknown>
  const path = text(said['path'])
  const folder = first(place?.['folders']) || (path && (path.slice(0, Math.max(path.lastIndexOf('/'), 0)) || '/'))
  const url = text(said['url'])
  const host = first(place?.['hosts']) || (URL.canParse(url) ? new URL(url).hostname : '')
  // At a host it matters what is done there; a call with neither has nothing but its arguments.
  const named = host ? namedOf((place?.['arguments'] ?? {}) as Record<string, unknown>) : folder ? [] : namedOf(said)
  return { path: '/rules', query: { tool, agent, ...(host ? { host } : folder && { folder }), ...(named.length > 0 && { argument: named.map(namedText) }) } }
}
