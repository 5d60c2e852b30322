// What the last check of all chains found, and when. Kept while the page is open, for whoever made it.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get } from '../api/client'
import { useSession } from '../session/store'

export interface Checked {
  is_whole: boolean
  runs: number
  logs: number
  events: number
  erased: number
  days: number
  last_day: string | null
  key: string | null
  problems: { stream?: string; reason?: string }[]
}

export const useChecked = defineStore('checked', () => {
  const session = useSession()
  const found = ref<{ by: string | undefined; checked: Checked; at: string } | null>(null)
  const last = computed(() => (found.value?.by === session.me?.user_id ? found.value : null))
  async function check(): Promise<void> {
    const by = session.me?.user_id
    const checked = await get<Checked>('/audit/verify')
    found.value = { by, checked, at: new Date().toISOString() }
  }
  return { last, check }
})
