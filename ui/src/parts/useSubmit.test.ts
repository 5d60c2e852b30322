import { expect, it } from 'vitest'
import { useSubmit } from './useSubmit'

it('works once, however often it is pressed', async () => {
  let worked = 0
  let finish = (): void => {}
  const { isBusy, submit } = useSubmit(() => {
    worked += 1
    return new Promise<void>((resolve) => (finish = resolve))
  })
  const first = submit()
  await submit()
  expect([worked, isBusy.value]).toEqual([1, true])
  finish()
  await first
  expect(isBusy.value).toBe(false)
})

it('keeps what went wrong until the next try', async () => {
  const answers = [Promise.reject(new Error('no')), Promise.resolve()]
  const { isBusy, problem, submit } = useSubmit(() => answers.shift() ?? Promise.resolve())
  await submit()
  expect([String(problem.value), isBusy.value]).toEqual(['Error: no', false])
  await submit()
  expect(problem.value).toBe(null)
})
