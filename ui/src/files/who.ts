// Who made a change, in words.
import { useAgents } from '../agents/store'
import { t } from '../i18n/t'
import type { FileChange } from './files'

export function useWho(): (change: FileChange) => string {
  const agents = useAgents()
  if (!agents.isLoaded) void agents.load()
  return (change) => {
    if (change.by.kind === 'person') return change.by.name ?? t('somebody')
    if (change.by.kind === 'undo') return t('{name}, taking a run back', { name: change.by.name ?? t('somebody') })
    return change.by.agent_id ? agents.nameOf(change.by.agent_id) : t('an agent')
  }
}
