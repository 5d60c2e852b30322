// How many calls of each agent people said yes to.
import { get } from '../api/client'
import type { Approval, Page } from '../api/types'

const EACH = 200
/** Beyond that nobody is kept waiting for one column. */
const MOST_PAGES = 5

/** By agent, since a moment; `null` where there are more than can be counted. */
export async function acceptedSince(from: string): Promise<Map<string, number> | null> {
  const counts = new Map<string, number>()
  let cursor: string | null = null
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page: Page<Approval> = await get<Page<Approval>>('/approvals', { query: { status: 'approved', order: 'desc', limit: EACH, ...(cursor && { cursor }) } })
    for (const { kind, agent_id: agent, decided_at: at } of page.data) if (kind === 'call' && at && at >= from) counts.set(agent, (counts.get(agent) ?? 0) + 1)
    cursor = page.next_cursor
    // What was asked last comes first.
    if (cursor === null || (page.data.at(-1)?.created_at ?? '') < from) return counts
  }
  return null
}
