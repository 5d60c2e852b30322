// The stop switch of a workspace: whether it is on, and turning it.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get, post, removed } from '../api/client'
import { useSession } from '../session/store'

interface Switch {
  is_halted: boolean
  reason: string | null
}

export const useHalt = defineStore('halt', () => {
  const session = useSession()
  const workspace = computed(() => session.me?.workspaces.find((place) => place.role === 'admin')?.id)
  const state = ref<Switch | null>(null)
  const path = (): { workspace: string } => ({ workspace: workspace.value ?? '' })

  async function load(): Promise<void> {
    if (workspace.value) state.value = await get<Switch>('/workspaces/{workspace}/halt', { path: path() }).catch(() => null)
  }
  async function turnOn(reason: string): Promise<void> {
    state.value = await post<Switch, '/workspaces/{workspace}/halt'>('/workspaces/{workspace}/halt', { path: path(), body: { reason: reason || null } })
  }
  async function turnOff(): Promise<void> {
    state.value = await removed<Switch>('/workspaces/{workspace}/halt', { path: path() })
  }
  return { workspace, state, load, turnOn, turnOff }
})
