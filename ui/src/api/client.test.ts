import { afterEach, expect, it, vi } from 'vitest'
import { addressOf, getChanged, onWorkspace, post, workspaceOf } from './client'

afterEach(() => vi.unstubAllGlobals())

it('does not read again what is known', async () => {
  const answer = (_: string, { headers }: RequestInit): Promise<Response> =>
    Promise.resolve(new Headers(headers).get('if-none-match') === '"two"' ? new Response(null, { status: 304 }) : Response.json({ hash: 'two' }))
  vi.stubGlobal('fetch', answer)
  const read = (known: string): Promise<unknown> => getChanged('/notebooks/{notebook}/files/{path}', { path: { notebook: 'n', path: 'a.md' }, known })
  expect([await read('"one"'), await read('"two"')]).toEqual([{ hash: 'two' }, null])
})

it('sends what got no answer again under its key, and everything else under a new one', async () => {
  const keys: (string | null)[] = []
  const answers: (() => Promise<Response>)[] = []
  vi.stubGlobal('fetch', (_: string, { headers }: RequestInit) => {
    keys.push(new Headers(headers).get('idempotency-key'))
    return answers.shift()?.() ?? Promise.resolve(Response.json({}))
  })
  const refused = (status: number, code: string): (() => Promise<Response>) => () => Promise.resolve(Response.json({ code, detail: code }, { status }))
  const lost = (): Promise<Response> => Promise.reject(new TypeError('network'))
  const say = (input: string): Promise<unknown> => post('/runs', { body: { agent_id: 'guide', input } }).catch(() => null)
  answers.push(lost, refused(502, 'bad_gateway'), refused(409, 'in_flight'))
  for (let n = 0; n < 4; n++) await say('tidy')
  expect(new Set(keys).size).toBe(1)
  // It was answered: the same words once more are meant once more. What is refused is answered, too.
  answers.push(() => Promise.resolve(Response.json({})), refused(422, 'validation_failed'))
  for (let n = 0; n < 3; n++) await say('tidy')
  await say('something else')
  expect(new Set(keys).size).toBe(5)
})

it('keeps the slashes of a path and nothing else', () => {
  expect(addressOf('/notebooks/{notebook}/files/{path}', { notebook: 'a/b', path: 'notes/my list.md' })).toBe('/api/v1/notebooks/a%2Fb/files/notes/my%20list.md')
})

it('leaves out what was not said', () => {
  expect(addressOf('/runs', {}, { status: undefined, limit: 5 })).toBe('/api/v1/runs?limit=5')
})

it('says where it is with everything but what has an id, and what is asked of all workspaces', () => {
  const run = 'run_01jabcdefghjkmnpqrstvwxyz0'
  expect(workspaceOf('get', '/rules')).toEqual({})
  onWorkspace(() => 'home')
  expect(workspaceOf('get', '/rules')).toEqual({ 'adjutant-workspace': 'home' })
  expect(workspaceOf('get', '/agents/{agent}', { agent: 'guide' })).toEqual({ 'adjutant-workspace': 'home' })
  expect(workspaceOf('get', '/runs/{run}', { run })).toEqual({})
  expect(workspaceOf('get', '/runs', {}, { chat: run.replace('run', 'chat'), limit: 5 })).toEqual({})
  expect(workspaceOf('get', '/runs', {}, { cursor: run })).toEqual({ 'adjutant-workspace': 'home' })
  expect(workspaceOf('get', '/agents')).toEqual({})
  expect(workspaceOf('post', '/agents')).toEqual({ 'adjutant-workspace': 'home' })
  onWorkspace(() => undefined)
})
