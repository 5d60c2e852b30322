import { expect, it } from 'vitest'
import type { Provider } from '../models/providers'
import { newDraft } from './draft'
import { modelsOf, sendsOf, sendsWords, usualOf } from './sends'

const provider = (name: string, kind: string, host: string | null): Provider => ({ name, kind, host, title: name.toUpperCase(), key: 'operator', key_env: [], models: 1, detected: false })
const PROVIDERS = [provider('demo', 'demo', null), provider('anthropic', 'anthropic', 'api.anthropic.com'), provider('openai', 'openai', null), provider('test', 'scripted', null)]
const sends = (...models: string[]) => sendsOf(models, PROVIDERS, ['openai/gpt-5'])

it('names the host that answers, and the provider where the host is not told', () => {
  expect(sends('anthropic/claude', 'openai/gpt-5', 'anthropic/other')).toEqual({ to: 'places', places: ['api.anthropic.com', 'OPENAI'] })
  expect(sends('gpt-5')).toEqual({ to: 'places', places: ['OPENAI'] })
  expect(sends('nobody/knows')).toEqual({ to: 'places', places: ['the provider of nobody/knows'] })
})

it('says nothing goes out only where the server answers itself', () => {
  expect([sends('demo/guide'), sends('test/any'), sends('demo/guide', 'balanced')]).toEqual([{ to: 'nowhere' }, { to: 'nowhere' }, { to: 'chosen' }])
})

it('counts all models that a run may ask', () => {
  const draft = { ...newDraft(), rest: { fallback_models: ['openai/gpt-5'] }, cheaper_model: 'anthropic/small' }
  expect(modelsOf(draft, 'demo/guide')).toEqual(['demo/guide', 'openai/gpt-5', 'anthropic/small'])
  expect(modelsOf({ ...newDraft(), rest: { model: ['anthropic/a', 'default'] } }, 'demo/guide')).toEqual(['anthropic/a', 'demo/guide'])
  expect([usualOf('default', undefined, 'smartest', 'demo/guide'), usualOf('default', '')]).toEqual(['smartest', 'default'])
})

it('says it in one sentence with the hosts of its tools', () => {
  expect(sendsWords({ to: 'nowhere' }, '')).toBe('Sends nothing to the network.')
  expect(sendsWords({ to: 'nowhere' }, 'a.org')).toBe('Sends to: a.org')
  expect(sendsWords({ to: 'chosen' }, '')).toBe('Sends what it reads to the provider that is chosen for each run, and to no other host.')
  expect(sendsWords({ to: 'places', places: ['api.x.ai'] }, 'a.org')).toBe('Sends what it reads to api.x.ai; its tools send to: a.org')
})
