// A picture of every screen, wide and narrow, light and dark, for somebody to look at. ADJUTANT_PICTURES says where they go.
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { furnish, open, pathOf, SCREENS, type Places, type Scheme } from '../e2e/screens'
import { begin, type Story } from '../e2e/story'

const FOLDER = process.env['ADJUTANT_PICTURES'] ?? join(tmpdir(), 'adjutant-pictures')
const VIEWS: [width: number, scheme: Scheme][] = [
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
]

let story: Story
let places: Places
beforeAll(async () => {
  await mkdir(FOLDER, { recursive: true })
  story = await begin()
  places = await furnish(story)
})
afterAll(() => story?.end())

/** What the list names in capitals is one of many. */
const nameOf = (place: string): string => place.replace(/^[A-Z]+/, 'one $&').replace(/[^\w]+/g, '-').replace(/^-|-$/g, '').toLowerCase()

it.each(SCREENS)('takes pictures of %s', async (place, text) => {
  for (const [width, scheme] of VIEWS) {
    await open(story.page, story.server.url + pathOf(place, places), text, width, scheme)
    // What is still on its way is no picture of a screen.
    await expect.poll(() => story.page.locator('.skeleton').count(), { timeout: 30_000 }).toBe(0)
    await story.page.screenshot({ path: join(FOLDER, `${nameOf(place)}-${width}-${scheme}.png`), animations: 'disabled' })
  }
})

it('has a picture of each by a name of its own', () => {
  expect(new Set(SCREENS.map(([place]) => nameOf(place))).size).toBe(SCREENS.length)
  console.log(`The pictures are in ${FOLDER}`)
})
