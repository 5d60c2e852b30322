// Which notebook a new chat with an agent would have: the oldest that its scope allows.
import { ref, watch, type Ref } from 'vue'
import { get } from '../api/client'
import type { Agent, Page } from '../api/types'
import type { Notebook } from '../files/files'

export function notebookFor(agent: Agent, all: Notebook[]): Notebook | undefined {
  const allowed = agent.scope.notebooks ?? []
  return all.find((one) => allowed.includes('*') || allowed.includes(one.slug) || allowed.includes(one.id))
}

export function useNotebook(agent: Ref<Agent | undefined>): Ref<string | undefined> {
  const found = ref<string>()
  watch(
    () => agent.value?.id,
    async () => {
      const of = agent.value
      if (!of) return
      const page = await get<Page<Notebook>>('/workspaces/{workspace}/notebooks', { path: { workspace: of.workspace_id } }).catch(() => null)
      found.value = page ? notebookFor(of, page.data)?.id : undefined
    },
    { immediate: true },
  )
  return found
}
