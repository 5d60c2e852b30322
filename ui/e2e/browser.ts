// Starts Debian's Chromium with a new, empty profile and nothing that talks to the outside.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'

export interface Browser {
  context: BrowserContext
  close(): Promise<void>
}

export async function startBrowser(more: string[] = []): Promise<Browser> {
  const executablePath = process.env['ADJUTANT_TEST_CHROMIUM']
  if (!executablePath) throw new Error('ADJUTANT_TEST_CHROMIUM must name the browser; `make test` sets it')

  const profile = await mkdtemp(join(tmpdir(), 'adjutant-profile-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    // Chromium refuses its sandbox to root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...more,
    ],
  })
  // Well below the time of a test, so that a failure says where it waited.
  context.setDefaultTimeout(Number(process.env['ADJUTANT_TEST_PATIENCE_MS'] ?? 30_000))
  const folder = process.env['ADJUTANT_TEST_PAGE']
  if (folder) await servePage(context, folder)
  return {
    context,
    async close() {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

const KINDS: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html', '.webmanifest': 'application/manifest+json' }
/** Takes the page from a folder in place of the one in the server, so that a change of it needs no new server while it is tried. */
async function servePage(context: BrowserContext, folder: string): Promise<void> {
  const isPage = ({ pathname }: URL): boolean => !/^\/(api|v1|docs|mcp|metrics|problems|healthz|readyz)(\/|$)/.test(pathname)
  await context.route(isPage, async (route) => {
    const { pathname } = new URL(route.request().url())
    const file = extname(pathname) === '' ? 'index.html' : pathname
    // The rules for what a page may load are the server's, and stay.
    const answer = await route.fetch()
    const { 'content-encoding': _, 'content-length': __, ...headers } = answer.headers()
    const body = await readFile(join(folder, file))
    await route.fulfill({ status: 200, headers: { ...headers, 'content-type': KINDS[extname(file)] ?? 'application/octet-stream' }, body })
  })
}
