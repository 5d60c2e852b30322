// What was decided, newest first.
import { ref, type Ref } from 'vue'
import { get } from '../api/client'
import type { Approval, Page } from '../api/types'
import { toastProblem } from '../parts/toasts'

const EACH = 50

export function useDecided(): { items: Ref<Approval[]>; load: () => Promise<void> } {
  const items = ref<Approval[]>([])
  async function load(): Promise<void> {
    try {
      const pages = await Promise.all(
        ['approved', 'rejected', 'expired'].map((status) => get<Page<Approval>>('/approvals', { query: { status, limit: EACH } })),
      )
      const at = (item: Approval): string => item.decided_at ?? item.created_at
      items.value = pages.flatMap((page) => page.data).sort((a, b) => at(b).localeCompare(at(a)))
    } catch (error) {
      toastProblem(error)
    }
  }
  return { items, load }
}
