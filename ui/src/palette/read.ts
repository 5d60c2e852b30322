// The newest of a list, page after page, up to a number.
import { get, type Query } from '../api/client'
import type { Page } from '../api/types'

const EACH = 200

export async function readSome<T>(address: '/chats' | '/runs', most: number): Promise<T[]> {
  const all: T[] = []
  let cursor: string | null = null
  do {
    const query: Query = { limit: Math.min(EACH, most - all.length), ...(cursor && { cursor }) }
    const page: Page<T> = await get<Page<T>>(address, { query })
    all.push(...page.data)
    cursor = page.next_cursor
  } while (cursor !== null && all.length < most)
  return all
}
