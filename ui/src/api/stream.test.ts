import { afterEach, expect, it, vi } from 'vitest'
import type { WireEvent } from './types'
import { follow } from './stream'

const frame = (id: number | null, event: string, data: object): string => `${id === null ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
const answer = (...frames: string[]): Response => new Response(frames.join(''), { status: 200 })

afterEach(() => vi.unstubAllGlobals())

it('comes back with the last number it has, and takes nothing twice', async () => {
  const asked: (string | null)[] = []
  const answers = [
    answer(frame(1, 'thinking', {}), frame(3, 'tool_call', {})),
    answer(frame(3, 'tool_call', {}), frame(null, 'answer_delta', { delta: 'x' }), frame(4, 'answer', {})),
    new Response(null, { status: 204 }),
  ]
  vi.stubGlobal('fetch', (_url: string, options: RequestInit) => {
    asked.push((options.headers as Record<string, string>)['last-event-id'] ?? null)
    return Promise.resolve(answers.shift())
  })
  const seen: (number | undefined)[] = []
  const onEvent = (event: WireEvent): unknown => seen.push(event.id)
  await follow({ url: '/x', onEvent, signal: new AbortController().signal, wait: () => 0 })
  expect(seen).toEqual([1, 3, undefined, 4])
  expect(asked).toEqual([null, '3', '4'])
})

it('comes back after the connection broke, and gives up when the server refuses', async () => {
  const answers = [() => Promise.reject(new TypeError('gone')), () => Promise.resolve(new Response('{}', { status: 404 }))]
  vi.stubGlobal('fetch', () => answers.shift()?.())
  let lost = 0
  const following = follow({ url: '/x', onEvent: () => {}, onLost: () => (lost += 1), signal: new AbortController().signal, wait: () => 0 })
  await expect(following).rejects.toMatchObject({ status: 404 })
  expect(lost).toBe(1)
})
