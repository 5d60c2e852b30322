// How much of a notebook an agent reaches, and how a draft changes that.
import { post } from '../api/client'
import type { Agent } from '../api/types'
import { draftOf, fieldsOf, VERBS, type Draft, type Verb } from './draft'

export interface Verdict {
  verdict: 'allow' | 'ask' | 'deny'
  rule: string
  reason: string
  smallest_grant?: string | null
  tool?: string | null
}
export interface Reached {
  count: number
  samples: string[]
  first?: Verdict | null
}
/** Something that lies beside what is reached, and what would reach it. */
export interface Outside {
  path: string
  rule: string
  reason: string
  smallest_grant?: string
}
export interface Reach {
  notebook: string | null
  entries: number
  cut: boolean
  reach: Record<Verb, Reached>
  just_outside: { count: number; samples: Outside[] }
}

/** The whole of a draft, as it would be saved. */
export function wholeOf(agent: Agent | null, draft: Draft): Record<string, unknown> {
  const kept = agent ? { tools: agent.tools, denied_tools: agent.denied_tools, workspace_id: agent.workspace_id } : {}
  const fields = fieldsOf(draft)
  return { ...kept, ...fields, name: fields['name'] || 'Draft' }
}
export const reachOf = (agent: Agent | null, draft: Draft): Promise<Reach> => post<Reach, '/scope/preview'>('/scope/preview', { body: wholeOf(agent, draft) })
export const savedReachOf = (agent: Agent): Promise<Reach> => reachOf(agent, draftOf(agent))

/** The folder that has to be granted to reach it, where a folder would do. */
export const folderGrant = (thing: Outside): string | null => /^scope\.folders: "(.+)"$/.exec(thing.smallest_grant ?? '')?.[1] ?? null

export interface Step {
  verb: Verb
  by: number
}
/** What a draft adds and takes away, verb by verb. Pure. */
export function changeOfReach(before: Reach, after: Reach): Step[] {
  return VERBS.map((verb) => ({ verb, by: after.reach[verb].count - before.reach[verb].count })).filter(({ by }) => by !== 0)
}
