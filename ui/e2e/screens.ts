// Every screen of the page with a text that shows that it is there. Whatever looks at all of them takes this list.
import type { Page } from 'playwright-core'
import { pseudo } from '../src/i18n/pseudo'
import { setUp, tidy, type Story } from './story'

export type Scheme = 'light' | 'dark'
export type Screen = [place: string, text: string, width: number, scheme: Scheme]

/** A first visit in each width and scheme would take minutes; each screen has its own pair, the long tests try them all. */
export const SCREENS: Screen[] = [
  ['/chat', 'What should be done', 1440, 'light'],
  ['CHAT', 'Approve', 390, 'dark'],
  ['/inbox', 'write_file', 1024, 'dark'],
  ['QUESTION', 'Approve', 390, 'dark'],
  ['/runs', 'tidy the welcome notes', 390, 'light'],
  ['RUN', 'Fork from here', 1440, 'dark'],
  ['RUN?view=waterfall', 'Waiting', 1024, 'light'],
  ['RUN?view=events', 'interaction_started', 390, 'dark'],
  ['RUN/vs/RUN_ID', 'Both took the same steps', 390, 'light'],
  ['/agents', 'Guide', 390, 'dark'],
  ['/agents/guide?tab=scope', 'Folder or pattern', 390, 'light'],
  ['/agents/guide?tab=limits', 'Without asking', 390, 'light'],
  ['/agents/guide?tab=basics', 'Switched on', 390, 'dark'],
  ['/agents/guide?tab=people', 'Decides', 390, 'light'],
  ['/agents/guide?tab=versions', 'Version 1', 1024, 'light'],
  ['/agents/new', 'Instructions', 1440, 'dark'],
  ['/files/welcome?path=/todo.md', 'Preview', 1024, 'dark'],
  ['/files/welcome?path=/todo.md&view=edit', 'Saved', 390, 'light'],
  ['/files/welcome?path=/todo.md&view=lines', 'To do', 390, 'dark'],
  ['/files/welcome?path=/todo.md&view=history', 'No change is known', 1024, 'light'],
  ['/files/welcome', 'todo.md', 390, 'dark'],
  ['/nowhere', 'There is nothing here', 390, 'light'],
  ['/settings/nowhere', 'There is nothing here', 1024, 'dark'],
  ['/rules', 'No standing rules', 390, 'dark'],
  ['/agents/guide?tab=told', 'What it is told', 1024, 'dark'],
  ['/usage', 'Budgets', 1024, 'dark'],
  ['/agents/guide?tab=usage', 'Together', 390, 'light'],
  ['/audit', 'Check the chains', 1440, 'light'],
  ['/settings/stop', 'Stop everything', 390, 'dark'],
  ['/settings/profile', 'Present password', 1440, 'light'],
  ['/settings/appearance', 'Colours', 390, 'light'],
  ['/settings/models', 'Which one would it be?', 390, 'dark'],
  ['/agents/guide?tab=credentials', 'No keys are kept here', 1024, 'light'],
  ['/settings/tokens', 'New token', 1024, 'dark'],
  ['/settings/workspace', 'Content filter', 390, 'light'],
  ['/settings/people', 'Members', 390, 'dark'],
  ['/settings/tools', 'read_file', 390, 'light'],
  ['/settings/about', 'The HTTP API', 1024, 'light'],
]

/** Where the things are that the list names in capitals. */
export interface Places {
  run: string
  chat: string
  question: string
}
/** Makes an owner, and a run that asks. */
export async function furnish(story: Story): Promise<Places> {
  const { page, server } = story
  await setUp(story)
  await tidy(page)
  const chat = new URL(page.url()).pathname
  const asked = (await page.evaluate(async () => (await fetch('/api/v1/approvals')).json())) as { data: { id: string }[] }
  await page.goto(`${server.url}/runs`)
  const run = (await page.getByRole('link', { name: 'tidy the welcome notes' }).getAttribute('href')) ?? ''
  return { run, chat, question: `/inbox/${asked.data[0]?.id}` }
}
export const pathOf = (place: string, { run, chat, question }: Places): string =>
  place.replace('RUN_ID', run.split('/').at(-1) ?? '').replace('RUN', run).replace('CHAT', chat).replace('QUESTION', question)

/** Goes to a screen and waits for it, in any language. */
export async function open(page: Page, url: string, text: string, width: number, scheme: Scheme): Promise<void> {
  await page.setViewportSize({ width, height: 900 })
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
  await page.goto(url)
  await page.getByText(text).or(page.getByText(pseudo(text).slice(1, -1))).filter({ visible: true }).first().waitFor()
}
