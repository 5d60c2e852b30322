// An entry of the record in the words of people. Pure.
import { t } from '../i18n/t'

export interface Row {
  stream: string
  seq: number
  time: string
  kind: string
  summary: string
  agent: string | null
  by: string | null
  tool: string | null
  path: string | null
  verdict: string | null
  rule: string | null
  run_id: string | null
  is_error: boolean
}

/** Whoever did it comes first. What nobody else did, the agent did; what no agent did, the server itself. */
export function whoOf({ by, agent }: Pick<Row, 'by' | 'agent'>): { who: string; agent: string | null } {
  return { who: by === 'clock' ? t('the clock') : (by ?? agent ?? t('the server')), agent: by === null ? null : agent }
}

/** Kinds whose names say little to somebody who has not read the log. */
const KINDS: Record<string, string> = {
  call_ended: 'Call',
  approval_decided: 'Decision',
  in_doubt_resolved: 'Doubt settled',
  cancel_asked: 'Asked to stop',
  content_filtered: 'Filtered',
}
export function kindWords(kind: string): string {
  const words = kind.replaceAll('_', ' ')
  return t(KINDS[kind] ?? words.charAt(0).toUpperCase() + words.slice(1))
}

const ENDS: Record<string, string> = { COMPLETED: 'Completed', FAILED: 'Failed', CANCELLED: 'Stopped' }
export function whatWords({ kind, summary }: Pick<Row, 'kind' | 'summary'>): string {
  if (kind === 'run_ended') return t(ENDS[summary] ?? summary)
  return summary || (kind === 'run_started' ? t('A fork of another run') : '')
}
