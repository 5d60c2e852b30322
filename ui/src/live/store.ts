// What changes on the server, told by one stream: what waits for somebody, and a beat for each kind of list to read itself again.
import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { get, type Query } from '../api/client'
import type { Approval, Page, WireEvent } from '../api/types'
import { tabOf } from './tab'

/** Many changes in a row make one reading. */
const GATHER_MS = 120
const EACH = 200

export const useLive = defineStore('live', () => {
  const pending = shallowRef<Approval[]>([])
  const isLoaded = ref(false)
  const hasMore = ref(false)
  const runsBeat = ref(0)
  const chatsBeat = ref(0)
  const settingsBeat = ref(0)
  let timer: ReturnType<typeof setTimeout> | undefined
  const due = new Set<string>()

  /** How many somebody has asked to see. */
  let wanted = EACH
  /** Where the rest begins. */
  let next: string | null = null

  async function refresh(): Promise<void> {
    const found: Approval[] = []
    let cursor: string | null = null
    do {
      const query: Query = { status: 'pending', limit: EACH, ...(cursor && { cursor }) }
      const page: Page<Approval> = await get<Page<Approval>>('/approvals', { query })
      found.push(...page.data)
      cursor = page.next_cursor
    } while (cursor !== null && found.length < wanted)
    pending.value = found
    next = cursor
    hasMore.value = cursor !== null
    isLoaded.value = true
  }
  async function more(): Promise<void> {
    const cursor = next
    if (cursor === null) return
    const page = await get<Page<Approval>>('/approvals', { query: { status: 'pending', limit: EACH, cursor } })
    // Read anew in the meantime: the rest belongs to that reading.
    if (next !== cursor) return
    pending.value = [...pending.value, ...page.data]
    next = page.next_cursor
    hasMore.value = next !== null
    wanted = pending.value.length
  }

  function beat(): void {
    timer = undefined
    const all = due.has('reread')
    // A failure shows in the banner of the connection; the stream says `reread` when the server is back.
    if (all || due.has('inbox') || due.has('run')) void refresh().catch(() => undefined)
    if (all || due.has('run')) runsBeat.value += 1
    if (all || due.has('chat') || due.has('run')) chatsBeat.value += 1
    if (all || due.has('changed')) settingsBeat.value += 1
    due.clear()
  }
  function hear({ event }: WireEvent): void {
    due.add(event)
    timer ??= setTimeout(beat, GATHER_MS)
  }

  /** Every list reads itself again. */
  const rereadAll = (): void => hear({ event: 'reread', data: {} })

  const tab = tabOf(hear)
  function start(): void {
    void refresh().catch(() => undefined)
    tab.open()
  }
  function stop(): void {
    tab.close()
    clearTimeout(timer)
    timer = undefined
  }

  /** Those that wait for whoever looks; others are there to be seen, in shared chats. */
  const count = computed(() => pending.value.filter((item) => item.may_decide).length)
  /** The number as a badge shows it. */
  const countText = computed(() => `${count.value}${hasMore.value ? '+' : ''}`)
  return { pending, isLoaded, hasMore, runsBeat, chatsBeat, settingsBeat, count, countText, refresh, more, start, stop, rereadAll, follow: tab.follow }
})
