// What a screen reader says about a chat: that the agent needs somebody, and how a run ended.
import { ref, watch, type Ref } from 'vue'
import { t } from '../i18n/t'
import { hasEnded, type RunView } from '../run/view'

/** The words for what a run has come to; empty while there is nothing to say. */
function wordsFor(status: RunView['status']): string {
  switch (status) {
    case 'WAITING_APPROVAL':
      return t('The agent needs you.')
    case 'IN_DOUBT':
      return t('A call is in doubt. The agent needs you.')
    case 'PAUSED':
      return t('The run holds.')
    case 'COMPLETED':
      return t('The answer is complete.')
    case 'FAILED':
      return t('The run failed.')
    case 'CANCELLED':
      return t('Stopped.')
    case 'QUEUED':
    case 'RUNNING':
      return ''
  }
}

/** Follows the last run. What had ended before anybody looked is no news. */
export function useAnnounced(last: () => RunView | undefined): Ref<string> {
  const said = ref('')
  watch(
    () => [last()?.id, last()?.status] as const,
    ([id, status], [before, statusBefore]) => {
      if (!status) return
      const isNews = !hasEnded(status) || (id === before && statusBefore !== undefined && !hasEnded(statusBefore))
      if (isNews) said.value = wordsFor(status)
    },
  )
  return said
}
