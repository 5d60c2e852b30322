// What somebody may do with a thing that has an owner. The server decides; this only keeps away buttons it would refuse.
import { ref, watch, type Ref } from 'vue'
import { get } from '../api/client'
import type { Agent, Chat, Run } from '../api/types'
import { useSession } from './store'

export interface Rights {
  /** Stops, edits and takes back: whoever started the run, or an admin. */
  maySteer: (starter: string | undefined) => boolean
  /** Changes and deletes an agent or a chat: whoever owns it, or an admin. */
  mayChange: (thing: Pick<Agent, 'owner_id'>) => boolean
}

export function useRights(): Rights {
  const session = useSession()
  const isMine = (owner: string | null | undefined): boolean => session.isAdmin || (session.canWrite && owner === session.me?.user_id)
  return {
    maySteer: isMine,
    mayChange: (thing) => isMine(thing.owner_id),
  }
}

/** Who started a run of a chat. In a shared one that may be anybody, so the run is asked where it makes a difference. */
export function useStarter(run: () => string, chat: () => Pick<Chat, 'owner_id' | 'is_shared'>): Ref<string | undefined> {
  const session = useSession()
  const starter = ref<string>()
  watch(
    [run, () => chat().is_shared],
    async () => {
      starter.value = chat().is_shared ? undefined : chat().owner_id
      if (!chat().is_shared || session.isAdmin || !session.canWrite) return
      // Without an answer the buttons stay away; the run has its own page.
      const found = await get<Pick<Run, 'id' | 'initiated_by'>>('/runs/{run}', { path: { run: run() } }).catch(() => null)
      if (found?.id === run()) starter.value = found.initiated_by?.id
    },
    { immediate: true },
  )
  return starter
}
