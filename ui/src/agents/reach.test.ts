import { expect, it } from 'vitest'
import type { Agent } from '../api/types'
import type { Notebook } from '../files/files'
import { draftOf, newDraft } from './draft'
import { changeOfReach, folderGrant, widened, wholeOf, type Reach, type Reached, type Things } from './reach'

const none: Reached = { count: 0, samples: [] }
const some = (samples: string[]): Things => ({ count: samples.length, samples })
const reached = (samples: string[], verdict: 'allow' | 'ask' = 'ask'): Reached => ({ ...some(samples), first: { verdict, rule: 'P20', reason: '' } })
/** A notebook of which something can be written, and what is different from before. */
const reach = (write: Reached, added: string[] = [], removed: string[] = []): Reach => {
  const same = { added: some([]), removed: some([]) }
  const change = { read: same, write: { added: some(added), removed: some(removed) }, create: same, delete: same }
  return { notebook: 'n', entries: 9, cut: false, reach: { read: none, write, create: none, delete: none }, just_outside: { count: 0, samples: [] }, change }
}

it('names what an edit adds and takes away, and tells asking from not asking', () => {
  const before = reach(reached(['/a']))
  expect(changeOfReach(before, reach(reached(['/a'])))).toEqual([])
  expect(changeOfReach(before, reach(reached(['/b']), ['/b'], ['/a']))).toEqual([
    { verb: 'write', kind: 'more', things: some(['/b']) },
    { verb: 'write', kind: 'fewer', things: some(['/a']) },
  ])
  expect(changeOfReach(before, reach(reached(['/a'], 'allow')))).toEqual([{ verb: 'write', kind: 'freer' }])
  expect(changeOfReach(reach(reached(['/a'], 'allow')), reach(reached(['/a', '/b'], 'ask'), ['/b']))).toEqual([{ verb: 'write', kind: 'more', things: some(['/b']) }, { verb: 'write', kind: 'stricter' }])
})

it('names the notebooks and the hosts that an edit lets it into', () => {
  const all = ['a', 'b', 'c'].map((slug) => ({ id: `nb_${slug}`, slug })) as Notebook[]
  const before = { ...newDraft(), notebooks: 'a', hosts: 'one.org', can_access_integrations: true }
  const slugs = (notebooks: string): string[] => widened(before, { ...before, notebooks }, all).notebooks.map(({ slug }) => slug)
  expect([slugs('a'), slugs('a, nb_b'), slugs('*'), slugs('')]).toEqual([[], ['b'], ['b', 'c'], []])
  expect(widened(before, { ...before, hosts: 'one.org, *.two.org' }, all).hosts).toEqual(['*.two.org'])
  expect(widened({ ...before, can_access_integrations: false }, before, all).hosts).toEqual(['one.org'])
  expect(widened(before, { ...before, hosts: 'two.org', can_access_integrations: false }, all).hosts).toEqual([])
})

it('offers a folder where a folder would do', () => {
  const outside = (smallest_grant?: string): string | null => folderGrant({ path: '/a', rule: 'P11', reason: '', ...(smallest_grant && { smallest_grant }) })
  expect([outside('scope.folders: "/secret"'), outside('scope.file_types: "*.pdf"'), outside()]).toEqual(['/secret', null, null])
})

it('asks about the agent that would be saved, with what the form does not show', () => {
  const scope = { notebooks: ['*'], folders: ['/'], operations: ['read', 'write'] }
  const agent = { id: 'agent_1', name: 'Guide', model: 'default', can_read: true, can_write: true, can_create: false, can_delete: false, can_access_integrations: false, scope, toolsets: ['files'], requires_approval: [], description: '', categories: ['file_read'], permission_level: 'write', flow: 'deny', content_filter: [{ category: 'secrets' }] } as unknown as Agent
  expect(wholeOf(agent, draftOf(agent))).toEqual(agent)
  const draft = draftOf(agent)
  for (const row of draft.folders) row.verbs.write = false
  expect(wholeOf(agent, draft)).toMatchObject({ can_write: false, flow: 'deny', categories: ['file_read'], content_filter: [{ category: 'secrets' }] })
  // What was granted is another thing now, so the level is found again.
  expect(wholeOf(agent, draft)).not.toHaveProperty('permission_level')
})
