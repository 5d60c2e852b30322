// Starts Debian's Chromium with a new, empty profile and nothing that talks to the outside.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
  return {
    context,
    async close() {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
