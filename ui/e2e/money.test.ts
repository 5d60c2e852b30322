// Money: a run that holds at its budget and goes on with more, what was spent as bars and numbers, and what may be.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, order, setUp, type Story } from './story'

const SCRIPT = `
- when: { user: spend, turn: 1 }
  calls:
    - { name: read_file, arguments: { path: /todo.md } }
  usage: { input: 400000, output: 1000 }
- when: { user: spend }
  text: It was worth it.
  usage: { input: 1000, output: 1000 }
- text: That was cheap.
  usage: { input: 1000, output: 10 }
`

let story: Story
beforeAll(async () => {
  story = await begin({ script: SCRIPT, dollarsForAMillion: 1 })
  await setUp(story)
})
afterAll(() => story?.end())

it('sets what an agent may spend', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide?tab=limits`)
  await page.getByLabel('Dollars of one run').fill('0.4')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2.').waitFor()
})

it('holds at the budget, and goes on where it was with more', async () => {
  const { page, server } = story
  await order(story, 'spend')
  const card = page.getByRole('region', { name: /Needs you: The budget of the run is used up/ })
  await card.getByText('The money is used up').waitFor()
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('button', { name: /^\+\$[\d.]+ and continue$/ }).click()
  await page.getByText('Nothing needs you').waitFor()
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'spend' }).click()
  await page.getByRole('paragraph').filter({ hasText: 'It was worth it.' }).waitFor()
})

it('shows what was spent as bars and as numbers', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/usage`)
  const spent = page.getByRole('region', { name: 'What was spent' })
  await spent.getByRole('img', { name: /Dollars by day/ }).waitFor()
  await spent.getByRole('row', { name: /guide/i }).getByText('$0.4').waitFor()
  expect(await spent.locator('svg rect').count()).toBe(1)
  await page.getByLabel('By', { exact: true }).selectOption('model')
  await spent.getByRole('row', { name: /test\/any/ }).waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), spent.getByRole('link', { name: 'CSV' }).click()])
  expect(await readFile(await file.path(), 'utf8')).toMatch(/^day,.*\n(.*\n)*\d{4}-\d\d-\d\d,.*test\/any/)
  // What the month comes to is said beside what it has cost.
  await page.getByText('This month').waitFor()
  await page.getByText('Forecast').waitFor()
  await page.goto(`${server.url}/agents/guide?tab=usage`)
  await page.getByRole('row', { name: /test\/any/ }).waitFor()
})

it('says before an order what it is likely to cost', async () => {
  const { page, server } = story
  await page.goto(server.url)
  await page.getByText(/about \$0\.4/).waitFor()
})

it('sets what a workspace may spend in a month', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/usage`)
  const budgets = page.getByRole('region', { name: 'Budgets' })
  await budgets.getByRole('button', { name: 'Change' }).first().click()
  await budgets.getByLabel('Dollars a month').fill('50')
  await budgets.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.', { exact: true }).waitFor()
  await budgets.getByText(/of \$50\.00/).waitFor()
  await page.getByText('of $50.00', { exact: true }).waitFor()
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
