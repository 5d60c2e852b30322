// Files that people and agents write at the same time: nothing is lost, and nothing has to be reloaded to be seen.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, listen, order, setUp, tidy, type Story } from './story'

let story: Story
let desk: Page
beforeAll(async () => {
  story = await begin()
  await setUp(story)
  // One tab gives orders, in the other a file is open.
  desk = await story.browser.context.newPage()
  listen(desk, story.server.url, story.wrong)
})
afterAll(() => story?.end())

it('brings back a file that was deleted', async () => {
  await desk.goto(`${story.server.url}/files/welcome?path=/ideas.md`)
  const text = await desk.getByRole('tabpanel', { name: 'Preview' }).innerText()
  await desk.getByRole('button', { name: 'Delete' }).click()
  await desk.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await desk.getByText('There is no such file now').waitFor()
  await desk.getByRole('button', { name: 'ideas.md' }).waitFor({ state: 'detached' })
  await desk.getByRole('listitem').filter({ hasText: 'dana deleted' }).getByRole('button', { name: 'Put it back' }).click()
  await desk.getByText('It is as it was.').waitFor()
  await desk.getByRole('tab', { name: 'Preview' }).click()
  expect(await desk.getByRole('tabpanel', { name: 'Preview' }).innerText()).toBe(text)
  await desk.getByRole('button', { name: 'ideas.md' }).waitFor()
})

it('shows what an agent writes in the open file', async () => {
  const { page } = story
  await desk.goto(`${story.server.url}/files/welcome?path=/todo.md`)
  await desk.getByText('buy mlik').waitFor()
  await tidy(page)
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('is tidy now').waitFor()
  await desk.getByText('buy milk').waitFor()
})

it('asks whose text counts when an agent changes what somebody is writing in', async () => {
  const { page } = story
  await desk.getByRole('tab', { name: 'Edit' }).click()
  await desk.locator('.cm-content').click()
  await desk.keyboard.insertText('By hand. ')
  await desk.getByText('Not saved yet').waitFor()
  await page.getByRole('link', { name: 'See the run' }).click()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Put 1 file back' }).click()
  await page.getByText('1 file is as it was before.').waitFor()
  // Its next run makes the tab look.
  await order(story, 'what do you remember')
  const question = desk.getByRole('alert', { name: 'It changed meanwhile' })
  await question.getByText('buy mlik').waitFor()
  await question.getByRole('button', { name: 'Take what is there' }).click()
  await desk.locator('.cm-content').getByText('buy mlik').waitFor()
})

it('shows what an agent makes in the tree', async () => {
  const { page } = story
  await order(story, 'summarise the notes')
  await page.getByText('See the run').waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('save the summary')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await desk.getByRole('button', { name: 'summary.md' }).waitFor()
})

it('asks about a file in the notebook it is in', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/workspace`)
  await page.getByRole('textbox', { name: 'Short name of a new notebook' }).fill('cellar')
  await page.getByRole('button', { name: 'New notebook' }).click()
  await page.getByRole('link', { name: 'cellar' }).click()
  await page.getByRole('button', { name: 'New file' }).click()
  await page.getByLabel('Path').fill('wine.md')
  await page.getByRole('button', { name: 'Make the file' }).click()
  await page.getByRole('link', { name: 'Ask about it' }).click()
  await page.getByRole('textbox', { name: 'Message' }).press('Enter')
  await page.waitForURL((url) => url.pathname.startsWith('/chat/'))
  const where = await page.evaluate(async () => {
    const chat = await (await fetch(`/api/v1${location.pathname.replace('/chat/', '/chats/')}`)).json()
    const books = await (await fetch(`/api/v1/workspaces/${chat.workspace_id}/notebooks`)).json()
    return books.data.find((one: { id: string }) => one.id === chat.notebook_id).slug
  })
  expect(where).toBe('cellar')
})

it('asks before an edit of an agent is left, and not when another part of it is shown', async () => {
  const { page, server } = story
  const asked: string[] = []
  let isLeaving = false
  page.on('dialog', (dialog) => {
    asked.push(dialog.message())
    void (isLeaving ? dialog.accept() : dialog.dismiss())
  })
  await page.goto(`${server.url}/agents/guide`)
  await page.getByLabel('Description').fill('Looks after the notes.')
  await page.getByRole('tab', { name: 'What it may touch' }).click()
  await page.getByRole('tab', { name: 'Basics' }).click()
  expect(asked).toEqual([])
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  expect(await page.getByLabel('Description').inputValue()).toBe('Looks after the notes.')
  isLeaving = true
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  await page.getByRole('heading', { name: 'Runs' }).waitFor()
  expect(asked).toEqual(Array(2).fill('Leave without saving? Your changes are lost.'))
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
