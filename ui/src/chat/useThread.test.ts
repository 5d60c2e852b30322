import { afterEach, expect, it, vi } from 'vitest'
import { useThread } from './useThread'

/** Seven runs of a cent each; the third was said instead of the second. They come three at a time. */
const RUNS = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7'].map((id) => ({ id, cost_usd: 0.01, superseded_by: id === 'r2' ? 'r3' : null })).reverse()
const PAGE = 3

function answer(address: string): unknown {
  const { pathname, searchParams } = new URL(address, 'http://here')
  if (pathname.endsWith('/stats')) return { cost_usd: RUNS.length / 100 }
  if (pathname.endsWith('/chats/c')) return { id: 'c' }
  const from = RUNS.findIndex((run) => run.id === searchParams.get('cursor')) + 1
  const data = RUNS.slice(from, from + PAGE)
  const has_more = from + PAGE < RUNS.length
  return { data, has_more, next_cursor: has_more ? data.at(-1)?.id : null }
}

afterEach(() => vi.unstubAllGlobals())

it('reads the newest runs first, the others on demand, and knows what all of them cost', async () => {
  vi.stubGlobal('fetch', (address: string) => Promise.resolve(Response.json(answer(address))))
  const thread = useThread('c')
  await thread.load()
  expect([thread.runs.value.map((run) => run.id), thread.hasEarlier.value]).toEqual([['r5', 'r6', 'r7'], true])
  expect(thread.earlierCost.value).toBeCloseTo(0.04)

  await thread.earlier()
  await thread.load()
  expect(thread.runs.value.map((run) => run.id)).toEqual(['r3', 'r4', 'r5', 'r6', 'r7'])
  await thread.earlier()
  expect(thread.runs.value.map((run) => run.id)).toEqual(['r1', 'r3', 'r4', 'r5', 'r6', 'r7'])
  expect([thread.all.value.length, thread.hasEarlier.value, thread.earlierCost.value]).toEqual([7, false, 0])
})
