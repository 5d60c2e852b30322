// What was decided, newest first, as far down as somebody went.
import { ref, watch, type Ref } from 'vue'
import { get } from '../api/client'
import type { Approval, Page } from '../api/types'

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
  const items = ref<Approval[]>([])
  const cursor = ref<string | null>(null)
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)
  const read = (from: string | null): Promise<Page<Approval>> =>
    get<Page<Approval>>('/approvals', { query: { status: fate.value, order: 'desc', limit: EACH, ...(from && { cursor: from }) } })

  async function load(): Promise<void> {
    const wanted = fate.value
    try {
      const page = await read(null)
      if (fate.value !== wanted) return
      // What was read further down stays; the first page is fresh.
      const last = page.data.at(-1)?.id
      const below = last && isLoaded.value ? items.value.filter(({ id }) => id < last) : []
      items.value = [...page.data, ...below]
      if (below.length === 0) cursor.value = page.next_cursor
      ;[isLoaded.value, problem.value] = [true, null]
    } catch (error) {
      problem.value = error
    }
  }
  async function more(): Promise<void> {
    const from = cursor.value
    if (from === null) return
    const page = await read(from)
    // Read anew in the meantime: the rest belongs to that reading.
    if (cursor.value !== from) return
    items.value = [...items.value, ...page.data]
    cursor.value = page.next_cursor
  }
  watch(fate, () => {
    ;[items.value, cursor.value, isLoaded.value] = [[], null, false]
    void load()
  })
  return { fate, items, cursor, isLoaded, problem, load, more }
}
