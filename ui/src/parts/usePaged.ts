// A list that comes in pages: the first at once, the others when somebody asks for them. What is read anew is read as far down as
// somebody went, so that nothing is missing in between and nothing that has changed stays as it was.
import { shallowRef, type Ref } from 'vue'
import type { Page } from '../api/types'

export interface Paged<T> {
  items: Ref<T[]>
  /** Where the rest begins; none when all is read. */
  cursor: Ref<string | null>
  /** Reads anew. Says no if the list has become another one, or was read later by somebody else. */
  load: () => Promise<boolean>
  /** Reads one more page. */
  more: () => Promise<void>
  /** Becomes another list. */
  clear: () => void
}

export function usePaged<T>(read: (from: string | null) => Promise<Page<T>>): Paged<T> {
  const items = shallowRef<T[]>([])
  const cursor = shallowRef<string | null>(null)
  let [begun, shown] = [0, 0]

  async function load(): Promise<boolean> {
    const mine = ++begun
    const found: T[] = []
    let from: string | null = null
    do {
      const page: Page<T> = await read(from)
      found.push(...page.data)
      from = page.next_cursor
    } while (from !== null && found.length < items.value.length && mine > shown)
    if (mine <= shown) return false
    ;[items.value, cursor.value, shown] = [found, from, mine]
    return true
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
  function clear(): void {
    ;[items.value, cursor.value, shown] = [[], null, begun]
  }
  return { items, cursor, load, more, clear }
}
