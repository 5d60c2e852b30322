// The front page in a real browser, served by the real binary.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startBrowser, type Browser } from './browser'
import { startServer, type Server } from './server'

// One picture per user, because a shared folder keeps it for whoever took it first.
const picture = join(tmpdir(), `adjutant-front-page-${process.getuid?.() ?? 'user'}.png`)

let server: Server
let browser: Browser

beforeAll(async () => {
  server = await startServer()
  browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
})

it('opens without an error, asks nobody else, and says that the server runs', async () => {
  const page = await browser.context.newPage()
  const errors: string[] = []
  const asked: string[] = []
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('request', (request) => asked.push(new URL(request.url()).origin))

  await page.goto(server.url)
  expect(await page.title()).toBe('Adjutant')
  await page.getByText('The server is running.').waitFor()
  await page.screenshot({ path: picture })

  expect(errors).toEqual([])
  expect(new Set(asked)).toEqual(new Set([new URL(server.url).origin]))
  await page.close()
})

it('says so when the server goes away, and offers to ask again', async () => {
  const page = await browser.context.newPage()
  await page.goto(server.url)
  await page.getByText('The server is running.').waitFor()

  await server.stop()
  // Coming back to a tab makes the page ask at once instead of at its next turn.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await page.getByText('The server is not answering.').waitFor()
  await page.getByRole('button', { name: 'Ask again' }).waitFor()
  await page.close()
})
