// What somebody may do with a thing that has an owner. The server decides; this only keeps away buttons it would refuse.
import { useAgents } from '../agents/store'
import type { Agent, Run } from '../api/types'
import { useSession } from './store'

export interface Rights {
  /** Stops, edits and takes back: whoever started the run, or an admin. */
  maySteer: (run: Pick<Run, 'initiated_by'>) => boolean
  /** Answers its questions: the same, or whoever owns its agent. */
  mayDecide: (run: Pick<Run, 'initiated_by' | 'agent_id'>) => boolean
  /** Changes and deletes an agent or a chat: whoever owns it, or an admin. */
  mayChange: (thing: Pick<Agent, 'owner_id'>) => boolean
}

export function useRights(): Rights {
  const session = useSession()
  const agents = useAgents()
  const isMine = (owner: string | null | undefined): boolean => session.isAdmin || (session.canWrite && owner === session.me?.user_id)
  return {
    maySteer: (run) => isMine(run.initiated_by.id),
    mayDecide: (run) => isMine(run.initiated_by.id) || isMine(agents.byId.get(run.agent_id)?.owner_id),
    mayChange: (thing) => isMine(thing.owner_id),
  }
}
