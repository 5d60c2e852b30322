// Which calls of the past a rule speaks of. Near enough to choose by; what counts is the guard. Pure.
import type { When } from './when'

export interface PastCall {
  tool: string | null
  agent_id: string | null
  path: string | null
  verdict: string | null
}
export interface Wanted {
  /** `*` is every tool. */
  tool: string
  /** Empty is every agent. */
  agent: string
  when: When
}

/** A folder with all below it, or a pattern with `*` inside one folder and `**` over many. */
function isIn(path: string, folder: string): boolean {
  const place = `/${folder.replace(/^\/+|\/+$/g, '')}`
  if (!place.includes('*')) return place === '/' || path === place || path.startsWith(`${place}/`)
  const pattern = place.split('**').map((piece) => piece.split('*').map((word) => word.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('[^/]*')).join('.*')
  return new RegExp(`^${pattern}$`).test(path)
}

export function fits({ tool, agent, when: { folders = [] } }: Wanted, call: PastCall): boolean {
  if (call.verdict === null || (tool !== '*' && call.tool !== tool) || (agent && call.agent_id !== agent)) return false
  return folders.length === 0 || (call.path !== null && folders.some((folder) => isIn(call.path ?? '', folder)))
}

/** How the calls that fit came out. */
export function countFits(wanted: Wanted, calls: PastCall[]): { all: number; allow: number; ask: number; deny: number } {
  const found = calls.filter((call) => fits(wanted, call))
  const of = (verdict: string): number => found.filter((call) => call.verdict === verdict).length
  return { all: found.length, allow: of('allow'), ask: of('ask'), deny: of('deny') }
}
