// Two people with different roles, a session that ends, and a server that goes and comes back.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startBrowser, type Browser } from './browser'
import { begin, listen, order, setUp, tidy, type Story } from './story'

let story: Story
let second: Browser
let lee: Page
beforeAll(async () => {
  story = await begin()
  second = await startBrowser()
  lee = await second.context.newPage()
  listen(lee, story.server.url, story.wrong)
  await setUp(story)
})
afterAll(async () => {
  await second?.close()
  await story?.end()
})

it('lets somebody in by a link that is good once, and shows them what their role allows', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/people`)
  await page.getByLabel('Invite somebody as').selectOption('read')
  await page.getByRole('button', { name: 'Make a link' }).click()
  const link = await page.getByText(/\/login#invite=/).innerText()

  await lee.goto(link)
  await lee.getByLabel('Name').fill('lee')
  await lee.getByLabel('New password').fill('another long sentence')
  await lee.getByRole('button', { name: 'Join' }).click()
  await lee.getByText('You may look, but not run agents').waitFor()
  expect(await lee.getByRole('textbox', { name: 'Message' }).count()).toBe(0)
  await lee.goto(`${server.url}/settings`)
  await lee.getByRole('heading', { name: 'lee' }).waitFor()
  expect(await lee.getByRole('link', { name: 'People' }).count()).toBe(0)
})

it('takes a link back that nobody has used', async () => {
  const { page } = story
  // The link from before is used by now, and gone from the list.
  await page.reload()
  await page.getByRole('button', { name: 'Make a link' }).click()
  const open = page.getByRole('region', { name: 'Open invitations' })
  await open.getByText('ends in 7 days').waitFor()
  const link = await page.getByText(/\/login#invite=/).innerText()
  await open.getByRole('button', { name: 'Take back' }).click()
  await page.getByText('The link lets nobody in any more.').waitFor()
  await open.waitFor({ state: 'detached' })
  const before = story.wrong.length
  const status = await page.evaluate(async (token) => (await fetch('/api/v1/invites/accept', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token, name: 'nobody', password: 'a third long sentence' }) })).status, link.split('invite=')[1])
  expect(status).toBe(410)
  // A browser reports the answer that says so.
  await expect.poll(() => story.wrong.length).toBe(before + 1)
  story.wrong.splice(before)
})

it('shows whoever only reads what is shared, without a button that would be refused', async () => {
  const { page, server } = story
  await page.goto(server.url)
  await tidy(page)
  await page.getByRole('button', { name: 'What can be done with this chat' }).click()
  await page.getByRole('menuitem', { name: 'Share it with the workspace' }).click()
  await page.getByText('shared', { exact: true }).waitFor()

  await lee.goto(page.url())
  const question = lee.getByRole('region', { name: /Needs you: write_file/ })
  await question.getByText('one of its approvers, or an admin decides').waitFor()
  await question.getByRole('region', { name: /Difference of/ }).waitFor()
  const refused = /^(Approve|Reject|Edit|Stop|Pause|Undo|Save|Delete|Edit this message|Fork from this message|Start the fork|What can be done with this chat)/
  expect(await lee.getByRole('button', { name: refused }).count()).toBe(0)
  const run = await page.evaluate(async () => (await (await fetch(`/api/v1${location.pathname.replace('/chat/', '/chats/')}`)).json()).last_run_id)
  await lee.goto(`${server.url}/runs/${run}`)
  await lee.getByText('one of its approvers, or an admin decides').waitFor()
  expect(await lee.getByRole('button', { name: refused }).count()).toBe(0)
  await lee.goto(`${server.url}/agents/guide?tab=scope`)
  await lee.getByText('You may look, but not change it.').waitFor()
  expect(await lee.getByRole('button', { name: refused }).count()).toBe(0)
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByText('See the run').waitFor()
  await page.goto(`${server.url}/settings/people`)
})

it('gives more to whoever gets another role, without showing them what is not theirs', async () => {
  const { page, server } = story
  await lee.goto(server.url)
  await lee.getByText('You may look, but not run agents').waitFor()
  await page.reload()
  await page.getByLabel('Role of lee').selectOption('write')
  await page.getByText('Changed.').waitFor()
  // A page that is open follows.
  await lee.getByRole('textbox', { name: 'Message' }).waitFor()
  await page.goto(server.url)
  await tidy(page)

  await lee.goto(server.url)
  await lee.getByRole('button', { name: /tidy the welcome notes/i }).waitFor()
  await lee.goto(`${server.url}/inbox`)
  await lee.getByText('Nothing needs you').waitFor()
})

it('names whoever decided', async () => {
  const { server } = story
  await lee.goto(server.url)
  await tidy(lee)
  const admin = await story.browser.context.newPage()
  listen(admin, server.url, story.wrong)
  await admin.goto(lee.url())
  await admin.getByRole('button', { name: 'Reject' }).click()
  await lee.getByText('Rejected by dana').waitFor()
  await admin.close()
})

it('offers a question of a shared chat only to whoever may decide it', async () => {
  const { page, server } = story
  await page.getByRole('button', { name: 'What can be done with this chat' }).click()
  await page.getByRole('menuitem', { name: 'Share it with the workspace' }).click()
  await page.getByText('shared', { exact: true }).waitFor()

  await lee.goto(`${server.url}/inbox`)
  await lee.getByRole('button', { name: /write_file .*others decide/ }).waitFor()
  await lee.getByText('one of its approvers, or an admin decides').waitFor()
  const offered = /^(Approve|Reject|Edit|Tell it|Stop the run)/
  expect(await lee.getByRole('button', { name: offered }).count()).toBe(0)
  expect(await lee.getByRole('checkbox').count()).toBe(0)
  expect(await lee.getByText(/waits? for you/).count()).toBe(0)
  await lee.keyboard.press('x')
  await lee.goto(page.url())
  await lee.getByText('one of its approvers, or an admin decides').waitFor()
  expect(await lee.getByRole('button', { name: offered }).count()).toBe(0)
  // It still waits for whoever may.
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
})

it('offers a yes for always only to whoever may change the agent', async () => {
  const { page, server } = story
  await page.getByRole('button', { name: 'Approve for longer' }).click()
  await page.getByRole('menuitem', { name: 'Always…' }).waitFor()
  await page.keyboard.press('Escape')
  await lee.goto(server.url)
  await tidy(lee)
  await lee.getByRole('button', { name: 'Approve for longer' }).click()
  await lee.getByRole('menuitem', { name: 'For this run…' }).waitFor()
  expect(await lee.getByRole('menuitem', { name: 'Always…' }).count()).toBe(0)
  await lee.keyboard.press('Escape')
  await lee.getByRole('button', { name: 'Reject' }).click()
  await lee.getByText('Rejected by you').waitFor()
})

it('says when the server is gone, and goes on where it was when it is back', async () => {
  const { page, server } = story
  const before = story.wrong.length
  await server.kill()
  // Coming back to a tab makes the page ask at once instead of at its next turn.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await page.getByText('The server is not answering.').waitFor()

  await server.restart()
  await page.getByRole('button', { name: 'Ask again' }).click()
  await page.getByText('The server is not answering.').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('is tidy now').waitFor()
  // A browser reports each request that could not reach the server.
  story.wrong.splice(before)
})

it('shares an agent with somebody, who sees it then', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/new`)
  await page.getByRole('textbox', { name: 'Name' }).fill('Keeper')
  await page.getByRole('button', { name: 'Make the agent' }).click()
  await page.getByRole('heading', { name: 'Keeper' }).waitFor()
  await lee.goto(`${server.url}/agents`)
  await lee.getByRole('link', { name: /Guide/ }).waitFor()
  expect(await lee.getByRole('link', { name: /Keeper/ }).count()).toBe(0)

  await page.getByRole('tab', { name: 'People' }).click()
  await page.getByRole('checkbox', { name: 'Share it with lee' }).check()
  // A look at another tab keeps the choice.
  await page.getByRole('tab', { name: 'Versions' }).click()
  await page.getByText('The first version.').waitFor()
  await page.getByRole('tab', { name: 'People' }).click()
  expect(await page.getByRole('checkbox', { name: 'Share it with lee' }).isChecked()).toBe(true)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2.').waitFor()
  await page.getByRole('tab', { name: 'Versions' }).click()
  await page.getByRole('listitem').filter({ hasText: 'Version 2' }).getByText('Nothing but its people or owner changed.').waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Version 1' }).getByText('The first version.').waitFor()

  await lee.goto(`${server.url}/agents/keeper?tab=people`)
  await lee.getByText('Only its owner or an admin may change it').waitFor()
  expect(await lee.getByRole('checkbox', { name: /decides what it asks/ }).isDisabled()).toBe(true)
})

it('lets whoever is named an approver decide what others were asked', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide?tab=people`)
  await page.getByRole('checkbox', { name: 'lee decides what it asks' }).check()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText(/Saved as version/).waitFor()
  await order(story, 'save the summary')
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
  await lee.goto(`${server.url}/inbox`)
  await lee.getByRole('button', { name: 'Reject', exact: true }).click()
  await page.getByText('Rejected by lee').waitFor()
})

it('offers nobody as an approver who only looks, and says when it cannot tell who is there', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/people`)
  await page.getByLabel('Role of lee').selectOption('read')
  await page.getByText('Changed.').waitFor()
  await page.goto(`${server.url}/agents/keeper?tab=people`)
  await page.getByRole('row', { name: /lee/ }).getByText('only looks').waitFor()
  const before = story.wrong.length
  await page.route('**/members?*', (route) => route.abort())
  await page.reload()
  await page.getByRole('alert').waitFor()
  await page.unroute('**/members?*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('row', { name: /lee/ }).waitFor()
  // A browser reports what did not come.
  story.wrong.splice(before)
  await page.goto(`${server.url}/settings/people`)
  await page.getByLabel('Role of lee').selectOption('write')
  await page.getByText('Changed.').waitFor()
})

it('tells an admin who can check the chains', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/people`)
  await page.getByLabel('Role of lee').selectOption('admin')
  await lee.getByRole('link', { name: 'Audit' }).first().waitFor()
  await lee.goto(`${server.url}/audit`)
  await lee.getByText('The owner can check the chains.').waitFor()
  expect(await lee.getByRole('button', { name: 'Check the chains' }).count()).toBe(0)
  await lee.goto(server.url)
  await page.getByLabel('Role of lee').selectOption('write')
  await lee.getByRole('link', { name: 'Audit' }).first().waitFor({ state: 'detached' })
})

it('sends whoever was switched off to the door', async () => {
  const { page, server } = story
  const before = story.wrong.length
  await lee.goto(`${server.url}/runs`)
  await page.goto(`${server.url}/settings/people`)
  await page.getByRole('row', { name: /lee/ }).getByRole('button', { name: 'Switch off' }).click()
  await lee.getByText('Your session has ended').waitFor()
  expect(new URL(lee.url()).pathname).toBe('/runs')
  // Nothing below can be reached, and a new visit begins at the door.
  expect(await lee.evaluate(() => document.elementFromPoint(20, 20)?.closest('dialog') !== null)).toBe(true)
  await lee.reload()
  await lee.waitForURL((url) => url.pathname === '/login' && url.searchParams.get('next') === '/runs')
  // A browser reports the answer that says so.
  story.wrong.splice(before)
})

it('changes a workspace: its name, its days, a notebook, and what texts may hold', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/workspace`)
  await page.getByLabel('Name', { exact: true }).fill('The house')
  await page.getByLabel('Time zone').fill('Europe/Berlin')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved.', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Short name of a new notebook' }).fill('cellar')
  await page.getByRole('button', { name: 'New notebook' }).click()
  await page.getByRole('link', { name: 'cellar' }).waitFor()
  await page.getByRole('button', { name: 'Add an entry' }).click()
  await page.getByLabel('Look for').selectOption({ label: 'a pattern' })
  await page.getByLabel('Regular expression').fill('(?i)merger')
  await page.getByLabel('and', { exact: true }).selectOption('block')
  // What is saved in one card leaves what is being written in the others.
  await page.getByLabel('Time zone').fill('Europe/Paris')
  await page.getByLabel('Default model').fill('demo/guide')
  await page.getByRole('button', { name: 'Save these settings' }).click()
  await expect.poll(() => page.getByRole('button', { name: 'Save these settings' }).isDisabled()).toBe(true)
  await page.getByRole('textbox', { name: 'Short name of a new notebook' }).fill('attic')
  await page.getByRole('button', { name: 'New notebook' }).click()
  await page.getByRole('link', { name: 'attic' }).waitFor()
  expect(await page.getByLabel('Time zone').inputValue()).toBe('Europe/Paris')
  await page.getByLabel('Time zone').fill('Europe/Rome')
  await page.getByLabel('Name', { exact: true }).fill('The old house')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect.poll(() => page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true)
  await page.getByRole('button', { name: 'Save the filter' }).click()
  await expect.poll(() => page.evaluate(async () => (await (await fetch('/api/v1/workspaces/home')).json()).content_filter)).toEqual([{ pattern: '(?i)merger', points: ['prompt', 'output'], action: 'block' }])
  await page.reload()
  expect(await page.getByLabel('Regular expression').inputValue()).toBe('(?i)merger')
  expect(await page.getByLabel('Time zone').inputValue()).toBe('Europe/Rome')
})

it('erases what was said in old runs only after saying how many there are', async () => {
  const { page } = story
  const kept = (): Promise<string> => page.evaluate(async () => (await (await fetch('/api/v1/workspaces/home')).json()).keep_runs)
  const choose = async (label: string): Promise<void> => {
    await page.getByLabel('What was said in runs is kept').selectOption({ label })
    await page.getByRole('button', { name: 'Save these settings' }).click()
  }
  // Nothing here is that old, so nobody is asked.
  await choose('one year')
  await expect.poll(kept).toBe('365d')

  // A month cannot be waited for; what the server would say then is said for it.
  const bodies: unknown[] = []
  await page.route('**/erase', (route) => {
    bodies.push(route.request().postDataJSON())
    return route.fulfill({ json: { erased: false, runs: 3, bodies: 0, more: true } })
  })
  await choose('30 days')
  const question = page.getByRole('alertdialog')
  await question.getByText('What was said in 3 runs is erased, and nothing brings it back.').waitFor()
  await question.getByRole('button', { name: 'Cancel' }).click()
  await question.waitFor({ state: 'detached' })
  expect(await kept()).toBe('365d')
  await page.getByRole('button', { name: 'Save these settings' }).click()
  await question.getByRole('button', { name: 'Keep less' }).click()
  await expect.poll(kept).toBe('30d')
  expect(bodies).toEqual([{ before: '30d' }, { before: '30d' }])
  await page.unroute('**/erase')

  // More is kept without a question.
  await choose('for ever')
  await expect.poll(kept).toBe('forever')
  expect(await question.count()).toBe(0)
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
