// What was asked, whole, of the items that are selected: a list holds one line of each.
import { computed, shallowReactive, watch, type ComputedRef } from 'vue'
import { get } from '../api/client'
import type { Approval } from '../api/types'

/** Readings at a time; the page has few connections, and others need them, too. */
const AT_ONCE = 3

/** Each by its id; none for one that could not be read. */
export function useWhole(items: () => Approval[]): { whole: Map<string, Approval | null>; isReading: ComputedRef<boolean> } {
  const whole = shallowReactive(new Map<string, Approval | null>())
  const waiting: string[] = []
  let readers = 0

  async function read(): Promise<void> {
    readers += 1
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      whole.set(id, await get<Approval>('/approvals/{approval}', { path: { approval: id } }).catch(() => null))
    }
    readers -= 1
  }
  watch(
    items,
    (now) => {
      // What is selected no more is asked anew when it is selected again.
      const ids = new Set(now.map(({ id }) => id))
      for (const id of whole.keys()) if (!ids.has(id)) whole.delete(id)
      waiting.splice(0, waiting.length, ...[...ids].filter((id) => !whole.has(id)))
      while (readers < Math.min(AT_ONCE, waiting.length)) void read()
    },
    { immediate: true },
  )
  return { whole, isReading: computed(() => items().some(({ id }) => !whole.has(id))) }
}
