// Every screen for everybody: no serious finding of axe, no text outside the translation, no sideways scrolling on a phone.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startBrowser, type Browser } from './browser'
import { furnish, open, pathOf, SCREENS, type Places, type Scheme, type Screen } from './screens'
import { begin, listen, type Story } from './story'

interface Finding {
  id: string
  impact: string
  nodes: { html: string }[]
}

const WIDTHS = [390, 1024, 1440]
const SCHEMES: Scheme[] = ['light', 'dark']
const ALL = WIDTHS.flatMap((width) => SCHEMES.map((scheme): [number, Scheme] => [width, scheme]))
const isLong = Boolean(process.env['ADJUTANT_LONG'])
const VISITS = isLong ? SCREENS.flatMap(([place, text]) => ALL.map(([width, scheme]): Screen => [place, text, width, scheme])) : SCREENS
/** What is seen before somebody is signed in; the first screen of all is there only once. */
const DOORS: [number, Scheme][] = isLong ? ALL : [[390, 'light'], [1440, 'dark']]
const FIRST_DOOR: [number, Scheme][] = isLong ? ALL : [[390, 'dark']]

let story: Story
let axe: string
const firstFindings: string[] = []
let stranger: Browser
let places: Places
beforeAll(async () => {
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  story = await begin()
  stranger = await startBrowser()
  // The first screen of all is there only before there is an owner.
  for (const [width, scheme] of FIRST_DOOR) {
    await story.page.goto('about:blank')
    await open(story.page, story.server.setUpLink, 'Create the owner', width, scheme)
    firstFindings.push(...(await findings(story.page)).map((one) => `${width} ${scheme} ${one}`))
  }
  places = await furnish(story)
})
afterAll(async () => {
  await stranger?.close()
  await story?.end()
})

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
  await open(story.page, story.server.url + pathOf(place, places), text, width, scheme)
  return story.page
}

it.each(VISITS)('%s (%s, %i px, %s) has no serious finding', async (place, text, width, scheme) => {
  const page = await visit(place, text, width, scheme)
  expect(await findings(page)).toEqual([])
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  expect(overflow).toBe(0)
  expect(await outside(page)).toEqual([])
})

it('has no serious finding before somebody is signed in', async () => {
  expect(firstFindings).toEqual([])
  const page = await stranger.context.newPage()
  listen(page, story.server.url, story.wrong)
  for (const [place, text] of [['/login', 'Sign in'], ['/login#invite=x', 'You are invited'], ['/login#renew=x', 'A new password']] as const) {
    for (const [width, scheme] of DOORS) {
      await page.goto('about:blank')
      await open(page, story.server.url + place, text, width, scheme)
      expect([place, width, scheme, ...(await findings(page))]).toEqual([place, width, scheme])
    }
  }
})

/** What a press shows on the screen itself. */
const PRESSED: [name: string, place: string, text: string, press: string, shows: string][] = [
  ['what was decided', '/inbox', 'write_file', 'Decided', 'Nothing was decided'],
  ['the form of a rule', '/rules', 'No standing rules', 'New rule', 'Decision'],
]
it.each(PRESSED)('shows %s without a finding', async (_, place, text, press, shows) => {
  const page = await visit(place, text, 390, 'dark')
  await page.getByRole('button', { name: press, exact: true }).first().click()
  await page.getByText(shows).filter({ visible: true }).first().waitFor()
  expect(await findings(page)).toEqual([])
  expect(await outside(page)).toEqual([])
})

/** Dialogs, each with how it is opened. */
const DIALOGS: [name: string, place: string, text: string, press: string[]][] = [
  ['who can touch a file', '/files/welcome?path=/todo.md', 'Preview', ['Who can touch this?']],
  ['a question before everything stops', '/settings/stop', 'Stop everything', ['Stop everything']],
  ['what the model saw', 'RUN', 'Fork from here', ['What the model saw']],
  ['an agent as a file', '/agents/new', 'Instructions', ['From a file…']],
  ['a new file', '/files/welcome', 'Choose a file', ['New file']],
  ['a file that moves', '/files/welcome?path=/todo.md', 'Preview', ['Move…']],
]
it.each(DIALOGS)('shows the dialog of %s without a finding', async (_, place, text, press) => {
  const page = await visit(place, text, 1024, 'dark')
  for (const name of press) await page.getByRole('button', { name }).first().click()
  await page.getByRole('dialog').or(page.getByRole('alertdialog')).waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').or(page.getByRole('alertdialog')).waitFor({ state: 'detached' })
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

/** Where the server says what the page shows as it is: names, texts of files and of agents, what tools are for. */
const ADDRESSES = ['/agents', '/agents/templates', '/agents/guide/prompt', '/tools', '/models', '/providers', '/audit?limit=200', '/about', '/settings', '/workspaces', '/approvals', '/provider-keys', '/notebooks/welcome/files']
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.entries(value).flatMap(([name, one]) => [name, ...stringsIn(one)]) : []
}
async function toldByTheServer(page: Page): Promise<Set<string>> {
  const answers = await page.evaluate(async ([addresses, run]) => {
    const read = async (address: string): Promise<unknown> => (await fetch(`/api/v1${address}`)).json()
    const approvals = (await read('/approvals')) as { data: { id: string }[] }
    return Promise.all([...addresses, `${run}/events?limit=200`, ...approvals.data.map(({ id }) => `/approvals/${id}`)].map(read))
  }, [ADDRESSES, places.run] as const)
  return new Set(stringsIn(answers).flatMap((said) => [said, ...said.split(/\n| · /)]).map((said) => said.trim()))
}
/** Keys, code, what is written in files and by models, and names are nobody's to translate; nor are days and moments, which have their own form. */
const THEIRS = 'kbd, code, pre, .mono, noscript, script, .brand, .name, .cm-editor, .paper, .markdown, datalist'
const FORMS = /^(· |aria-label: |title: |placeholder: )?(dana|demo\/guide|Adjutant( [\d.]+)?|Home|welcome|USD|[A-Z][a-z]{2} \d+(, \d.*)?)$/u
it.each(SCREENS)('says everything on %s through the translation', async (place, text) => {
  const page = await visit(`${place}${place.includes('?') ? '&' : '?'}locale=pseudo`, text, 1440, 'light')
  const raw = await page.evaluate((theirs) => {
    const isRaw = (said: string): boolean => /\p{L}{2,}/u.test(said) && !said.includes('⟦')
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const texts: string[] = []
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const said = node.textContent?.trim() ?? ''
      if (isRaw(said) && !node.parentElement?.closest(theirs)) texts.push(said)
    }
    for (const name of ['aria-label', 'placeholder', 'title']) {
      for (const node of document.querySelectorAll(`[${name}]`)) {
        const said = node.getAttribute(name) ?? ''
        if (isRaw(said) && !node.closest(theirs)) texts.push(`${name}: ${said}`)
      }
    }
    return texts
  }, THEIRS)
  const told = await toldByTheServer(page)
  // Only a whole text is the server's, or the beginning of one that is cut, or a tool with what it is about. The log shows what is
  // known of an event with points between, and an emoji stands before a name.
  const isCut = (words: string): boolean => words.endsWith('…') && [...told].some((whole) => whole.startsWith(words.slice(0, -1).trim()))
  const isKnown = (words: string): boolean => {
    const [first = '', ...rest] = words.split(' ')
    return told.has(words) || FORMS.test(words) || isCut(words) || (told.has(first) && told.has(rest.join(' ')))
  }
  const isTold = (said: string): boolean => told.has(said) || (said.replace(/^[a-z-]+: |^\P{L}+ /u, '').split(' {')[0] ?? '').split(' · ').every(isKnown)
  // How long ago something was has its own form, too, and grows while the screens are gone through.
  const timeless = raw.map((said) => said.replace(/(^| · )\d+ (second|minute|hour)s? ago$/u, '')).filter((said) => said !== '')
  expect(timeless.filter((said) => !FORMS.test(said) && !isTold(said))).toEqual([])
})

it('offers other agents in a chat without a finding, also on a phone', async () => {
  const page = await visit('CHAT', 'Approve', 390, 'dark')
  const made = await page.evaluate(async () => (await fetch('/api/v1/agents', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'Second' }) })).status)
  expect(made).toBe(201)
  await page.reload()
  await page.getByRole('button', { name: 'Another agent' }).click()
  await page.getByRole('menuitem', { name: 'Second' }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
  await page.getByRole('menuitem', { name: 'Second' }).waitFor({ state: 'detached' })
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
  expect(await outside(page)).toEqual([])
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
