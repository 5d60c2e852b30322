import { afterEach, expect, it, vi } from 'vitest'
import type { WireEvent } from './types'
import { follow } from './stream'

const frame = (id: number | null, event: string, data: object): string => `${id === null ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
const answer = (...frames: string[]): Response => new Response(frames.join(''), { status: 200 })

afterEach(() => vi.unstubAllGlobals())

it('comes back where it was told last, after an end and after the connection broke, until the server refuses', async () => {
  const asked: string[] = []
  const answers = [
    () => Promise.resolve(answer(frame(1, 'thinking', {}), frame(3, 'tool_call', {}))),
    () => Promise.reject(new TypeError('gone')),
    () => Promise.resolve(answer(frame(null, 'answer_delta', { delta: 'x' }), frame(4, 'answer', {}))),
    () => Promise.resolve(new Response('{}', { status: 404 })),
  ]
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url)
    return answers.shift()?.()
  })
  const seen: (number | undefined)[] = []
  const onEvent = (event: WireEvent): unknown => seen.push(event.id)
  const url = (): string => `/x@${seen.findLast((id) => id !== undefined) ?? 0}`
  const following = follow({ url, onEvent, signal: new AbortController().signal, wait: () => 0 })
  await expect(following).rejects.toMatchObject({ status: 404 })
  expect(seen).toEqual([1, 3, undefined, 4])
  expect(asked).toEqual(['/x@0', '/x@3', '/x@3', '/x@4'])
})
