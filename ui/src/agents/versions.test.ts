import { expect, it } from 'vitest'
import type { Agent } from '../api/types'
import { differencesOf } from './versions'

const agent = { version: 1, name: 'Guide', can_write: false, owner: 'user', shared_with: [], approvers: [] } as unknown as Agent

it('tells each field that changed, before and after', () => {
  expect(differencesOf(agent, { ...agent, version: 2, name: 'Leader', can_write: true })).toEqual([
    { field: 'name', before: 'Guide', after: 'Leader' },
    { field: 'can_write', before: 'false', after: 'true' },
  ])
})

it('tells nothing of what is known for the present only', () => {
  expect(differencesOf(agent, { ...agent, version: 2, updated_at: 'later', owner: 'workspace', shared_with: ['user_a'], approvers: ['user_b'] })).toEqual([])
})
