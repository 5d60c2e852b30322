import { effectScope, nextTick, shallowRef } from 'vue'
import { expect, it } from 'vitest'
import { emptyView, type RunView } from '../run/view'
import { useAnnounced } from './useAnnounced'

const at = (status: RunView['status']): RunView => ({ ...emptyView('run_1'), status })

async function hear(...views: RunView[]): Promise<string> {
  const run = shallowRef<RunView | undefined>()
  const scope = effectScope()
  const said = scope.run(() => useAnnounced(() => run.value))
  for (const view of views) {
    run.value = view
    await nextTick()
  }
  scope.stop()
  return said?.value ?? ''
}

it('says that somebody is needed, also to whoever just came', async () => {
  expect(await hear(at('WAITING_APPROVAL'))).toBe('The agent needs you.')
})

it('says that the answer is complete', async () => {
  expect(await hear(at('RUNNING'), at('COMPLETED'))).toBe('The answer is complete.')
})

it('says nothing of what had ended before', async () => {
  expect(await hear(at('COMPLETED'))).toBe('')
})

it('says that a run failed or was stopped', async () => {
  expect(await hear(at('RUNNING'), at('FAILED'))).toBe('The run failed.')
  expect(await hear(at('WAITING_APPROVAL'), at('CANCELLED'))).toBe('Stopped.')
})
