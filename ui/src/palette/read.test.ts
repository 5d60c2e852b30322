import { afterEach, expect, it, vi } from 'vitest'
import { readSome } from './read'

afterEach(() => void vi.unstubAllGlobals())

it('reads on behind the first page, and ends at its limit', async () => {
  const asked: string[] = []
  vi.stubGlobal('fetch', (address: string) => {
    const query = new URL(address, 'http://here').searchParams
    asked.push(`${query.get('limit')} from ${query.get('cursor') ?? 0}`)
    const from = Number(query.get('cursor') ?? 0)
    const data = Array.from({ length: Number(query.get('limit')) }, (_, n) => from + n)
    return Promise.resolve(Response.json({ data, next_cursor: String(from + data.length), has_more: true }))
  })
  const all = await readSome<number>('/chats', 450)
  expect([all.length, all.at(-1), asked]).toEqual([450, 449, ['200 from 0', '200 from 200', '50 from 400']])
})
