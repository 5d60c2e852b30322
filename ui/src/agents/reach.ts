// How much of a notebook an agent reaches, and how a draft changes that.
import { post } from '../api/client'
import type { Agent } from '../api/types'
import { changeOf, draftOf, fieldsOf, merged, VERBS, type Draft, type Verb } from './draft'

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

/** The whole of a draft, as it would be saved: with everything that the form does not show. */
export function wholeOf(agent: Agent | null, draft: Draft): Record<string, unknown> {
  const whole = (agent ? merged(agent, changeOf(agent, draft)) : fieldsOf(draft)) as Record<string, unknown>
  return { ...whole, name: whole['name'] || 'Draft' }
}
/** Without a notebook: the one that a run would get. */
export function reachOf(agent: Agent | null, draft: Draft, notebook: string): Promise<Reach> {
  const body: Record<string, unknown> = notebook ? { ...wholeOf(agent, draft), notebook_id: notebook } : wholeOf(agent, draft)
  return post<Reach, '/scope/preview'>('/scope/preview', { body })
}
export const savedReachOf = (agent: Agent, notebook: string): Promise<Reach> => reachOf(agent, draftOf(agent), notebook)

/** The folder that has to be granted to reach it, where a folder would do. */
export const folderGrant = (thing: Outside): string | null => /^scope\.folders: "(.+)"$/.exec(thing.smallest_grant ?? '')?.[1] ?? null

/** More or fewer things; as many, but others; or the same without a question that was asked, or with one that was not. */
export type Step = { verb: Verb; kind: 'more' | 'fewer'; by: number } | { verb: Verb; kind: 'others' | 'freer' | 'stricter' }
const FREEDOM = { deny: 0, ask: 1, allow: 2 }

/** What a draft changes about what is reached, verb by verb. Pure. */
export function changeOfReach(before: Reach, after: Reach): Step[] {
  return VERBS.flatMap((verb): Step[] => {
    const [was, is] = [before.reach[verb], after.reach[verb]]
    const by = is.count - was.count
    const steps: Step[] = by > 0 ? [{ verb, kind: 'more', by }] : by < 0 ? [{ verb, kind: 'fewer', by: -by }] : []
    // The first of as many are the same, or it is not the same many.
    if (by === 0 && is.samples.join('\n') !== was.samples.join('\n')) steps.push({ verb, kind: 'others' })
    if (!was.first || !is.first || was.count === 0 || is.count === 0) return steps
    const freer = FREEDOM[is.first.verdict] - FREEDOM[was.first.verdict]
    return freer === 0 ? steps : [...steps, { verb, kind: freer > 0 ? 'freer' : 'stricter' }]
  })
}
export const isMore = ({ kind }: Step): boolean => kind === 'more' || kind === 'others' || kind === 'freer'
