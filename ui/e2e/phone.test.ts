// On a phone, in tabs that nobody looks at, and from a question to a rule.
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, listen, look, setUp, tidy, type Story } from './story'

let story: Story
beforeAll(async () => {
  story = await begin()
  await setUp(story)
})
afterAll(() => story?.end())

it('tells in the row of tabs what waits, also in tabs that nobody looks at', async () => {
  const { page, server } = story
  const behind = await Promise.all([1, 2].map(() => story.browser.context.newPage()))
  for (const tab of behind) {
    listen(tab, server.url, story.wrong)
    await tab.goto(`${server.url}/usage`)
    await tab.getByRole('heading', { name: 'Usage' }).waitFor()
    await look(tab, false)
  }
  await page.goto(server.url)
  await tidy(page)
  // The one that gave the order may be hidden, too: one of them still hears.
  for (const tab of [page, ...behind]) await tab.waitForFunction(() => document.title.startsWith('(1) '))
  await look(page, false)
  await page.getByRole('button', { name: 'Reject', exact: true }).click()
  for (const tab of behind) await tab.waitForFunction(() => document.title === 'Usage · Adjutant')
  await look(page, true)
  for (const tab of behind) await tab.close()
})

/** Whether two things that are shown cover each other. */
async function overlap(one: Locator, other: Locator): Promise<boolean> {
  const [a, b] = [await one.boundingBox(), await other.boundingBox()]
  if (!a || !b) throw new Error('one of the two is not shown')
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

it('has room for thumbs on a phone, and nothing that covers what is written', async () => {
  const { page, server } = story
  await page.setViewportSize({ width: 390, height: 900 })
  await page.goto(server.url)
  await tidy(page)
  const [approve, reject, edit] = await Promise.all(['Approve', 'Reject', 'Edit'].map((name) => page.getByRole('button', { name, exact: true }).boundingBox()))
  expect([approve?.y === reject?.y, (edit?.y ?? 0) > (reject?.y ?? 0), Math.min(approve?.height ?? 0, reject?.height ?? 0)]).toEqual([true, true, 44])

  const note = page.locator('.toast').last()
  for (const [width, word] of [[390, 'Share it'], [1440, 'Stop sharing it']] as const) {
    await page.setViewportSize({ width, height: 900 })
    await page.getByRole('button', { name: /What can be done with this chat/ }).click()
    await page.getByRole('menuitem', { name: new RegExp(word) }).click()
    await note.waitFor()
    expect(await overlap(note, page.locator('form.box'))).toBe(false)
    await note.getByRole('button', { name: 'Dismiss' }).click()
  }
  await page.setViewportSize({ width: 390, height: 900 })
  await page.getByRole('button', { name: 'More', exact: true }).click()
  for (const name of ['Sign out', 'Take the tour', 'Profile']) await page.getByRole('menuitem', { name }).waitFor()
  await page.getByRole('menuitem', { name: 'Search' }).click()
  await page.getByRole('combobox', { name: 'Search and commands' }).waitFor()
  await page.keyboard.press('Escape')
})

it('begins a rule about a question with a yes, and counts the call that waits', async () => {
  const { page, server } = story
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('link', { name: 'Make a rule…' }).click()
  await page.getByText('1 call that waits now is like this.').waitFor()
  expect([await page.getByLabel('Decision').inputValue(), await page.getByLabel('It ends after days').inputValue()]).toEqual(['allow', '30'])
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('button', { name: 'Reject', exact: true }).click()
  await page.getByText('Nothing needs you').waitFor()
})

it('tells of every event on a phone, too', async () => {
  const { page, server } = story
  await page.setViewportSize({ width: 390, height: 900 })
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'tidy the welcome notes' }).first().click()
  await page.getByRole('tab', { name: 'Events' }).click()
  await page.getByLabel('Show').selectOption('interaction_started')
  const said = page.getByRole('button', { name: /^1 .*interaction_started tidy the welcome notes/ }).getByText('tidy the welcome notes')
  await said.waitFor()
  await page.setViewportSize({ width: 1440, height: 900 })
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
