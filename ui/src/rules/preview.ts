// Which calls of the past a rule speaks of. Near enough to choose by; what counts is the guard. Pure.
import type { Approval } from '../api/types'
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

/** How many lines a call would add and take, at the end of its line. */
const COUNTS = /(?: [+−]\d+)+$/
/** Calls that wait, as the record will hold them. A list has no arguments of a call, but its one line names the file. */
export const waitingCalls = (pending: Pick<Approval, 'kind' | 'tool_name' | 'agent_id' | 'summary'>[]): PastCall[] =>
  pending
    .filter(({ kind }) => kind === 'call')
    .map(({ tool_name: tool, agent_id, summary }) => ({ tool, agent_id, path: summary?.startsWith(`${tool} /`) ? summary.slice(tool.length + 1).replace(COUNTS, '') : null, verdict: 'ask' }))

/** How the calls that fit came out. */
export function countFits(wanted: Wanted, calls: PastCall[]): { all: number; allow: number; ask: number; deny: number } {
  const found = calls.filter((call) => fits(wanted, call))
  const of = (verdict: string): number => found.filter((call) => call.verdict === verdict).length
  return { all: found.length, allow: of('allow'), ask: of('ask'), deny: of('deny') }
}
