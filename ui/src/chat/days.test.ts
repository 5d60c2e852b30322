import { expect, it } from 'vitest'
import { byDay } from './days'

it('puts chats under their day and leaves out days without any', () => {
  const now = new Date(2026, 4, 10, 15).getTime()
  const on = (day: number) => ({ created_at: new Date(2026, 4, day, 9).toISOString() })
  const groups = byDay([on(10), on(9), on(1)], now)
  expect(groups.map((group) => [group.title, group.items.length])).toEqual([
    ['Today', 1],
    ['Yesterday', 1],
    ['Earlier', 1],
  ])
})
