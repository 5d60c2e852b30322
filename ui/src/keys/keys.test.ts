import { expect, it } from 'vitest'
import { usedBy, type KeyOwner, type ProviderKey } from './keys'

const key = (id: string, owner: KeyOwner, owner_id: string, provider = 'lab', created_at = '2026-01-01'): ProviderKey => ({
  id, owner, owner_id, provider, created_at, workspace_id: 'w', name: id, hint: 'last', hosts: [], rotated_at: null, calls: 0, cost_microusd: 0,
})

it("takes the agent's key before one's own, and that before the workspace's", () => {
  const keys = [key('house', 'workspace', 'w'), key('mine', 'person', 'me'), key('its', 'agent', 'a1')]
  expect(usedBy(keys, 'a1').get('lab')?.id).toBe('its')
  expect(usedBy(keys, 'a2').get('lab')?.id).toBe('mine')
})

it('takes the newest of several, and each provider by itself', () => {
  const keys = [key('old', 'person', 'me'), key('new', 'person', 'me', 'lab', '2026-02-01'), key('other', 'workspace', 'w', 'openai')]
  expect([...usedBy(keys, 'a1').values()].map((one) => one.id)).toEqual(['new', 'other'])
})
