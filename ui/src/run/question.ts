// A question of the log in the form the inbox has, so that one card shows both.
import type { Approval } from '../api/types'
import type { Question, RunView } from './view'

export function approvalOf(question: Question, view: RunView): Approval {
  let input: unknown = question.input
  try {
    input = question.input === '' ? {} : JSON.parse(question.input)
  } catch {
    // Arguments that are no JSON are shown as the text they are.
  }
  return {
    id: question.id,
    kind: question.about,
    workspace_id: '',
    run_id: view.id,
    chat_id: view.chatId,
    agent_id: view.agentId,
    call_id: question.callId,
    status: 'pending',
    tool_name: question.tool,
    summary: question.summary,
    risk: question.risk,
    reason: question.reason,
    rule: question.rule,
    created_at: '',
    expires_at: question.expiresAt,
    decided_at: null,
    decided_by: null,
    decision: null,
    arguments: input,
    diff: question.diff,
    labels: question.labels,
    sources: question.sources,
    place: question.place,
    allowed_scopes: question.scopes,
    hidden: question.isHidden,
    raise_usd: question.raiseUsd,
    unpriced_model: question.unpricedModel,
    ...(question.fingerprint ? { fingerprint: question.fingerprint } : {}),
  }
}
