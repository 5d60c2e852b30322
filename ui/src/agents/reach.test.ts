import { expect, it } from 'vitest'
import type { Agent } from '../api/types'
import { draftOf } from './draft'
import { changeOfReach, folderGrant, wholeOf, type Reach, type Reached } from './reach'

const none: Reached = { count: 0, samples: [] }
const reached = (samples: string[], verdict: 'allow' | 'ask' = 'ask'): Reached => ({ count: samples.length, samples, first: { verdict, rule: 'P20', reason: '' } })
const reach = (write: Reached): Reach => ({ notebook: 'n', entries: 9, cut: false, reach: { read: none, write, create: none, delete: none }, just_outside: { count: 0, samples: [] } })

it('tells more from fewer, others from the same, and asking from not asking', () => {
  const of = (before: Reached, after: Reached): unknown => changeOfReach(reach(before), reach(after))
  expect(of(reached(['/a']), reached(['/a']))).toEqual([])
  expect(of(reached(['/a']), reached(['/a', '/b']))).toEqual([{ verb: 'write', kind: 'more', by: 1 }])
  expect(of(reached(['/a', '/b']), none)).toEqual([{ verb: 'write', kind: 'fewer', by: 2 }])
  expect(of(reached(['/a']), reached(['/b']))).toEqual([{ verb: 'write', kind: 'others' }])
  expect(of(reached(['/a'], 'ask'), reached(['/a'], 'allow'))).toEqual([{ verb: 'write', kind: 'freer' }])
  expect(of(reached(['/a'], 'allow'), reached(['/a', '/b'], 'ask'))).toEqual([{ verb: 'write', kind: 'more', by: 1 }, { verb: 'write', kind: 'stricter' }])
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
