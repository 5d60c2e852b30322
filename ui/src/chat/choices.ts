// The next order of a chat: what is written so far, how freely it is carried out, and by which model. Kept while the page is open.
import { reactive } from 'vue'
import type { Agent, AttachedFile, Waiting } from '../api/types'

/** Empty is as the agent is set. A mode lowers what the agent does by itself and never raises it. */
export type Mode = '' | 'low' | 'none' | 'plan'
export interface Choices {
  mode: Mode
  model: string
  /** What is written and not sent. */
  text: string
}
export const NEW_CHAT = 'new'

const kept = reactive(new Map<string, Choices>())

export function choicesOf(chat: string): Choices {
  if (!kept.has(chat)) kept.set(chat, { mode: '', model: '', text: '' })
  return kept.get(chat) as Choices
}
/** A new chat that got its first message takes its choices along. */
export function moveChoices(chat: string): void {
  kept.set(chat, { ...choicesOf(NEW_CHAT), text: '' })
  kept.delete(NEW_CHAT)
}

export interface Again {
  user_message: string
  attachments: AttachedFile[]
  autonomy?: Exclude<Mode, ''>
  model?: string
  max_cost_usd?: number
  output_schema?: Record<string, unknown>
}

/** What the server is told. */
export const choicesBody = ({ mode, model }: Pick<Choices, 'mode' | 'model'>): { autonomy?: Exclude<Mode, ''>; model?: string } => ({
  ...(mode && { autonomy: mode }),
  ...(model && { model }),
})

/** All that came with a message that was refused, to say it again. */
export const againBody = ({ user_message, attachments, autonomy, model, max_cost_usd, output_schema }: Waiting): Again => ({
  user_message,
  attachments: attachments ?? [],
  ...(autonomy && { autonomy: autonomy as Exclude<Mode, ''> }),
  ...(model && { model }),
  ...(max_cost_usd !== undefined && { max_cost_usd }),
  ...(output_schema && { output_schema }),
})

/** The mode after this one; after the last comes the first. */
export function modeAfter(mode: Mode, agent: Agent | undefined): Mode {
  const modes = modesFor(agent)
  return modes[(modes.indexOf(mode) + 1) % modes.length] ?? ''
}

const LEVELS: readonly Agent['autonomy'][] = ['none', 'low', 'medium', 'high', 'full']
/** The modes that lower something: those the agent has not already. */
export function modesFor(agent: Agent | undefined): Mode[] {
  const level = LEVELS.indexOf(agent?.autonomy ?? 'full')
  return ['', ...(level > 1 ? (['low'] as const) : []), ...(level > 0 ? (['none'] as const) : []), 'plan']
}
