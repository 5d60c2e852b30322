// What every form does: works once at a time, says that it works, and keeps what went wrong for its note.
import { ref, type Ref } from 'vue'

export interface Submit {
  isBusy: Ref<boolean>
  problem: Ref<unknown>
  submit: () => Promise<void>
}

export function useSubmit(work: () => Promise<unknown>): Submit {
  const isBusy = ref(false)
  const problem = ref<unknown>(null)
  async function submit(): Promise<void> {
    if (isBusy.value) return
    isBusy.value = true
    problem.value = null
    try {
      await work()
    } catch (error) {
      problem.value = error
    } finally {
      isBusy.value = false
    }
  }
  return { isBusy, problem, submit }
}
