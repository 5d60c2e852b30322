import { expect, it } from 'vitest'
import type { Agent } from '../api/types'
import { againBody, choicesBody, choicesOf, modeAfter, modesFor, moveChoices, NEW_CHAT } from './choices'

const agent = (autonomy: Agent['autonomy']): Agent => ({ autonomy }) as Agent

it('offers only modes that lower what the agent does by itself', () => {
  expect(modesFor(agent('full'))).toEqual(['', 'low', 'none', 'plan'])
  expect(modesFor(agent('low'))).toEqual(['', 'none', 'plan'])
  expect(modesFor(agent('none'))).toEqual(['', 'plan'])
})

it('goes through the modes in turn', () => {
  const asker = agent('low')
  expect([modeAfter('', asker), modeAfter('none', asker), modeAfter('plan', asker)]).toEqual(['none', 'plan', ''])
  // A mode that another agent has.
  expect(modeAfter('low', asker)).toBe('')
})

it('says nothing to the server about what nobody chose', () => {
  expect(choicesBody({ mode: '', model: '' })).toEqual({})
  expect(choicesBody({ mode: 'plan', model: 'demo/guide' })).toEqual({ autonomy: 'plan', model: 'demo/guide' })
})

it('goes along from the new chat into the chat, and the next new one begins anew', () => {
  Object.assign(choicesOf(NEW_CHAT), { mode: 'plan', text: 'tidy up' })
  moveChoices('chat_1')
  expect([choicesOf('chat_1'), choicesOf(NEW_CHAT)]).toEqual([{ mode: 'plan', model: '', text: '' }, { mode: '', model: '', text: '' }])
})

it('says a refused message again with all that came with it', () => {
  const refused = { id: 'run_1', created_at: '', error: 'no', user_message: 'read this' }
  const rest = { attachments: [{ path: '/attachments/a.md' }], autonomy: 'plan', model: 'demo/guide', max_cost_usd: 0, output_schema: { type: 'object' } }
  expect(againBody({ ...refused, ...rest })).toEqual({ user_message: 'read this', ...rest })
  expect(againBody(refused)).toEqual({ user_message: 'read this', attachments: [] })
})
