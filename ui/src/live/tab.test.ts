// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { WireEvent } from '../api/types'
import { tabOf, type Followed, type Tab } from './tab'

/** A stream that somebody opened. */
interface Opened {
  topics: string
  isLeft: () => boolean
  tell: (event: string, data: object, id?: number) => void
}
let opened: Opened[]
let gone: string[]
let refusal: number
let tab: Tab
let news: string[]

const show = (hidden: boolean): void => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true })
  document.dispatchEvent(new Event('visibilitychange'))
}
/** The n-th stream that was opened. */
const stream = async (n: number): Promise<Opened> => vi.waitFor(() => opened[n] ?? Promise.reject(new Error(`no stream ${n}`)))

function answer(address: string, options: RequestInit): Response {
  const url = new URL(address, 'http://here')
  const refused = new Response('{}', { status: refusal })
  if (!url.pathname.endsWith('/v1/events')) return gone.some((run) => address.includes(run)) ? refused : new Response('{"data":[]}')
  const topics = url.searchParams.get('topics') ?? ''
  if (gone.some((run) => topics.includes(run))) return refused
  const told = new TransformStream<Uint8Array, Uint8Array>()
  const writer = told.writable.getWriter()
  const tell = (event: string, data: object, id?: number): void => void writer.write(new TextEncoder().encode(`${id ? `id: ${id}\n` : ''}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`))
  opened.push({ topics, tell, isLeft: () => options.signal?.aborted ?? false })
  return new Response(told.readable)
}

function run(id: string): Followed & { heard: WireEvent[]; problems: unknown[] } {
  const heard: WireEvent[] = []
  const problems: unknown[] = []
  return { id, heard, problems, after: () => heard.at(-1)?.id ?? 0, onEvent: (event) => heard.push(event), onRefused: (problem) => problems.push(problem) }
}

/** The lock of a browser: many share it, or one holds it alone; whoever wants that waits for the others. */
function locksOf(): LockManager {
  let held: Promise<unknown> = Promise.resolve()
  const request = (_name: string, { mode, signal }: LockOptions, hold: () => Promise<void>): Promise<unknown> => {
    const mine = mode === 'shared' ? hold() : held.then(() => (signal?.aborted ? undefined : hold()))
    held = Promise.all([held, mine])
    return mine
  }
  return { request } as unknown as LockManager
}
beforeEach(() => {
  ;[opened, gone, news, refusal] = [[], [], [], 404]
  vi.stubGlobal('fetch', (address: string, options: RequestInit) => Promise.resolve(answer(address, options)))
  show(false)
  tab = tabOf(({ event }) => news.push(event))
  tab.open()
})
afterEach(() => {
  tab.close()
  vi.unstubAllGlobals()
})

it('hears of everything and of every run by one stream', async () => {
  const [one, two] = [run('run_1'), run('run_2')]
  tab.follow(one)
  tab.follow(two)
  const { topics, tell } = await stream(1)
  expect((await stream(0)).isLeft()).toBe(true)
  expect(topics).toBe('runs,approvals,chats,settings,run:run_1@0,run:run_2@0')
  tell('reread', { reason: 'opened' })
  tell('thinking', { run_id: 'run_2' }, 3)
  tell('answer_delta', { run_id: 'run_1', delta: 'x' })
  await vi.waitFor(() => expect(one.heard).toHaveLength(1))
  expect([two.heard.map(({ id }) => id), news]).toEqual([[3], ['reread']])
})

it('lets go while nobody looks, and goes on where it was', async () => {
  const one = run('run_1')
  tab.follow(one)
  const first = await stream(1)
  first.tell('thinking', { run_id: 'run_1' }, 7)
  await vi.waitFor(() => expect(one.heard).toHaveLength(1))
  show(true)
  expect(first.isLeft()).toBe(true)
  show(false)
  expect((await stream(2)).topics).toContain('run:run_1@7')
  expect(opened).toHaveLength(3)
})

it('keeps one stream where somebody looks at no tab, and tells the others what waits', async () => {
  tab.close()
  Object.defineProperty(navigator, 'locks', { value: locksOf(), configurable: true })
  const heard: string[] = []
  const second = tabOf(({ event }) => heard.push(event))
  tab.open()
  second.open()
  await stream(2)
  show(true)
  const kept = await stream(3)
  kept.tell('inbox', {})
  await vi.waitFor(() => expect([news, heard]).toEqual([['inbox'], ['inbox']]))
  expect([opened.length, kept.isLeft()]).toEqual([4, false])
  // Whoever kept it is closed: the next one listens.
  tab.close()
  expect(kept.isLeft()).toBe(true)
  expect((await stream(4)).isLeft()).toBe(false)
  second.close()
  Object.defineProperty(navigator, 'locks', { value: undefined, configurable: true })
})

it('takes a run up again of which something was lost', async () => {
  const one = run('run_1')
  tab.follow(one)
  ;(await stream(1)).tell('reread', { reason: 'too_slow', topics: ['run:run_1@2'] })
  await stream(2)
  expect(news).toEqual([])
})

it('leaves out a run that cannot be read, and goes on with the others', async () => {
  const [one, two] = [run('run_1'), run('run_2')]
  gone = ['run_1']
  tab.follow(one)
  tab.follow(two)
  expect((await stream(1)).topics).toMatch(/settings,run:run_2@0$/)
  expect([one.problems.length, two.problems.length]).toEqual([1, 0])
})

it('keeps every run while nobody is signed in', async () => {
  const one = run('run_1')
  ;[gone, refusal] = [['run_1'], 401]
  tab.follow(one)
  show(true)
  gone = []
  show(false)
  expect((await stream(1)).topics).toContain('run:run_1@0')
  expect(one.problems).toEqual([])
})
