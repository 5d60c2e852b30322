// What holds agents back: rules seen before they are saved, tools one by one, and a record that is whole.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, setUp, tidy, type Story } from './story'

let story: Story
beforeAll(async () => {
  story = await begin()
  await setUp(story)
  await tidy(story.page)
})
afterAll(() => story?.end())

it('begins a rule at the question it is about', async () => {
  const { page, server } = story
  const chat = page.url()
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('link', { name: 'Make a rule…' }).click()
  await page.getByText('Allow: write_file in / and below for Guide').waitFor()
  expect([await page.getByLabel('Tool').inputValue(), await page.getByLabel('Folders').inputValue()]).toEqual(['write_file', '/'])
  await page.goto(chat)
})

it('shows what a rule says and which calls it would have met, and then it holds', async () => {
  const { page, server } = story
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByText('See the run').waitFor()
  await page.goto(`${server.url}/rules`)
  await page.getByRole('button', { name: 'New rule' }).click()
  await page.getByLabel('Tool').selectOption('write_file')
  await page.getByText('Never: write_file anywhere for every agent').waitFor()
  await page.getByText('1 call of the last 30 days would have met it: 0 had been allowed, 1 asked, 0 refused.').waitFor()
  await page.getByLabel('Folders').fill('/elsewhere')
  await page.getByText('No call of the last 30 days would have met it.').waitFor()
  await page.getByLabel('Folders').fill('/')
  await page.getByRole('button', { name: 'Save the rule' }).click()
  await page.getByRole('listitem').filter({ hasText: 'write_file in / and below for every agent' }).getByText('Never').waitFor()

  await page.goto(server.url)
  await page.getByRole('button', { name: /tidy the welcome notes/i }).click()
  await page.getByText('See the run').waitFor()
  expect(await page.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0)
})

it('allows a tool at one host, and says why and until when', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/rules?tool=fetch_web_page&host=docs.example.org`)
  await page.getByLabel('Decision').selectOption('allow')
  await page.getByText('Allow: fetch_web_page at docs.example.org for every agent').waitFor()
  await page.getByText('Calls cannot be counted by host or argument.').waitFor()
  await page.getByLabel('Why (others see it)').fill('The manual lives there.')
  await page.getByRole('button', { name: 'Save the rule' }).click()
  const rule = page.getByRole('listitem').filter({ hasText: 'fetch_web_page at docs.example.org' })
  await rule.getByText('The manual lives there.').waitFor()
  await rule.getByText('ends in').waitFor()
  await rule.getByRole('button', { name: 'Remove' }).click()
  await rule.waitFor({ state: 'detached' })
  // What was removed by mistake is there again as it was.
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click()
  await rule.getByText('The manual lives there.').waitFor()
  await rule.getByText('ends in').waitFor()
  await rule.getByRole('button', { name: 'Remove' }).click()
  await rule.waitFor({ state: 'detached' })
})

it('allows a tool that acts nowhere by what it is called with', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/rules?tool=kv_set&argument=key=colour&argument=value=blue`)
  await page.getByLabel('Decision').selectOption('allow')
  await page.getByText('Allow: kv_set with key like “colour” with value like “blue” for every agent').waitFor()
  await page.getByLabel('Name of argument 2').waitFor()
  await page.getByRole('group', { name: 'Arguments' }).getByRole('button', { name: 'Remove' }).last().click()
  await page.getByLabel('What argument 1 is like').fill('colour.*')
  await page.getByRole('button', { name: 'Save the rule' }).click()
  const rule = page.getByRole('listitem').filter({ hasText: 'kv_set with key like “colour.*” for every agent' })
  await rule.getByText('Allow').waitFor()
  const kept = await page.evaluate(async () => (await (await fetch('/api/v1/rules')).json()).data.find((one: { tool: string }) => one.tool === 'kv_set').when)
  expect(kept).toEqual({ arguments: { key: 'colour.*' } })
  await rule.getByRole('button', { name: 'Remove' }).click()
  await rule.waitFor({ state: 'detached' })
})

it('names what lies just outside of an agent, and lets it in', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/new?tab=scope`)
  await page.getByRole('textbox', { name: 'Folder or pattern' }).fill('/projects')
  const reach = page.getByRole('region', { name: 'What can it touch?' })
  const outside = reach.getByRole('group').filter({ hasText: 'Just outside' })
  await outside.getByText('Just outside').click()
  await outside.getByText('/todo.md', { exact: true }).waitFor()
  expect(await outside.innerText()).not.toContain('[object')
  await outside.getByRole('button', { name: 'Let it read /todo.md' }).click()
  await outside.getByText('/todo.md', { exact: true }).waitFor({ state: 'detached' })
  await reach.getByText('Read', { exact: true }).click()
  await reach.getByText('/todo.md', { exact: true }).waitFor()
})

it('begins an edit with the folder that a refusal names', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide/scope?grant=${encodeURIComponent('{"path":"/secret","operations":["read","write"]}')}`)
  const write = page.getByRole('checkbox', { name: 'Write in /secret' })
  await write.waitFor()
  expect([await write.isChecked(), await page.getByRole('checkbox', { name: 'Delete in /secret' }).isChecked()]).toEqual([true, false])
  await page.getByRole('button', { name: 'Discard' }).click()
  await write.waitFor({ state: 'detached' })
})

it('says what else an edit lets an agent into, and to whom it sends what it reads', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/files`)
  const made = await page.evaluate(async () => (await fetch('/api/v1/workspaces/home/notebooks', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ slug: 'papers' }) })).status)
  expect(made).toBe(201)
  await page.goto(`${server.url}/agents/new`)
  await page.getByRole('textbox', { name: 'Name' }).fill('Clerk')
  await page.getByRole('tab', { name: 'What it may touch' }).click()
  await page.getByRole('textbox', { name: 'Notebooks' }).fill('welcome')
  await page.getByRole('button', { name: 'Make the agent' }).click()
  await page.getByRole('heading', { name: 'Clerk' }).waitFor()
  await page.getByRole('tab', { name: 'What it may touch' }).click()
  const reach = page.getByRole('region', { name: 'What can it touch?' })
  await reach.getByText('Sends nothing to the network.').waitFor()
  await page.getByRole('textbox', { name: 'Notebooks' }).fill('welcome, papers')
  await reach.getByText('This edit lets it into papers').waitFor()
  await reach.getByRole('button', { name: 'Look into papers' }).click()
  await reach.getByText('In the notebook papers.').waitFor()
  await page.getByRole('checkbox', { name: 'May reach the hosts below' }).check()
  await page.getByRole('textbox', { name: 'Hosts' }).fill('docs.example.org')
  await reach.getByText('This edit lets it reach docs.example.org').waitFor()
  // The words of a model that is somebody else's leave the server, whatever its tools may reach.
  await page.getByRole('tab', { name: 'Basics' }).click()
  await page.getByLabel('Model', { exact: true }).fill('anthropic/claude-sonnet-5')
  await page.getByRole('tab', { name: 'What it may touch' }).click()
  await reach.getByText('Sends what it reads to api.anthropic.com; its tools send to: docs.example.org').waitFor()
  await page.getByRole('button', { name: 'Discard' }).click()
})

it('takes one tool from an agent and lets another always ask', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide?tab=scope`)
  await page.getByText('Tool by tool').click()
  await page.getByLabel('delete_file').selectOption('never')
  await page.getByLabel('read_file', { exact: true }).selectOption('ask')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2.').waitFor()
  await page.reload()
  await page.getByText('Tool by tool').click()
  expect([await page.getByLabel('delete_file').inputValue(), await page.getByLabel('read_file', { exact: true }).inputValue()]).toEqual(['never', 'ask'])
})

it('walks every chain and says what it walked', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/audit`)
  const chain = page.getByRole('region', { name: 'State of the chains' })
  await chain.getByRole('button', { name: 'Check the chains' }).click()
  await chain.getByText(/^Whole: \d+ entries$/).waitFor()
  await chain.getByText(/2 runs and \d+ logs were walked/).waitFor()
  // It is still known to whoever comes back.
  await page.getByRole('link', { name: 'Runs' }).first().click()
  await page.getByRole('heading', { name: 'Runs' }).waitFor()
  await page.getByRole('link', { name: 'Audit' }).first().click()
  await chain.getByText(/^checked (just now|1 minute ago)$/).waitFor()
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
