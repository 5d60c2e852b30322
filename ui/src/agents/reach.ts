// How much of a notebook an agent reaches, and how a draft changes that.
import { post } from '../api/client'
import type { Agent } from '../api/types'
import type { Notebook } from '../files/files'
import { changeOf, draftOf, fieldsOf, merged, VERBS, type Draft, type Verb } from './draft'
import { admitted } from './notebooks'

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
  /** What is different from the agent as it is saved. */
  change?: Record<Verb, { added: Things; removed: Things }>
}
/** How many, and the first of them. */
export interface Things {
  count: number
  samples: string[]
}

/** The whole of a draft, as it would be saved: with everything that the form does not show. */
export function wholeOf(agent: Agent | null, draft: Draft): Record<string, unknown> {
  const whole = (agent ? merged(agent, changeOf(agent, draft)) : fieldsOf(draft)) as Record<string, unknown>
  return { ...whole, name: whole['name'] || 'Draft' }
}
/** Without a notebook: the one that a run would get. Held against the agent as it is saved, where it is. */
export function reachOf(agent: Agent | null, draft: Draft, notebook: string): Promise<Reach> {
  const body: Record<string, unknown> = { ...wholeOf(agent, draft), ...(notebook && { notebook_id: notebook }), ...(agent && { against: agent.id }) }
  return post<Reach, '/scope/preview'>('/scope/preview', { body })
}
export const savedReachOf = (agent: Agent, notebook: string): Promise<Reach> => reachOf(agent, draftOf(agent), notebook)

/** The folder that has to be granted to reach it, where a folder would do. */
export const folderGrant = (thing: Outside): string | null => /^scope\.folders: "(.+)"$/.exec(thing.smallest_grant ?? '')?.[1] ?? null

/** More things, fewer, or the same without a question that was asked, or with one that was not. */
export type Step = { verb: Verb; kind: 'more' | 'fewer'; things: Things } | { verb: Verb; kind: 'freer' | 'stricter' }
const FREEDOM = { deny: 0, ask: 1, allow: 2 }

/** What a draft changes about what is reached, verb by verb. Pure. */
export function changeOfReach(before: Reach, after: Reach): Step[] {
  return VERBS.flatMap((verb): Step[] => {
    const [was, is] = [before.reach[verb], after.reach[verb]]
    const { added, removed } = after.change?.[verb] ?? {}
    const steps: Step[] = []
    if (added && added.count > 0) steps.push({ verb, kind: 'more', things: added })
    if (removed && removed.count > 0) steps.push({ verb, kind: 'fewer', things: removed })
    if (!was.first || !is.first || was.count === 0 || is.count === 0) return steps
    const freer = FREEDOM[is.first.verdict] - FREEDOM[was.first.verdict]
    return freer === 0 ? steps : [...steps, { verb, kind: freer > 0 ? 'freer' : 'stricter' }]
  })
}
export const isMore = ({ kind }: Step): boolean => kind === 'more' || kind === 'freer'

const namesIn = (text: string): string[] => text.split(',').map((name) => name.trim()).filter(Boolean)
/** The notebooks that it is let into. */
export const notebooksOf = (draft: Draft, all: Notebook[]): Notebook[] => admitted(all, namesIn(draft.notebooks))
/** The hosts that its tools may reach. */
export const hostsOf = (draft: Draft): string[] => (draft.can_access_integrations ? namesIn(draft.hosts) : [])

/** What a draft lets it into that the saved one does not: the reach is that of one notebook, and hosts are in none. Pure. */
export function widened(before: Draft, after: Draft, all: Notebook[]): { notebooks: Notebook[]; hosts: string[] } {
  const [was, had] = [notebooksOf(before, all), hostsOf(before)]
  return { notebooks: notebooksOf(after, all).filter((one) => !was.includes(one)), hosts: hostsOf(after).filter((host) => !had.includes(host)) }
}
