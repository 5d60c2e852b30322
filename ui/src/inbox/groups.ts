// Items that can be looked at together: those that ask for the same thing, or those of one agent. Pure.
import type { Approval } from '../api/types'
import { t } from '../i18n/t'
import { visible } from '../parts/visible'

export type GroupBy = 'alike' | 'agent' | 'none'
export interface Group {
  key: string
  items: Approval[]
}

/** Where a call acts, read off its one line, as lists hold no arguments: in a folder, or with a method at a host. */
export function whereOf({ tool_name: tool, summary }: Approval): string {
  const [, method, url] = /^([A-Z]+) (https?:\/\/\S+)/.exec(summary ?? '') ?? []
  if (method && url) return t('with {method} at {host}', { method, host: visible(URL.canParse(url) ? new URL(url).host : url) })
  const path = summary?.startsWith(`${tool} /`) ? summary.slice(tool.length + 1) : ''
  return path && t('in {folder}', { folder: visible(path.slice(0, path.lastIndexOf('/')) || '/') })
}

/** What an item has in common with others; each doubt and each question of money stands for itself. */
function keyOf(item: Approval, by: GroupBy): string {
  if (by === 'none' || item.kind !== 'call') return item.id
  return by === 'agent' ? item.agent_id : [item.agent_id, item.tool_name, whereOf(item)].join('\n')
}

/** Each group stands where its first item stood. */
export function groupsOf(items: Approval[], by: GroupBy): Group[] {
  const groups = new Map<string, Group>()
  for (const item of items) {
    const key = keyOf(item, by)
    const known = groups.get(key)
    if (known) known.items.push(item)
    else groups.set(key, { key, items: [item] })
  }
  return [...groups.values()]
}

/** What all of them ask for, by their lines, if it is the same. */
export function sameCall(items: Approval[]): { tool: string; where: string } | null {
  const [first] = items
  if (!first || groupsOf(items.map((item) => ({ ...item, agent_id: '' })), 'alike').length !== 1 || first.kind !== 'call') return null
  return { tool: first.tool_name, where: whereOf(first) }
}

/** Whether one yes may answer all of them, which were read whole: calls of one tool in one place. What is alike in nothing but its tool is not. */
export function areAlike(items: Approval[]): boolean {
  const kinds = new Set(items.map(({ id, kind, workspace_id: workspace, tool_name: tool, place }) => (kind === 'call' && place && !place['exactly'] ? JSON.stringify([workspace, tool, place]) : id)))
  return kinds.size === 1
}

/** Those that can be selected: calls that whoever looks may decide. A doubt and a question of money have answers of their own. */
export const decidable = (items: Approval[]): Approval[] => items.filter((item) => item.kind === 'call' && item.may_decide)

export type Row = { key: string; group: Group; isOpen: boolean; item?: never } | { key: string; item: Approval; isInner: boolean; group?: never }

/** The lines of the list: a group of several has one of its own, above its items if it is open. */
export function rowsOf(groups: Group[], opened: ReadonlySet<string>): Row[] {
  return groups.flatMap((group): Row[] => {
    const several = group.items.length > 1
    const isOpen = !several || opened.has(group.key)
    const items = isOpen ? group.items.map((item): Row => ({ key: item.id, item, isInner: several })) : []
    return several ? [{ key: `group ${group.key}`, group, isOpen }, ...items] : items
  })
}
