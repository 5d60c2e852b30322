// From nothing to a changed file: set-up, chat, approval with its difference, sign-out and back, a tab that is reloaded.
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, expire, OWNER, setUp, tidy, type Story } from './story'

let story: Story
beforeAll(async () => {
  story = await begin()
})
afterAll(() => story?.end())

/** What is sent to whoever takes this way of packing, unpacked by nobody. */
async function sent(path: string, way: string): Promise<{ way: string | undefined; bytes: Buffer; tag: string | undefined }> {
  const [answer] = (await once(request(story.server.url + path, { headers: { 'accept-encoding': way } }).end(), 'response')) as [IncomingMessage]
  const pieces = (await answer.toArray()) as Buffer[]
  return { way: answer.headers['content-encoding'], bytes: Buffer.concat(pieces), tag: answer.headers.etag }
}

async function todo(): Promise<string> {
  const notebooks = join(story.server.data, 'notebooks')
  const [first] = await readdir(notebooks)
  return readFile(join(notebooks, first ?? '', 'todo.md'), 'utf8')
}

it('makes whoever has the link the owner, and takes the secret out of the address', async () => {
  const { page } = story
  await setUp(story)
  expect(new URL(page.url()).pathname).toBe('/chat')
  await page.goto(story.server.setUpLink)
  await page.getByRole('heading', { name: 'Already set up' }).waitFor()
  await page.goto(`${story.server.url}/login#invite=secret`)
  await page.getByRole('heading', { name: 'You are invited' }).waitFor()
  expect(page.url()).not.toContain('secret')
})

it('loads no more script for a first visit than a slow line should carry', async () => {
  const { page, server } = story
  const scripts = new Map<string, Promise<Buffer>>()
  page.on('response', (answer) => answer.url().endsWith('.js') && scripts.set(answer.url(), answer.body()))
  await page.goto(`${server.url}/chat`)
  await page.getByRole('button', { name: /tidy the welcome notes/i }).waitFor()
  await page.getByLabel('Model').locator('option:checked', { hasText: 'demo/guide' }).waitFor({ state: 'attached' })
  const sizes = await Promise.all([...scripts.values()].map(async (body) => gzipSync(await body).length))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(150 * 1024)
})

it('sends its files packed to whoever takes them so', async () => {
  const page = (await sent('/', 'identity')).bytes.toString()
  const script = /\/assets\/index-[^"]+\.js/.exec(page)?.[0] ?? ''
  const plain = await sent(script, 'identity')
  const [best, good] = [await sent(script, 'gzip, br'), await sent(script, 'gzip;q=0.5, br;q=0')]
  expect([plain.way, best.way, good.way]).toEqual([undefined, 'br', 'gzip'])
  expect(brotliDecompressSync(best.bytes).equals(plain.bytes)).toBe(true)
  expect(gunzipSync(good.bytes).equals(plain.bytes)).toBe(true)
  expect(best.bytes.length).toBeLessThan(plain.bytes.length / 2)
  expect(new Set([plain.tag, best.tag, good.tag]).size).toBe(3)
  expect((await fetch(`${story.server.url}${script}.br`)).status).toBe(404)
  const again = await fetch(story.server.url + script, { headers: { 'accept-encoding': 'br', 'if-none-match': best.tag ?? '' } })
  expect([again.status, again.headers.get('vary')]).toEqual([304, 'accept-encoding'])
})

it('asks before it writes, shows the difference, goes on after a reload, and writes when allowed', async () => {
  const { page } = story
  await page.goto(story.server.url)
  await tidy(page)
  expect(await todo()).toContain('buy mlik')

  await page.reload()
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
  expect(await page.getByRole('article').count()).toBe(1)
  const diff = page.getByRole('region', { name: /Difference of/ })
  expect(await diff.innerText()).toContain('buy mlik')

  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('is tidy now').waitFor()
  expect(await todo()).toContain('buy milk')
  await page.getByText('1 file changed').waitFor()
})

it('takes back what the run did', async () => {
  const { page } = story
  const chat = page.url()
  await page.getByRole('link', { name: 'See the run' }).click()
  await page.getByRole('button', { name: 'Take back the last change of /todo.md' }).click()
  const one = page.getByRole('dialog', { name: 'Take back what this call did' })
  await one.getByText('goes back').waitFor()
  await one.getByRole('button', { name: 'Cancel' }).click()
  const files = page.getByRole('region', { name: 'Files of this run' })
  await files.getByRole('button', { name: 'Difference of /todo.md' }).click()
  await files.getByText('It is still as the run left it.').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  const dialog = page.getByRole('dialog', { name: 'Take back what this run did' })
  await dialog.getByText('goes back').waitFor()
  expect(await todo()).toContain('buy milk')
  await dialog.getByRole('button', { name: 'Put 1 file back' }).click()
  await page.getByText('1 file is as it was before.').waitFor()
  expect(await todo()).toContain('buy mlik')
  // A difference that is open says so.
  await files.getByText('What was changed since then').waitFor()
  await page.goto(chat)
  await page.getByText('is tidy now').waitFor()
})

it('lets somebody out, and in again to where they were', async () => {
  const { page } = story
  const before = new URL(page.url()).pathname
  await page.getByRole('button', { name: /Account of/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()

  await page.goto(story.server.url + before)
  await page.getByLabel('Name').fill(OWNER.name)
  await page.getByLabel('Password', { exact: true }).fill(OWNER.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('is tidy now').waitFor()
  expect(new URL(page.url()).pathname).toBe(before)
})

it('keeps what somebody was writing when the session has ended, and while another chat is open', async () => {
  const { page } = story
  const chat = page.url()
  const message = page.getByRole('textbox', { name: 'Message' })
  await message.fill('half a sentence')
  const before = story.wrong.length
  await expire(page)
  // A browser reports the answer that says so.
  story.wrong.splice(before)
  expect([page.url(), await message.inputValue()]).toEqual([chat, 'half a sentence'])
  await page.getByRole('link', { name: 'New chat' }).click()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  expect(await message.inputValue()).toBe('')
  await page.goBack()
  await page.getByText('is tidy now').waitFor()
  expect(await message.inputValue()).toBe('half a sentence')
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
