// Every screen for everybody: no serious finding of axe, no text outside the translation, no sideways scrolling on a phone.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, setUp, tidy, type Story } from './story'

interface Finding {
  id: string
  impact: string
  nodes: { html: string }[]
}
type Scheme = 'light' | 'dark'
type Screen = [place: string, text: string, width: number, scheme: Scheme]

let story: Story
let axe: string
let run = ''
let chat = ''
beforeAll(async () => {
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  story = await begin()
  await setUp(story)
  await tidy(story.page)
  chat = new URL(story.page.url()).pathname
  await story.page.goto(`${story.server.url}/runs`)
  run = (await story.page.getByRole('link', { name: 'tidy the welcome notes' }).getAttribute('href')) ?? ''
})
afterAll(() => story?.end())

/** A first visit in each width and scheme would take minutes; each screen has its own pair, the long tests try them all. */
const SCREENS: Screen[] = [
  ['/chat', 'What should be done', 1440, 'light'],
  ['CHAT', 'Approve', 390, 'dark'],
  ['/inbox', 'write_file', 1024, 'dark'],
  ['/runs', 'tidy the welcome notes', 390, 'light'],
  ['RUN', 'Fork from here', 1440, 'dark'],
  ['RUN?view=waterfall', 'Waiting', 1024, 'light'],
  ['RUN?view=events', 'interaction_started', 390, 'dark'],
  ['RUN/vs/RUN_ID', 'Both took the same steps', 390, 'light'],
  ['/agents', 'Guide', 390, 'dark'],
  ['/agents/guide?tab=scope', 'Folder or pattern', 390, 'light'],
  ['/agents/guide?tab=limits', 'Without asking', 390, 'light'],
  ['/agents/new', 'Instructions', 1440, 'dark'],
  ['/files/welcome?path=/todo.md', 'Preview', 1024, 'dark'],
  ['/files/welcome?path=/todo.md&view=edit', 'Saved', 390, 'light'],
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

const WIDTHS = [390, 1024, 1440]
const SCHEMES: Scheme[] = ['light', 'dark']
const VISITS = process.env['ADJUTANT_LONG'] ? SCREENS.flatMap(([place, text]) => WIDTHS.flatMap((width) => SCHEMES.map((scheme): Screen => [place, text, width, scheme]))) : SCREENS

async function findings(page: Page): Promise<string[]> {
  // A script tag would be refused by the content policy; what the test itself evaluates is not.
  await page.evaluate(axe)
  const found = await page.evaluate('axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })')
  return (found as { violations: Finding[] }).violations
    .filter((one) => one.impact === 'serious' || one.impact === 'critical')
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)
}

/** What can be pressed but is cut off at the side, where nothing scrolls to it. */
async function outside(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const scrolls = (node: Element | null): boolean => !!node && node.tagName !== 'MAIN' && (/auto|scroll/.test(getComputedStyle(node).overflowX) && node.scrollWidth > node.clientWidth && node.getBoundingClientRect().right <= innerWidth + 1 || scrolls(node.parentElement))
    const pressed = [...document.querySelectorAll('main button, main a, main input, main select')]
    return pressed.filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !scrolls(node.parentElement)).map((node) => node.outerHTML.slice(0, 120))
  })
}

async function visit(place: string, text: string, width: number, scheme: Scheme): Promise<Page> {
  const { page } = story
  await page.setViewportSize({ width, height: 900 })
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
  await page.goto(story.server.url + place.replace('RUN_ID', run.split('/').at(-1) ?? '').replace('RUN', run).replace('CHAT', chat))
  await page.getByText(text).filter({ visible: true }).first().waitFor()
  return page
}

it.each(VISITS)('%s (%s, %i px, %s) has no serious finding', async (place, text, width, scheme) => {
  const page = await visit(place, text, width, scheme)
  expect(await findings(page)).toEqual([])
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  expect(overflow).toBe(0)
  expect(await outside(page)).toEqual([])
})

it('opens the palette and the help without a finding, and closes them with Escape', async () => {
  const page = await visit('/runs', 'tidy the welcome notes', 1024, 'light')
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Search and commands' }).fill('guide')
  await page.getByRole('option', { name: /Guide/ }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: /Guide/ }).waitFor()
  await page.getByRole('main').focus()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

const SPOKEN: [place: string, ready: string][] = [
  ['/agents/guide?tab=limits', 'Dóllárš óf óñé rúñ'],
  ['/chat', 'Néw çhát'],
  ['/rules', 'Nó štáñdíñg rúléš'],
  ['/usage', 'Búdgétš'],
  ['/settings/models', 'Whíçh óñé wóúld ít bé'],
  ['/settings/appearance', 'Cólóúrš'],
  ['/settings/workspace', 'Cóñtéñt fíltér'],
]
it.each(SPOKEN)('says everything on %s through the translation', async (place, ready) => {
  const page = await visit(`${place}${place.includes('?') ? '&' : '?'}locale=pseudo`, ready, 1440, 'light')
  const raw = await page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const texts: string[] = []
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.textContent?.trim() ?? ''
      const place = node.parentElement
      // Names that people, agents and models were given, keys and code are not ours to translate.
      if (/\p{L}{2,}/u.test(text) && !text.includes('⟦') && !place?.closest('kbd, code, .mono, noscript, script, .brand, .name, option, .chat, h1')) texts.push(text)
    }
    return texts
  })
  expect(raw.filter((text) => !/Guide$|^read, write|^dana$|^guide$|^Home$|USD|^[A-Z][a-z]{2} \d+$/u.test(text))).toEqual([])
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
