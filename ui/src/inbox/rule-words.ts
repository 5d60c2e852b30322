// A rule, and the rule a lasting yes would write, in words. Pure.
import type { Place, Rule, Scope } from '../api/types'
import { t } from '../i18n/t'
import { visible } from '../parts/visible'

/** Where a rule holds. Paths, hosts and arguments may be a model's, so nothing can hide in them (rule A3). */
export const placeWords = (place: Place | null | undefined): string => visible(wordsOf(place))

function wordsOf(place: Place | null | undefined): string {
  const said = place ?? {}
  if (Array.isArray(said['directly_in'])) return t('directly in {folders}', { folders: said['directly_in'].join(', ') })
  const hosts = Array.isArray(said['hosts']) ? t('at {hosts}', { hosts: said['hosts'].join(', ') }) : ''
  if (Array.isArray(said['folders'])) return `${t('in {folders} and below', { folders: said['folders'].join(', ') })} ${hosts}`.trim()
  if (hosts) return hosts
  if (typeof said['exactly'] === 'string') return t('with exactly these arguments')
  const names = Object.keys(said)
  return names.length === 0 ? t('anywhere') : t('with {what}', { what: JSON.stringify(said['arguments'] ?? said) })
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
