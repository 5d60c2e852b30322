import { afterEach, expect, it, vi } from 'vitest'
import { acceptedSince } from './accepted'

afterEach(() => vi.unstubAllGlobals())

const approval = (agent: string, day: string, kind = 'call'): object => ({ kind, agent_id: agent, created_at: `2026-01-${day}T00:00:00Z`, decided_at: `2026-01-${day}T01:00:00Z` })
const serve = (pages: object[][], isEndless = false): string[] => {
  const asked: string[] = []
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url)
    const data = pages[Math.min(asked.length, pages.length) - 1]
    const next = isEndless || asked.length < pages.length ? String(asked.length) : null
    return Promise.resolve(Response.json({ data, next_cursor: next, has_more: next !== null }))
  })
  return asked
}

it('counts the calls that were approved since then, agent by agent', async () => {
  serve([[approval('a', '09'), approval('b', '08'), approval('a', '07', 'budget')], [approval('a', '06'), approval('b', '01')]])
  expect(await acceptedSince('2026-01-05T00:00:00Z')).toEqual(new Map([['a', 2], ['b', 1]]))
})

it('reads no further than the moment it counts from', async () => {
  const asked = serve([[approval('a', '09'), approval('a', '01')], [approval('a', '01')]])
  expect(await acceptedSince('2026-01-05T00:00:00Z')).toEqual(new Map([['a', 1]]))
  expect(asked).toHaveLength(1)
})

it('counts nothing where there are too many to count', async () => {
  const asked = serve([[approval('a', '09')]], true)
  expect(await acceptedSince('2026-01-05T00:00:00Z')).toBe(null)
  expect(asked).toHaveLength(5)
})
