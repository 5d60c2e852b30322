// One inbox item with its arguments and difference.
import { ref, watch, type Ref } from 'vue'
import { get } from '../api/client'
import type { Approval } from '../api/types'

export function useDetail(id: Ref<string | undefined>): { detail: Ref<Approval | null>; problem: Ref<unknown>; reload: () => Promise<void> } {
  const detail = ref<Approval | null>(null)
  const problem = ref<unknown>(null)

  async function reload(): Promise<void> {
    const wanted = id.value
    if (!wanted) return
    try {
      const found = await get<Approval>('/approvals/{approval}', { path: { approval: wanted } })
      // Whoever moves on quickly sees the item they are at, not the one that answered last.
      if (id.value === wanted) [detail.value, problem.value] = [found, null]
    } catch (error) {
      if (id.value === wanted) problem.value = error
    }
  }
  watch(
    id,
    () => {
      if (detail.value?.id !== id.value) detail.value = null
      problem.value = null
      void reload()
    },
    { immediate: true },
  )
  return { detail, problem, reload }
}
