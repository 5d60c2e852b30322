// Chats by day: today, yesterday, this week, earlier. Pure.
import { t } from '../i18n/t'

const DAY_MS = 86_400_000

export function byDay<T extends { created_at: string }>(all: T[], now: number): { title: string; items: T[] }[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0)
  const groups = [
    { title: t('Today'), from: midnight, items: [] as T[] },
    { title: t('Yesterday'), from: midnight - DAY_MS, items: [] as T[] },
    { title: t('This week'), from: midnight - 6 * DAY_MS, items: [] as T[] },
    { title: t('Earlier'), from: -Infinity, items: [] as T[] },
  ]
  for (const one of all) {
    const at = new Date(one.created_at).getTime()
    groups.find((group) => at >= group.from)?.items.push(one)
  }
  return groups.filter((group) => group.items.length > 0)
}
