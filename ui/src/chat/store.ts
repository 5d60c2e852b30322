// The list of chats, newest first.
import { defineStore } from 'pinia'
import { ref } from 'vue'
import { get } from '../api/client'
import type { Chat, Page } from '../api/types'

const MOST = 50

export const useChats = defineStore('chats', () => {
  const all = ref<Chat[]>([])
  const cursor = ref<string | null>(null)
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)

  async function load(): Promise<void> {
    try {
      const page = await get<Page<Chat>>('/chats', { query: { limit: MOST } })
      // What was read further down stays; the first page is fresh.
      const oldest = page.data.at(-1)?.id
      const below = oldest ? all.value.filter((chat) => chat.id < oldest) : []
      all.value = [...page.data, ...below]
      if (below.length === 0) cursor.value = page.next_cursor
      problem.value = null
      isLoaded.value = true
    } catch (error) {
      problem.value = error
    }
  }
  async function more(): Promise<void> {
    if (!cursor.value) return
    const page = await get<Page<Chat>>('/chats', { query: { limit: MOST, cursor: cursor.value } })
    all.value.push(...page.data)
    cursor.value = page.next_cursor
  }
  /** One that is no more. */
  function forget(id: string): void {
    all.value = all.value.filter((chat) => chat.id !== id)
  }
  return { all, cursor, isLoaded, problem, load, more, forget }
})
