// Money: a run that holds at its budget and goes on with more, what was spent as bars and numbers, and what may be.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './server'
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

/** A model of which nobody knows the price: it says one word. */
const SAID = [{ choices: [{ index: 0, delta: { content: 'Hello.' } }] }, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }, { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }]
const own = createServer((_, answer) => {
  answer.writeHead(200, { 'content-type': 'text/event-stream' })
  answer.end([...SAID.map((piece) => JSON.stringify({ id: '1', object: 'chat.completion.chunk', model: 'x', ...piece })), '[DONE]'].map((line) => `data: ${line}\n\n`).join(''))
})
const DEAR = `---
name: Dear
model: own/x
---
Answer in one word.
`
const FRESH = `---
name: Fresh
budget:
  run_usd: 0.25
---
Answer in one word.
`

let story: Story
beforeAll(async () => {
  const port = await freePort()
  own.listen(port, '127.0.0.1')
  const settings = `\n[providers.own]\nkind = "compatible"\nbase_url = "http://127.0.0.1:${port}/v1"\n`
  story = await begin({ script: SCRIPT, dollarsForAMillion: 1, settings, agents: { 'dear.md': DEAR, 'fresh.md': FRESH } })
  await setUp(story)
})
afterAll(async () => {
  await story?.end()
  own.close()
})

it('sets what an agent may spend', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide?tab=limits`)
  await page.getByLabel('Dollars of one run').fill('0.4')
  expect(await page.getByRole('checkbox', { name: /Models without a known price/ }).isChecked()).toBe(false)
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

it('asks before it asks a model whose price is not known, and speaks of no amount', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/chat?agent=dear`)
  await page.getByRole('textbox', { name: 'Message' }).fill('greet')
  await page.keyboard.press('Enter')
  const card = page.getByRole('region', { name: /Needs you: The price of the model `own\/x` is not known/ })
  await card.getByText('The price of the model is not known', { exact: true }).waitFor()
  await card.getByRole('button', { name: 'Ask it anyway' }).waitFor()
  expect(await page.getByRole('button', { name: /and continue/ }).count()).toBe(0)
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('button', { name: /^The price of the model is not known/ }).waitFor()
  await page.getByRole('button', { name: 'Ask it anyway' }).click()
  await page.getByText('Nothing needs you').waitFor()
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'greet' }).click()
  await page.getByRole('paragraph').filter({ hasText: 'Hello.' }).waitFor()
})

it('shows what was spent as bars and as numbers', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/usage`)
  const spent = page.getByRole('region', { name: 'What was spent' })
  await spent.getByRole('img', { name: /Dollars by day/ }).waitFor()
  await spent.getByRole('row', { name: /guide/i }).getByText('$0.4').waitFor()
  expect(await spent.locator('svg rect').count()).toBe(1)
  // The bars in numbers, for whoever does not see them.
  await spent.getByText('Day by day').click()
  await spent.getByRole('region', { name: 'Day by day' }).getByRole('row', { name: /^\d{4}-\d\d-\d\d .*\$0\.4/ }).waitFor()
  await spent.getByText('Day by day').click()
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
  // An agent that has not run yet is known by where it holds.
  await page.goto(`${server.url}/chat?agent=fresh`)
  await page.getByText('at most $0.25').waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('say it')
  await page.keyboard.press('Enter')
  await page.getByText('See the run').waitFor()
  // Its own run is counted as soon as it is over.
  await page.getByText(/about \$0\.0/).waitFor()
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

it('keeps what a budget says about models without a price', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/usage`)
  const budgets = page.getByRole('region', { name: 'Budgets' })
  const unpriced = budgets.getByRole('checkbox', { name: /Models without a known price/ })
  await budgets.getByRole('button', { name: 'Change' }).first().click()
  expect(await unpriced.isChecked()).toBe(false)
  await unpriced.check()
  await budgets.getByRole('button', { name: 'Save' }).click()
  await unpriced.waitFor({ state: 'detached' })
  await budgets.getByRole('button', { name: 'Change' }).first().click()
  expect(await unpriced.isChecked()).toBe(true)
  await budgets.getByLabel('Dollars a month').fill('60')
  await budgets.getByRole('button', { name: 'Save' }).click()
  await budgets.getByText(/of \$60\.00/).waitFor()
  const kept = await page.evaluate(async () => (await (await fetch('/api/v1/workspaces/home/budget')).json()).budget)
  expect(kept).toMatchObject({ month_usd: 60, allow_unpriced: true })
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
