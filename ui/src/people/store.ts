// The people of one's workspaces, so that whoever decided something has a name.
import { defineStore } from 'pinia'
import { ref } from 'vue'
import { get } from '../api/client'
import type { Page } from '../api/types'
import { t } from '../i18n/t'
import { useSession } from '../session/store'

interface Member {
  user_id: string
  name: string
}

export const usePeople = defineStore('people', () => {
  const session = useSession()
  const names = ref(new Map<string, string>())
  let asked: Promise<void> | null = null

  async function read(): Promise<void> {
    const places = session.me?.workspaces ?? []
    const pages = await Promise.all(places.map((place) => get<Page<Member>>('/workspaces/{workspace}/members', { path: { workspace: place.id } })))
    names.value = new Map(pages.flatMap((page) => page.data.map((member) => [member.user_id, member.name] as const)))
  }
  /** Asks once; asks again after a failure. Until then people go by their numbers. */
  function load(): void {
    asked ??= read().catch(() => {
      asked = null
    })
  }
  /** Who did something, behind what was done: "by you", "by Kim". The clock is nobody. */
  function byWords(actor: string | null | undefined): string {
    if (!actor || actor === 'clock') return ''
    return actor === session.me?.user_id ? t('by you') : t('by {who}', { who: names.value.get(actor) ?? actor })
  }
  return { load, byWords }
})
