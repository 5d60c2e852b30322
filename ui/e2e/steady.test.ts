// Nothing jumps while a screen fills: every place is held for what comes later than its frame.
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, type Story } from './story'
import { furnish, pathOf, type Places } from './screens'

/** Where a page counts as good; beyond it people press what has just moved. */
const MOST = 0.1
const WIDTHS = [390, 1440]
const MAIN: [place: string, text: string][] = [
  ['/chat', 'What should be done'],
  ['CHAT', 'Approve'],
  ['/inbox', 'write_file'],
  ['/runs', 'tidy the welcome notes'],
  ['RUN', 'Fork from here'],
  ['/agents', 'Guide'],
  ['/agents/new', 'Instructions'],
  ['/agents/guide', 'Instructions'],
  ['/files/welcome?path=/todo.md', 'Preview'],
  ['/usage', 'Budgets'],
  ['/rules', 'No standing rules'],
  ['/audit', 'Run started'],
  ['/settings/models', 'Which one would it be?'],
]

let story: Story
let places: Places
let page: Page
let waiting = 0
beforeAll(async () => {
  story = await begin()
  places = await furnish(story)
  page = await story.browser.context.newPage()
  await page.addInitScript(() => {
    const shifts: object[] = []
    Object.assign(window, { shifts })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as unknown as { value: number; sources: { node: Element | null }[] }[]) {
        shifts.push({ value: entry.value, what: entry.sources.map(({ node }) => `${node?.nodeName} ${node?.className ?? ''}`) })
      }
    }).observe({ type: 'layout-shift', buffered: true })
  })
  // Every answer comes after the page was drawn without it, as on a slow line.
  await page.route(/\/api\/v1\/(?!events)/, late)
})
afterAll(() => story?.end())

const drawn = (): Promise<unknown> => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
async function late(route: Route): Promise<void> {
  waiting += 1
  try {
    const answer = await route.fetch()
    // The page may have gone on to the next screen.
    await drawn().catch(() => undefined)
    await route.fulfill({ response: answer })
  } catch {
    await route.abort().catch(() => undefined)
  } finally {
    waiting -= 1
  }
}

it.each(WIDTHS.flatMap((width) => MAIN.map(([place, text]) => [width, place, text] as const)))('at %i px holds the places of %s', async (width, place, text) => {
  await page.setViewportSize({ width, height: 900 })
  await page.goto(story.server.url + pathOf(place, places))
  await page.getByText(text).filter({ visible: true }).first().waitFor()
  await expect.poll(() => waiting).toBe(0)
  await drawn()
  await expect.poll(() => waiting).toBe(0)
  const shifts = (await page.evaluate(() => (window as unknown as { shifts: { value: number }[] }).shifts)) ?? []
  const sum = shifts.reduce((all, { value }) => all + value, 0)
  expect(sum, JSON.stringify(shifts)).toBeLessThan(MOST)
})
