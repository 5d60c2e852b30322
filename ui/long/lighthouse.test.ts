// Lighthouse on the screens somebody sees before and after they sign in: accessibility and best practices.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../e2e/server'
import { begin, setUp, tidy, type Story } from '../e2e/story'

const LEAST = 95
const SCREENS = ['/login', '/setup', '/chat', '/inbox', '/runs', 'RUN', '/agents', '/agents/guide?tab=scope', '/files/welcome?path=/todo.md', '/rules', '/audit', '/usage', '/settings/tokens', '/settings/models', '/agents/guide?tab=credentials', '/agents/guide?tab=limits', '/settings/people', '/settings/about']

let story: Story
let port = 0
let run = ''
beforeAll(async () => {
  port = await freePort()
  story = await begin({}, [`--remote-debugging-port=${port}`])
  await setUp(story)
  await tidy(story.page)
  await story.page.goto(`${story.server.url}/runs`)
  run = (await story.page.getByRole('link', { name: 'tidy the welcome notes' }).getAttribute('href')) ?? ''
})
afterAll(() => story?.end())

async function scores(url: string): Promise<Record<string, number>> {
  const program = process.env['ADJUTANT_LIGHTHOUSE']
  if (!program) throw new Error('ADJUTANT_LIGHTHOUSE must name the program; `make test-long` sets it')
  const options = ['--quiet', '--output=json', `--port=${port}`, '--disable-storage-reset', '--only-categories=accessibility,best-practices', '--max-wait-for-load=20000']
  const { stdout } = await promisify(execFile)(program, [url, ...options], { maxBuffer: 64 * 1024 * 1024 })
  const report = JSON.parse(stdout) as { categories: Record<string, { score: number; auditRefs: { id: string }[] }>; audits: Record<string, { score: number | null }> }
  const failed = Object.entries(report.audits).filter(([, audit]) => audit.score !== null && audit.score < 1).map(([id]) => id)
  const found = Object.fromEntries(Object.entries(report.categories).map(([name, { score }]) => [name, Math.round(score * 100)]))
  console.log(new URL(url).pathname, found, failed.join(' '))
  return found
}

it.each(SCREENS)('%s is good enough for Lighthouse', async (place) => {
  const found = await scores(story.server.url + place.replace('RUN', run))
  expect(Math.min(...Object.values(found))).toBeGreaterThanOrEqual(LEAST)
})
