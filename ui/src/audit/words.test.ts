import { expect, it } from 'vitest'
import { kindWords, whatWords, whoOf } from './words'

it('names whoever did it first, and the agent it was about beside them', () => {
  expect(whoOf({ by: 'dana', agent: 'guide' })).toEqual({ who: 'dana', agent: 'guide' })
  expect(whoOf({ by: null, agent: 'guide' })).toEqual({ who: 'guide', agent: null })
  expect(whoOf({ by: 'clock', agent: 'guide' })).toEqual({ who: 'the clock', agent: 'guide' })
  expect(whoOf({ by: null, agent: null })).toEqual({ who: 'the server', agent: null })
})

it('says kinds and ends in words', () => {
  expect(['run_ended', 'call_ended', 'agent_saved', 'sign_in_refused'].map(kindWords)).toEqual(['Run ended', 'Call', 'Agent saved', 'Sign in refused'])
  expect(whatWords({ kind: 'run_ended', summary: 'COMPLETED' })).toBe('Completed')
  expect(whatWords({ kind: 'run_started', summary: '' })).toBe('A fork of another run')
  expect(whatWords({ kind: 'file_saved', summary: '/todo.md' })).toBe('/todo.md')
})
