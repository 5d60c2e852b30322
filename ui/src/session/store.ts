// Who is signed in. The cookie is the server's business; the page only remembers that there may be one.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get, onSignedOut, onWorkspace, post, remove } from '../api/client'
import { Problem } from '../api/problem'
import type { Me } from '../api/types'

const HINT = 'adjutant.signed-in'
const WORKSPACE = 'adjutant.workspace'

export const useSession = defineStore('session', () => {
  const me = ref<Me | null>(null)
  const isSetUp = ref<boolean | null>(null)
  /** Set when the server ended the session while somebody was working; what is open stays as it is, below the form to sign in. */
  const ended = ref(false)
  let asked: Promise<void> | null = null

  async function load(): Promise<void> {
    const state = await get<{ is_set_up: boolean }>('/setup')
    isSetUp.value = state.is_set_up
    if (!state.is_set_up || !localStorage.getItem(HINT)) return
    try {
      me.value = await get<Me>('/me')
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401) throw error
      localStorage.removeItem(HINT)
    }
  }

  /** Asks once; asks again after a failure. */
  function ready(): Promise<void> {
    asked ??= load().catch(() => {
      asked = null
    })
    return asked
  }

  async function entered(): Promise<void> {
    localStorage.setItem(HINT, '1')
    isSetUp.value = true
    const before = me.value
    await reload()
    // What is open is somebody else's: everything is read anew, so that nothing of theirs is left.
    if (before && before.user_id !== me.value?.user_id) location.assign('/')
    else ended.value = false
  }

  /** After a change of what `me` holds. */
  async function reload(): Promise<void> {
    me.value = await get<Me>('/me')
  }
  /** Follows what others changed about whoever is here: their role, their name, where they are a member. */
  async function refresh(): Promise<void> {
    const before = here.value?.id
    await reload()
    // The workspace that is shown is gone for them, and so is everything of it that is drawn.
    if (before && here.value && here.value.id !== before) enter(here.value.id)
  }
  async function setUp(body: { token: string; name: string; password: string }): Promise<void> {
    await post('/setup', { body })
    await entered()
  }
  async function signIn(name: string, password: string): Promise<void> {
    await post('/session', { body: { name, password } })
    await entered()
  }
  async function accept(body: { token: string; name: string; password: string }): Promise<void> {
    await post('/invites/accept', { body })
    await entered()
  }
  async function signOut(): Promise<void> {
    await remove('/session')
    forget()
  }
  function forget(): void {
    localStorage.removeItem(HINT)
    me.value = null
  }

  // Who it was is kept: whoever signs in again goes on with what is open.
  onSignedOut(() => {
    if (!me.value) return
    localStorage.removeItem(HINT)
    ended.value = true
  })

  /** The workspace that is shown: the one that was chosen last, or the first. */
  const here = computed(() => {
    const places = me.value?.workspaces ?? []
    return places.find((place) => place.id === localStorage.getItem(WORKSPACE)) ?? places[0]
  })
  // Whoever is in one only never has to say which.
  onWorkspace(() => ((me.value?.workspaces.length ?? 0) > 1 ? here.value?.id : undefined))
  /** Goes to another workspace. Everything is read anew, so that nothing of this one is left. */
  function enter(workspace: string, at = '/chat'): void {
    localStorage.setItem(WORKSPACE, workspace)
    location.assign(at)
  }
  /** Goes where an opened thing is, if that is elsewhere: what may be done with it is said by the role there. */
  function follow(workspace: string): void {
    if (workspace !== here.value?.id && me.value?.workspaces.some((place) => place.id === workspace)) enter(workspace, location.href)
  }
  const isAdmin = computed(() => here.value?.role === 'admin')
  const canWrite = computed(() => here.value !== undefined && here.value.role !== 'read')
  const isOwner = computed(() => me.value?.is_owner ?? false)

  return { me, isSetUp, ended, here, isAdmin, isOwner, canWrite, enter, follow, ready, refresh, reload, setUp, signIn, accept, signOut, forget }
})
