// The agents somebody may see: names for lists, choices for a new chat.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get } from '../api/client'
import type { Agent, Page } from '../api/types'

export const useAgents = defineStore('agents', () => {
  const all = ref<Agent[]>([])
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)

  async function load(): Promise<void> {
    try {
      all.value = (await get<Page<Agent>>('/agents')).data
      problem.value = null
      isLoaded.value = true
    } catch (error) {
      problem.value = error
    }
  }
  const active = computed(() => all.value.filter((agent) => agent.is_active))
  const byId = computed(() => new Map(all.value.map((agent) => [agent.id, agent])))
  const nameOf = (id: string): string => byId.value.get(id)?.name ?? id

  return { all, active, byId, isLoaded, problem, load, nameOf }
})
