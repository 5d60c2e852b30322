// Files that people and agents write at the same time: nothing is lost, and nothing has to be reloaded to be seen.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, expire, listen, order, setUp, tidy, type Story } from './story'

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
  const undo = desk.locator('.toast').filter({ hasText: '/ideas.md is deleted.' }).getByRole('button', { name: 'Undo' })
  await desk.getByRole('button', { name: 'Delete' }).click()
  await undo.click()
  await desk.getByText('It is as it was.').waitFor()
  expect(await desk.getByRole('tabpanel', { name: 'Preview' }).innerText()).toBe(text)
  // Later, too, from what is known of it.
  await desk.getByRole('button', { name: 'Delete' }).click()
  await desk.getByText('There is no such file now').waitFor()
  await desk.getByRole('button', { name: 'ideas.md' }).waitFor({ state: 'detached' })
  await desk.getByRole('listitem').filter({ hasText: 'dana deleted' }).first().getByRole('button', { name: 'Put it back' }).click()
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
  // The open file says that somebody asks about it.
  await desk.getByText('Guide asks to change this file.').waitFor()
  expect(await desk.getByRole('link', { name: 'Review' }).getAttribute('href')).toMatch(/^\/inbox\//)
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('is tidy now').waitFor()
  await desk.getByText('buy milk').waitFor()
  await desk.getByText('Guide asks to change this file.').waitFor({ state: 'detached' })
  await desk.getByRole('tab', { name: 'Who wrote it' }).click()
  await desk.getByText('approved by dana').first().waitFor()
  await desk.getByRole('tab', { name: 'History' }).click()
  await desk.getByText('approved by dana').first().waitFor()
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

it('keeps what somebody was writing in a file when their session has ended', async () => {
  await desk.locator('.cm-content').click()
  await desk.keyboard.insertText('Still here. ')
  await desk.getByText('Not saved yet').waitFor()
  const before = story.wrong.length
  await expire(desk)
  // A browser reports the answers that say so.
  story.wrong.splice(before)
  await desk.locator('.cm-content').getByText('Still here.').waitFor()
  await desk.getByRole('button', { name: 'Save', exact: true }).click()
  await desk.getByText('Saved.', { exact: true }).waitFor()
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

it('finds a file by its name and by the beginning of a word, and marks what it found', async () => {
  const search = desk.getByRole('searchbox', { name: 'Search in the files' })
  await search.fill('summ')
  const found = desk.getByRole('button', { name: '/summary.md' })
  await found.waitFor()
  expect(await found.locator('mark').first().textContent()).toBe('summ')
  await search.fill('mil')
  const todo = desk.getByRole('button', { name: /^\/todo\.md/ })
  await todo.waitFor()
  expect((await todo.locator('mark').first().textContent())?.toLowerCase()).toBe('milk')
  expect(await todo.innerText()).not.toContain('[milk]')
  await search.fill('')
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

it('shows a picture, hands over what it cannot show, and moves a file into a new folder', async () => {
  const { server } = story
  const put = (path: string, bytes: number[]): Promise<number> =>
    desk.evaluate(async ([path, bytes]) => (await fetch(`/api/v1/notebooks/welcome/files${path}`, { method: 'PUT', headers: { 'if-none-match': '*' }, body: new Uint8Array(bytes) })).status, [path, bytes] as const)
  const dot = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
  expect([await put('/dot.png', [...dot]), await put('/sums.bin', [0, 255, 0, 254])]).toEqual([201, 201])
  await desk.goto(`${server.url}/files/welcome?path=/dot.png`)
  const picture = desk.getByRole('img', { name: 'dot.png' })
  await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1)
  await desk.goto(`${server.url}/files/welcome?path=/sums.bin`)
  await desk.getByText('This is no text and no picture').waitFor()
  const [download] = await Promise.all([desk.waitForEvent('download'), desk.getByRole('link', { name: 'Download' }).click()])
  expect(download.suggestedFilename()).toBe('sums.bin')

  await desk.getByRole('button', { name: 'New folder' }).click()
  await desk.getByRole('dialog', { name: 'New folder' }).getByLabel('Path').fill('archive')
  await desk.getByRole('button', { name: 'Make the folder' }).click()
  await desk.getByRole('button', { name: 'archive' }).waitFor()
  await desk.getByRole('button', { name: 'Move…' }).click()
  await desk.getByRole('dialog', { name: 'Move the file' }).getByLabel('Path').fill('/archive/old-sums.bin')
  await desk.getByRole('button', { name: 'Move', exact: true }).click()
  await desk.getByRole('heading', { name: '/archive/old-sums.bin' }).waitFor()
  await desk.getByRole('button', { name: 'old-sums.bin' }).waitFor()
  await desk.getByRole('button', { name: 'sums.bin', exact: true }).waitFor({ state: 'detached' })
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
