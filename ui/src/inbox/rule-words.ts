// A rule, and the rule a lasting yes would write, in words. Pure.
import type { Place, Rule, Scope } from '../api/types'
import { t } from '../i18n/t'
import { visible } from '../parts/visible'

/** Where a rule holds. Paths, hosts and arguments may be a model's, so nothing can hide in them (rule A3). */
export const placeWords = (place: Place | null | undefined): string => visible(wordsOf(place))

function wordsOf(place: Place | null | undefined): string {
  const said = place ?? {}
  const joined = (name: string): string => (Array.isArray(said[name]) ? said[name].join(', ') : '')
  const named = Object.entries((said['arguments'] ?? {}) as Record<string, string>)
  const parts = [
    joined('directly_in') && t('directly in {folders}', { folders: joined('directly_in') }),
    joined('folders') && t('in {folders} and below', { folders: joined('folders') }),
    joined('hosts') && t('at {hosts}', { hosts: joined('hosts') }),
    ...named.map(([name, like]) => t('with {name} like “{like}”', { name, like })),
    typeof said['exactly'] === 'string' && t('with exactly these arguments'),
  ]
  return parts.filter(Boolean).join(' ') || t('anywhere')
}

/** Why there is a question at all, by the word of the guard for it. */
export function askedBy(rule: string): string {
  if (rule === 'autonomy') return t('Asked because the agent may not do this by itself')
  if (rule === 'flow') return t('Asked because of what the run has read')
  if (rule === 'requires_approval') return t('Asked because the agent always asks for this tool')
  return rule.startsWith('rule_') ? t('Asked by a standing rule') : t('Asked by the rule {rule}', { rule: visible(rule) })
}

const ENDS: Record<Scope, string> = {
  once: 'for this call only',
  run: 'until this run ends',
  chat: 'in this chat',
  always: 'from now on',
}

export function grantWords(tool: string, place: Place | null | undefined, scope: Scope): string {
  return t('Allow {tool} {where} for this agent, {how}.', { tool, where: placeWords(place), how: t(ENDS[scope]) })
}

export function ruleWords(rule: Rule, agent: string | null): string {
  const who = agent ? t('for {agent}', { agent }) : t('for every agent')
  const tool = rule.tool === '*' ? t('every tool') : rule.tool
  return t('{tool} {where} {who}', { tool, where: placeWords(rule.when), who })
}
