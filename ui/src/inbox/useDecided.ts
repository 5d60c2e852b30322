// What was decided, as far down as somebody went; what was asked last comes first.
import { ref, watch, type Ref } from 'vue'
import { get } from '../api/client'
import type { Approval, Page } from '../api/types'
import { usePaged } from '../parts/usePaged'

const EACH = 50

export type Fate = 'decided' | 'approved' | 'rejected' | 'expired'

export interface Decided {
  /** Which of them. */
  fate: Ref<Fate>
  items: Ref<Approval[]>
  /** Where the rest begins. */
  cursor: Ref<string | null>
  isLoaded: Ref<boolean>
  problem: Ref<unknown>
  load: () => Promise<void>
  more: () => Promise<void>
}

export function useDecided(): Decided {
  const fate = ref<Fate>('decided')
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)
  const paged = usePaged((from) =>
    get<Page<Approval>>('/approvals', { query: { status: fate.value, order: 'desc', limit: EACH, ...(from && { cursor: from }) } }),
  )

  async function load(): Promise<void> {
    try {
      if (await paged.load()) [isLoaded.value, problem.value] = [true, null]
    } catch (error) {
      problem.value = error
    }
  }
  watch(fate, () => {
    paged.clear()
    isLoaded.value = false
    void load()
  })
  return { fate, items: paged.items, cursor: paged.cursor, isLoaded, problem, load, more: paged.more }
}
