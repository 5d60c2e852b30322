// The notebooks of an agent's workspace, and which of them its scope lets it into.
import { onMounted, ref, type Ref } from 'vue'
import { get } from '../api/client'
import type { Agent, Page } from '../api/types'
import type { Notebook } from '../files/files'
import { useSession } from '../session/store'

/** Those of the workspace that is shown, where there is no agent yet. Without them the first one is asked about. */
export function useNotebooks(agent: () => Agent | null): Ref<Notebook[]> {
  const session = useSession()
  const all = ref<Notebook[]>([])
  onMounted(async () => {
    const workspace = agent()?.workspace_id ?? session.here?.id ?? ''
    all.value = (await get<Page<Notebook>>('/workspaces/{workspace}/notebooks', { path: { workspace } }).catch(() => null))?.data ?? []
  })
  return all
}
export const admitted = (all: Notebook[], names: string[]): Notebook[] => all.filter((one) => names.includes('*') || names.includes(one.slug) || names.includes(one.id))
