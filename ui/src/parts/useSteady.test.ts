import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { effectScope } from 'vue'
import { useSteady } from './useSteady'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('works at once, and once more for all that came meanwhile', async () => {
  let worked = 0
  const want = effectScope().run(() => useSteady(1000, async () => void (worked += 1)))!
  for (let i = 0; i < 500; i += 1) want()
  expect(worked).toBe(1)
  await vi.advanceTimersByTimeAsync(1000)
  expect(worked).toBe(2)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(worked).toBe(2)
})

it('begins nothing before what it did is done, however long that takes', async () => {
  let running = 0
  let most = 0
  const want = effectScope().run(() =>
    useSteady(10, async () => {
      most = Math.max(most, (running += 1))
      await new Promise((resolve) => setTimeout(resolve, 5000))
      running -= 1
    }),
  )!
  for (let i = 0; i < 20; i += 1) {
    want()
    await vi.advanceTimersByTimeAsync(900)
  }
  expect(most).toBe(1)
})

it('stops with what uses it', async () => {
  let worked = 0
  const scope = effectScope()
  const want = scope.run(() => useSteady(1000, async () => void (worked += 1)))!
  want()
  want()
  scope.stop()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(worked).toBe(1)
})
