import { expect, it } from 'vitest'
import { beginningOf, bodyOf } from './wish'

const wish = { what: 'write', path: '/todo.md', given: '', notebook: '' }

it('asks about a path by a verb, and about everything else by a tool and its arguments', () => {
  expect(bodyOf(wish)).toEqual({ ok: true, body: { action: 'write', path: '/todo.md' } })
  expect(bodyOf({ ...wish, what: 'http_request', given: '{"url": "https://a.example"}', notebook: 'notebook_1' })).toEqual({
    ok: true,
    body: { tool: 'http_request', arguments: { url: 'https://a.example' }, notebook_id: 'notebook_1' },
  })
})

it('says what is wrong with arguments instead of sending them', () => {
  for (const given of ['{', '[]', '3']) expect(bodyOf({ ...wish, what: 'kv_set', given })).toMatchObject({ ok: false })
})

it('begins with what a tool needs', () => {
  const schema = { required: ['method', 'url'], properties: { method: { enum: ['GET', 'POST'] }, url: { type: 'string' }, body: { type: 'string' } } }
  expect(JSON.parse(beginningOf({ schema }))).toEqual({ method: 'GET', url: 'https://' })
})
