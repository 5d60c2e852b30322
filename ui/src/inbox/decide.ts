// Sends a decision about what was shown, and says what came of it.
import { post } from '../api/client'
import { Problem } from '../api/problem'
import type { Approval, Scope } from '../api/types'
import { t } from '../i18n/t'
import { toast } from '../parts/toasts'

export interface Decision {
  decision: 'approve' | 'edit' | 'respond' | 'reject' | 'stop' | 'happened' | 'run' | 'abandon'
  arguments?: Record<string, unknown>
  message?: string
  scope?: Scope
  expires_in?: string
}

export interface Decided {
  /** The item as it is now. */
  approval?: Approval
  /** It changed since it was shown; nothing was decided. */
  isStale?: boolean
}

const DONE: Record<Decision['decision'], string> = {
  approve: 'Approved. The agent goes on.',
  edit: 'Approved with your changes.',
  respond: 'Answered. Nothing was run.',
  reject: 'Rejected. Nothing was run.',
  stop: 'Stopped. The run ends.',
  happened: 'Noted as done.',
  run: 'It runs again.',
  abandon: 'Given up. It is not run again.',
}

export async function decide(id: string, fingerprint: string | null | undefined, decision: Decision): Promise<Decided> {
  const body = fingerprint ? { ...decision, fingerprint } : decision
  try {
    const approval = await post<Approval, '/approvals/{approval}/decision'>('/approvals/{approval}/decision', { path: { approval: id }, body })
    toast(t(DONE[decision.decision]))
    return { approval }
  } catch (error) {
    if (error instanceof Problem && error.code === 'stale_version') {
      return { isStale: true, ...(error.body.approval ? { approval: error.body.approval as Approval } : {}) }
    }
    throw error
  }
}
