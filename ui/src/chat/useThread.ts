// A chat with its runs: the newest at once, the others when somebody asks for them.
import { computed, ref, type ComputedRef, type Ref } from 'vue'
import { get } from '../api/client'
import type { Chat, Page, Run } from '../api/types'
import { usePaged } from '../parts/usePaged'

const EACH = 100

export interface Thread {
  chat: Ref<Chat | null>
  /** Newest first, with those that an edit replaced. */
  all: Ref<Run[]>
  /** What is said, oldest first. */
  runs: ComputedRef<Run[]>
  /** Whether there are older ones that are not read yet. */
  hasEarlier: ComputedRef<boolean>
  /** What those cost. */
  earlierCost: Ref<number>
  problem: Ref<unknown>
  load: () => Promise<void>
  earlier: () => Promise<void>
}

export function useThread(id: string): Thread {
  const chat = ref<Chat | null>(null)
  const earlierCost = ref(0)
  const problem = ref<unknown>(null)
  const { items: all, cursor, ...paged } = usePaged((from) =>
    get<Page<Run>>('/runs', { query: { chat: id, superseded: true, limit: EACH, ...(from && { cursor: from }) } }),
  )

  async function load(): Promise<void> {
    try {
      const [found] = await Promise.all([get<Chat>('/chats/{chat}', { path: { chat: id } }), paged.load()])
      ;[chat.value, problem.value] = [found, null]
      await weigh()
    } catch (error) {
      problem.value = error
    }
  }
  async function earlier(): Promise<void> {
    await paged.more()
    await weigh()
  }
  /** What is not read is known by what the whole chat cost. */
  async function weigh(): Promise<void> {
    const known = all.value.reduce((sum, run) => sum + run.cost_usd, 0)
    const whole = cursor.value === null ? known : (await get<{ cost_usd: number }>('/chats/{chat}/stats', { path: { chat: id } })).cost_usd
    earlierCost.value = Math.max(whole - known, 0)
  }
  const runs = computed(() => all.value.filter((run) => run.superseded_by === null).reverse())
  return { chat, all, runs, hasEarlier: computed(() => cursor.value !== null), earlierCost, problem, load, earlier }
}
