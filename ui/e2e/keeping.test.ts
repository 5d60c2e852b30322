// What people keep: files they write themselves, tokens for programs, runs they go on from elsewhere, agents they try on the past.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, listen, look, order, setUp, tidy, type Story } from './story'

/** It is let into no notebook. */
const SHUT = '---\nname: Shut\n---\nSay hello.\n'
let story: Story
beforeAll(async () => {
  story = await begin({ agents: { 'shut.md': SHUT } })
  await setUp(story)
  await tidy(story.page)
  await story.page.getByRole('button', { name: 'Approve', exact: true }).click()
  await story.page.getByText('is tidy now').waitFor()
})
afterAll(() => story?.end())

/** Writes over the whole text of the file that is open, once its editor has come. */
async function write(page: Page, text: string): Promise<void> {
  await page.locator('.cm-content').click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

it('makes a file, saves it, and keeps who did so', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/files/welcome`)
  await page.getByRole('button', { name: 'New file' }).click()
  await page.getByLabel('Path').fill('notes/plan.md')
  await page.getByRole('button', { name: 'Make the file' }).click()
  await page.getByRole('heading', { name: '/notes/plan.md' }).waitFor()
  await page.getByRole('tab', { name: 'Edit' }).click()
  await write(page, '# Plan\n\nWater the tomatoes: $a^2$.\n')
  await page.getByText('Not saved yet').waitFor()
  await page.keyboard.press('Control+s')
  await page.getByText('Saved.', { exact: true }).waitFor()

  await page.getByRole('tab', { name: 'Preview' }).click()
  await page.getByRole('heading', { name: 'Plan', exact: true }).waitFor()
  await page.locator('math msup').waitFor()
  await page.getByRole('tab', { name: 'History' }).click()
  await page.getByRole('listitem').filter({ hasText: 'dana changed' }).waitFor()
})

it('says of each line who wrote it, and of the file who could touch it', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/files/welcome?path=/todo.md`)
  await page.getByRole('tab', { name: 'Who wrote it' }).click()
  const lines = page.getByRole('region', { name: 'Lines of /todo.md' })
  await lines.getByRole('link', { name: 'Guide' }).first().waitFor()
  expect(await lines.getByRole('row', { name: /# To do/ }).innerText()).toContain('before')

  await page.getByRole('button', { name: 'Who can touch this?' }).click()
  const row = page.getByRole('dialog').getByRole('row', { name: /Guide/ })
  await row.waitFor()
  expect((await row.getByRole('cell').allInnerTexts()).slice(0, 2)).toEqual(['yes', 'asks'])
  expect(await page.getByRole('dialog').getByRole('row', { name: /Shut/ }).getByRole('cell').allInnerTexts()).toEqual(Array(4).fill('no'))
})

it('does not save over what somebody else saved meanwhile', async () => {
  const { page, server } = story
  const address = `${server.url}/files/welcome?path=/notes/plan.md`
  await page.goto(address)
  await page.getByRole('tab', { name: 'Edit' }).click()
  const mine = page.getByRole('textbox', { name: 'Text of /notes/plan.md' })
  await write(page, 'mine')

  const other = await story.browser.context.newPage()
  await other.goto(address)
  await other.getByRole('tab', { name: 'Edit' }).click()
  await write(other, 'theirs')
  await other.getByRole('button', { name: 'Save' }).click()
  await other.getByText('Saved.', { exact: true }).waitFor()
  await other.close()

  const before = story.wrong.length
  await page.getByRole('button', { name: 'Save' }).click()
  const question = page.getByRole('alert', { name: 'It changed meanwhile' })
  await question.getByText('theirs').waitFor()
  expect(await mine.innerText()).toBe('mine')
  await question.getByRole('button', { name: 'Save mine over it' }).click()
  await page.getByText('Saved.', { exact: true }).waitFor()
  await page.getByRole('tab', { name: 'History' }).click()
  await page.getByRole('listitem').filter({ hasText: 'dana changed' }).nth(2).waitFor()
  // A browser reports the answer that says so.
  story.wrong.splice(before)
})

it('makes a token that is shown once, works, and works no more when it is revoked', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/tokens`)
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByLabel('What it is for').fill('the nightly script')
  await page.getByRole('button', { name: 'Make the token' }).click()
  const secret = await page.getByText(/^adj_\w+$/).innerText()
  const me = (): Promise<Response> => fetch(`${server.url}/api/v1/me`, { headers: { authorization: `Bearer ${secret}` } })
  expect((await me()).status).toBe(200)

  await page.reload()
  const row = page.getByRole('row', { name: /the nightly script/ })
  await row.waitFor()
  expect(await page.getByText(secret).count()).toBe(0)
  await row.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('the nightly script is no longer good.').waitFor()
  expect((await me()).status).toBe(401)
})

it('goes on from an event in the middle of a run, without touching anything', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'tidy the welcome notes' }).first().click()
  const first = page.url()
  await page.getByRole('tab', { name: 'Events' }).click()
  await page.getByRole('button', { name: /tool_result/ }).first().click()
  await page.getByRole('button', { name: 'Start the fork' }).click()
  await page.waitForURL((url) => url.pathname.startsWith('/runs/') && !first.includes(url.pathname))
  await page.getByRole('heading', { name: 'A fork of another run' }).waitFor()
  await page.getByText('Done').first().waitFor()
  // It is shown as it is now, not as the other was at the event it began with.
  const place = page.getByRole('slider', { name: 'Place in the run' })
  const ends = async (): Promise<boolean> => (await place.inputValue()) === (await place.getAttribute('max'))
  expect(await ends()).toBe(true)
  await page.evaluate(() => (location.hash = '#1'))
  await page.getByRole('button', { name: 'One step back' }).and(page.locator(':disabled')).waitFor()
  await page.goBack()
  await page.getByRole('button', { name: 'One step on' }).and(page.locator(':disabled')).waitFor()
})

it('shows what the model saw, as it was sent', async () => {
  const { page, server } = story
  const fork = page.url()
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'tidy the welcome notes' }).first().click()
  await page.getByRole('button', { name: 'What the model saw' }).click()
  const seen = page.getByRole('dialog', { name: 'What the model saw' })
  await seen.getByText('as it was sent, to the last byte').waitFor()
  await seen.getByText('You are Guide').waitFor()
  await seen.getByRole('button', { name: 'The call before' }).click()
  await seen.getByText(/call \d of \d/).waitFor()
  await page.keyboard.press('Escape')
  await page.goto(fork)
})

it('shows two runs beside each other', async () => {
  const { page } = story
  await page.getByRole('button', { name: 'Compare' }).click()
  await page.getByRole('menuitem', { name: /tidy the welcome notes/ }).first().click()
  await page.getByRole('heading', { name: 'Two runs' }).waitFor()
  await page.getByRole('region', { name: 'Difference of Steps: − only in the first run' }).waitFor()
  await page.getByRole('columnheader', { name: /^− First run/ }).waitFor()
  await page.getByRole('row', { name: /Files changed/ }).getByText('/todo.md').waitFor()
})

it('keeps a search of the record under a name', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/audit?q=agent:guide`)
  // A run is begun by somebody, and carried out by an agent.
  await page.getByRole('row', { name: /dana agent guide Run started/ }).first().waitFor()
  await page.getByRole('button', { name: 'Keep this search' }).click()
  await page.getByLabel('Name of the view').fill('What the guide did')
  await page.keyboard.press('Enter')
  await page.goto(`${server.url}/audit`)
  await page.getByRole('button', { name: 'What the guide did', exact: true }).click()
  await page.waitForURL((url) => url.searchParams.get('q') === 'agent:guide')
  await page.getByRole('button', { name: 'Forget the view What the guide did' }).click()
  expect(await page.getByRole('button', { name: 'What the guide did', exact: true }).count()).toBe(0)
})

it('tries an edit of an agent on the past before it is saved', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide?tab=scope`)
  await page.getByRole('checkbox', { name: 'Write in /' }).uncheck()
  const past = page.getByRole('region', { name: 'On the past' })
  await past.getByRole('button', { name: 'Try the edit' }).click()
  await past.getByText(/calls judged again/).waitFor()
  await past.getByText('1 newly refused').waitFor()
  await page.getByRole('button', { name: 'Discard' }).click()
  expect(await page.getByRole('checkbox', { name: 'Write in /' }).isChecked()).toBe(true)
})

it('shows in every tab what happens in one', async () => {
  const { page, server } = story
  const other = await story.browser.context.newPage()
  listen(other, server.url, story.wrong)
  await other.goto(`${server.url}/runs`)
  await other.getByRole('heading', { name: 'Runs' }).waitFor()
  await order(story, 'summarise the notes')
  await other.getByRole('row', { name: /summarise the notes/ }).getByText('Done').waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('save the summary')
  await page.keyboard.press('Enter')
  await other.getByRole('row', { name: /save the summary/ }).getByText('Needs you').waitFor()
  await other.getByRole('link', { name: /Inbox/ }).getByText('1').waitFor()
  await page.getByRole('button', { name: 'Reject' }).click()
  await other.getByRole('row', { name: /save the summary/ }).getByText('Done').waitFor()
  await other.close()
})

it('works in more tabs than a browser has connections, each with a run that waits', async () => {
  const { page, server } = story
  await order(story, 'save the summary')
  const approve = (tab: Page) => tab.getByRole('button', { name: 'Approve', exact: true })
  const tabs = [page]
  await approve(page).waitFor()
  while (tabs.length < 8) {
    const tab = await story.browser.context.newPage()
    listen(tab, server.url, story.wrong)
    await tab.goto(page.url())
    await approve(tab).waitFor()
    tabs.push(tab)
    // Four side by side; the others stand behind them.
    if (tabs.length > 4) await look(tab, false)
  }
  const [first, , , last, behind] = tabs as [Page, Page, Page, Page, Page]
  await approve(last).click()
  await first.getByText('Approved by you').waitFor()
  expect(await approve(behind).count()).toBe(1)
  await look(behind, true)
  await behind.getByText('Approved by you').waitFor()
  for (const tab of tabs.slice(1)) await tab.close()
})

it('undoes a run from the history of a file that it changed', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/files/welcome?path=/todo.md&view=history`)
  const undo = page.getByRole('button', { name: 'Undo the run…' })
  await undo.last().waitFor()
  // Once for each run, however often it changed the file.
  const runs = await page.getByRole('link', { name: 'See the run' }).evaluateAll((links) => new Set(links.map((link) => link.getAttribute('href'))).size)
  await expect.poll(() => undo.count()).toBe(runs)
  await undo.last().click()
  await page.getByRole('button', { name: 'Put 1 file back' }).click()
  await page.getByText('1 file is as it was before.').waitFor()
  await page.getByRole('tab', { name: 'Preview' }).click()
  await page.getByText('buy mlik').waitFor()
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
