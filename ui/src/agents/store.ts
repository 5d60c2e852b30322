// The agents somebody may see: those of this workspace for lists and choices, all of them for their names.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get } from '../api/client'
import type { Agent, Page } from '../api/types'
import { useSession } from '../session/store'

export const useAgents = defineStore('agents', () => {
  const session = useSession()
  const known = ref<Agent[]>([])
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)

  async function load(): Promise<void> {
    try {
      known.value = (await get<Page<Agent>>('/agents')).data
      problem.value = null
      isLoaded.value = true
    } catch (error) {
      problem.value = error
    }
  }
  const all = computed(() => known.value.filter((agent) => agent.workspace_id === session.here?.id))
  const active = computed(() => all.value.filter((agent) => agent.is_active))
  const byId = computed(() => new Map(known.value.map((agent) => [agent.id, agent])))
  const nameOf = (id: string): string => byId.value.get(id)?.name ?? id

  return { all, active, byId, isLoaded, problem, load, nameOf }
})
