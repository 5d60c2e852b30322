// The stop switches: that of the workspace and that of the whole instance. Everybody sees them, few may turn them.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get, post, removed } from '../api/client'
import { useSession } from '../session/store'

interface Switch {
  is_halted: boolean
  reason: string | null
}
export type HaltOf = 'workspace' | 'instance'

export const useHalt = defineStore('halt', () => {
  const session = useSession()
  const found = ref<Record<HaltOf, Switch | null>>({ workspace: null, instance: null })
  const path = (): { workspace: string } => ({ workspace: session.here?.id ?? '' })
  const switches = computed(() => [
    { of: 'workspace' as const, state: found.value.workspace, canTurn: session.isAdmin },
    { of: 'instance' as const, state: found.value.instance, canTurn: session.isOwner },
  ])

  async function load(): Promise<void> {
    const workspace = session.here ? get<Switch>('/workspaces/{workspace}/halt', { path: path() }).catch(() => null) : null
    const instance = get<Switch>('/halt').catch(() => null)
    found.value = { workspace: await workspace, instance: await instance }
  }
  async function turnOn(of: HaltOf, why: string): Promise<void> {
    const body = { reason: why || null }
    found.value[of] = of === 'instance' ? await post<Switch, '/halt'>('/halt', { body }) : await post<Switch, '/workspaces/{workspace}/halt'>('/workspaces/{workspace}/halt', { path: path(), body })
  }
  async function turnOff(of: HaltOf): Promise<void> {
    found.value[of] = of === 'instance' ? await removed<Switch>('/halt') : await removed<Switch>('/workspaces/{workspace}/halt', { path: path() })
  }
  return { switches, load, turnOn, turnOff }
})
