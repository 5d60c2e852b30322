// What every browser test needs: a server, a browser, an owner who is signed in, and a list of what went wrong.
import type { Page } from 'playwright-core'
import { startBrowser, type Browser } from './browser'
import { startServer, type Server, type Start } from './server'

export const OWNER = { name: 'dana', password: 'a long sentence works' }

export interface Story {
  server: Server
  browser: Browser
  page: Page
  /** Errors of the console, and requests to anywhere else. */
  wrong: string[]
  end(): Promise<void>
}

export async function begin(start: Start = {}, browserArguments: string[] = []): Promise<Story> {
  const server = await startServer(start)
  const browser = await startBrowser(browserArguments)
  const page = await browser.context.newPage()
  const wrong: string[] = []
  listen(page, server.url, wrong)
  return {
    server,
    browser,
    page,
    wrong,
    async end() {
      await browser.close()
      await server.stop()
    },
  }
}

export function listen(page: Page, url: string, wrong: string[]): void {
  const origin = new URL(url).origin
  page.on('console', (message) => message.type() === 'error' && wrong.push(`${message.text()} ${message.location().url}`))
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('request', (request) => {
    const asked = new URL(request.url())
    if (asked.protocol.startsWith('http') && asked.origin !== origin) wrong.push(`asked ${asked.origin}`)
  })
}

/** Uses the link of the first start. */
export async function setUp({ page, server }: Story): Promise<void> {
  await page.goto(server.setUpLink)
  await page.getByLabel('Name').fill(OWNER.name)
  await page.getByLabel('New password').fill(OWNER.password)
  await page.getByRole('button', { name: 'Create the owner' }).click()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
}

/** Ends the session of a page like time does, and signs in again where the page asks for it. */
export async function expire(page: Page): Promise<void> {
  await page.context().clearCookies()
  // Coming back to a tab makes the page ask at once instead of at its next turn.
  await look(page, false)
  await look(page, true)
  const door = page.getByRole('dialog', { name: 'Sign in' })
  await door.getByText('Your session has ended').waitFor()
  await door.getByLabel('Name').fill(OWNER.name)
  await door.getByLabel('Password', { exact: true }).fill(OWNER.password)
  await door.getByRole('button', { name: 'Sign in' }).click()
  await door.waitFor({ state: 'detached' })
}

/** Gives the demo model its first order and waits for its question. */
export async function tidy(page: Page): Promise<void> {
  await page.getByRole('button', { name: /tidy the welcome notes/i }).click()
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
}

/** Says something to the first agent in a new chat. */
export async function order({ page, server }: Story, text: string): Promise<void> {
  await page.goto(server.url)
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => url.pathname.startsWith('/chat/'))
}

/** Turns to a tab, or away from it. A browser under test takes every tab for the one in front, so the tab is told. */
export async function look(page: Page, isLooked: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, !isLooked)
}
