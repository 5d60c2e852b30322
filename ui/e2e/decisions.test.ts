// Decisions that are rarer: several at once, about a call that nobody knows the end of, in words, and for longer than once.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, order, setUp, type Story } from './story'

const KEEPER = `---
name: Keeper
autonomy: full
permission_level: write
tools: ring_bell
---
Ring the bell when you are told to.
`
const CALLER = `---
name: Caller
autonomy: none
permission_level: write
can_access_integrations: true
tools: http_request
allowed_hosts: [a.example, b.example]
---
Send what you are told to send.
`
/** More than a question shows at once, on one line. */
const WIDE = 'wide '.repeat(4_000)
/** More lines than a question shows at once. */
const LONG = Array.from({ length: 100 }, (_, line) => `line ${line}`).join('\\n')
/** As many calls as a model may make at once. */
const HEAP = Array.from({ length: 16 }, (_, n) => `    - { name: write_file, arguments: { path: "/heap/\${1}-${n}.md", content: "x" } }`).join('\n')
const SCRIPT = `
- when: { user: three, turn: 1 }
  text: I write three notes.
  calls:
    - { name: write_file, arguments: { path: /one.md, content: "one" } }
    - { name: write_file, arguments: { path: /two.md, content: "two" } }
    - { name: write_file, arguments: { path: /three.md, content: "three" } }
- when: { user: three, result: { is_error: true } }
  text: "One was not written: \${last_result}"
- when: { user: three }
  text: All are written.
- when: { user: ring, turn: 1 }
  calls:
    - { name: ring_bell, arguments: { text: all is well } }
- when: { user: ring }
  text: "The bell: \${last_result}"
- when: { user: at length, turn: 1 }
  calls:
    - { name: write_file, arguments: { path: /long.md, content: "${LONG}" } }
- when: { user: at length }
  text: It is written at length.
- when: { user: in one line, turn: 1 }
  calls:
    - { name: write_file, arguments: { path: /line.md, content: "${WIDE}and then harm" } }
- when: { user: in one line }
  text: It is one line.
- when: { user: in different ways, turn: 1 }
  calls:
    - { name: write_file, arguments: { path: /pile/one.md, content: "one" } }
    - { name: write_file, arguments: { path: /pile/two.md, content: "two" } }
    - { name: write_file, arguments: { path: /pile/long.md, content: "${LONG}" } }
    - { name: write_file, arguments: { path: /pile/wide.md, content: "${WIDE}" } }
    - { name: create_file, arguments: { path: /pile/new.md, content: "new" } }
- when: { user: in different ways }
  text: That is all.
- when: { user: send, turn: 1 }
  calls:
    - { name: http_request, arguments: { method: POST, url: "https://a.example/one", body: "short" } }
    - { name: http_request, arguments: { method: POST, url: "https://a.example/two", body: "${WIDE}" } }
    - { name: http_request, arguments: { method: POST, url: "https://b.example/three", body: "short" } }
- when: { user: send }
  text: Nothing was sent.
- when: { matches: "heap (\\\\S+)", turn: 1 }
  calls:
${HEAP}
- when: { user: heap }
  text: Nothing was written.
- when: { matches: "write (\\\\S+)", turn: 1 }
  calls:
    - { name: write_file, arguments: { path: "\${1}", content: "as the agent wants it" } }
- when: { matches: "write (\\\\S+)", turn: 2 }
  text: "It came to this: \${last_result}"
`

let story: Story
beforeAll(async () => {
  story = await begin({ script: SCRIPT, agents: { 'keeper.md': KEEPER, 'caller.md': CALLER }, canCrash: true, env: { ADJUTANT_BELL: '/dev/null', ADJUTANT_BELL_HOLD: '1' } })
  await setUp(story)
})
afterAll(() => story?.end())

async function file(name: string): Promise<string | null> {
  const notebooks = join(story.server.data, 'notebooks')
  const [first] = await readdir(notebooks)
  return readFile(join(notebooks, first ?? '', name), 'utf8').catch(() => null)
}

it('decides three questions of one run at once', async () => {
  const { page, server } = story
  await order(story, 'three')
  await page.getByRole('region', { name: /Needs you: write_file/ }).nth(2).waitFor()
  expect(await file('three.md')).toBe(null)

  await page.getByText('3 questions wait.').waitFor()
  await page.getByRole('link', { name: 'Decide together in the inbox' }).click()
  await page.waitForURL((url) => url.pathname.startsWith('/inbox/'))
  await page.goto(`${server.url}/inbox`)
  // Calls of one tool in one folder are one line, open because one of them is looked at.
  const group = page.getByRole('button', { name: /^write_file ×3/ })
  await page.getByRole('checkbox', { name: 'Select write_file /two.md' }).waitFor()
  await group.click()
  expect(await page.getByRole('checkbox', { name: /two\.md/ }).count()).toBe(0)
  await page.getByRole('checkbox', { name: /^Select all 3: write_file/ }).check()
  const bar = page.getByRole('group', { name: 'Selected items' })
  await bar.getByText('3 selected · all write_file in /').waitFor()
  await group.click()
  await page.getByRole('checkbox', { name: /two\.md/ }).uncheck()
  await bar.getByText('2 selected').waitFor()
  await page.getByRole('main').focus()
  await page.keyboard.press('S')
  await bar.waitFor({ state: 'detached' })
  await page.keyboard.press('S')
  await bar.getByRole('button', { name: 'Approve 3' }).click()
  await page.getByText('3 decided.').waitFor()
  await page.getByText('Nothing needs you').waitFor()
  await expect.poll(() => Promise.all([file('one.md'), file('two.md'), file('three.md')])).toEqual(['one', 'two', 'three'])
})

it('approves together only what is alike and was shown whole', async () => {
  const { page, server } = story
  await order(story, 'write in different ways')
  await page.getByRole('region', { name: /Needs you: create_file/ }).waitFor()
  await page.goto(`${server.url}/inbox`)
  await page.getByLabel('Group').selectOption({ label: 'By agent' })
  await page.getByRole('checkbox', { name: /^Select all 5/ }).check()
  const bar = page.getByRole('group', { name: 'Selected items' })
  await bar.getByText('Only calls of one tool in one folder, or at one host, are approved together.').waitFor()
  expect(await bar.getByRole('button', { name: /^Approve/ }).isDisabled()).toBe(true)

  await page.getByRole('checkbox', { name: 'Select create_file /pile/new.md' }).uncheck()
  await bar.getByText('2 are longer than what is shown').waitFor()
  const review = page.getByRole('region', { name: 'What is selected' })
  // Each of them is there with what it would change, and not only with its name.
  const one = (name: string): ReturnType<typeof review.getByRole> => review.getByRole('listitem').filter({ hasText: `/pile/${name}.md` })
  await one('two').getByRole('row', { name: /two/ }).waitFor()
  await bar.getByRole('button', { name: 'Approve 2' }).waitFor()
  await one('long').getByRole('button', { name: /Show \d+ more lines/ }).click()
  await one('long').getByText('line 99').waitFor()
  await bar.getByText('1 is longer than what is shown').waitFor()
  await bar.getByRole('button', { name: 'Approve 3' }).click()
  await page.getByText('3 decided.').waitFor()
  await page.getByRole('checkbox', { name: /one\.md/ }).waitFor({ state: 'detached' })
  for (const name of ['wide', 'new']) {
    await page.getByRole('button', { name: new RegExp(`/pile/${name}`) }).click()
    await page.getByRole('region', { name: new RegExp(`Needs you: .*/pile/${name}`) }).getByRole('button', { name: 'Reject' }).click()
    await page.getByRole('region', { name: new RegExp(`Needs you: .*/pile/${name}`) }).waitFor({ state: 'detached' })
  }
  const written = (): Promise<(boolean | undefined)[]> => Promise.all(['one', 'two', 'long', 'wide', 'new'].map(async (name) => (await file(`pile/${name}.md`)) !== null))
  await expect.poll(written).toEqual([true, true, true, false, false])
})

it('takes requests for alike only at one host, and approves none whose body was not shown', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/chat?agent=caller`)
  await page.getByRole('textbox', { name: 'Message' }).fill('send')
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: /Needs you: POST/ }).nth(2).waitFor()
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('button', { name: /^http_request ×2.*with POST at a\.example/ }).waitFor()
  await page.getByRole('checkbox', { name: /^Select all 2: http_request/ }).check()
  const bar = page.getByRole('group', { name: 'Selected items' })
  await bar.getByText('2 selected · all http_request with POST at a.example').waitFor()
  await bar.getByText('1 is longer than what is shown').waitFor()
  await bar.getByRole('button', { name: 'Approve 1' }).waitFor()
  await page.getByRole('checkbox', { name: /b\.example/ }).check()
  await bar.getByText('Only calls of one tool in one folder, or at one host').waitFor()
  expect(await bar.getByRole('button', { name: /^Approve/ }).isDisabled()).toBe(true)
  await bar.getByRole('button', { name: 'Reject 3' }).click()
  await page.getByText('3 decided.').waitFor()
})

it('shows what is selected on a phone before it is decided', async () => {
  const { page, server } = story
  await order(story, 'write /small.md')
  await page.getByRole('region', { name: /Needs you: write_file/ }).waitFor()
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('checkbox', { name: /small\.md/ }).check()
  expect(await page.getByRole('button', { name: /^Approve/ }).count()).toBe(0)
  await page.getByRole('button', { name: 'Look at what is selected' }).click()
  await page.getByRole('region', { name: 'What is selected' }).getByRole('row', { name: /as the agent wants it/ }).waitFor()
  await page.getByRole('button', { name: 'Approve 1' }).click()
  await page.getByText('1 decided.').waitFor()
  await expect.poll(() => file('small.md')).toBe('as the agent wants it')
  await page.setViewportSize({ width: 1280, height: 720 })
})

it('decides more at once than the server takes in one piece', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/inbox`)
  const start = (n: number): Promise<string> =>
    page.evaluate(async (input) => {
      const answer = await fetch('/api/v1/runs?wait=60', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ agent_id: 'guide', input }) })
      return ((await answer.json()) as { status: string }).status
    }, `heap ${n}`)
  for (let n = 0; n < 7; n++) expect(await start(n)).toBe('WAITING_APPROVAL')
  await page.getByRole('checkbox', { name: /^Select all 112: write_file/ }).check()
  const bar = page.getByRole('group', { name: 'Selected items' })
  await bar.getByRole('button', { name: 'Reject 112' }).click()
  await page.getByText('112 decided.').waitFor()
  await page.getByText('Nothing needs you').waitFor()
})

it('changes the arguments of a call before it is made', async () => {
  const { page } = story
  await order(story, 'write /edited.md')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.getByLabel('content').fill('as the person wants it')
  await page.getByRole('button', { name: 'Approve with these' }).click()
  await page.getByText('It came to this').waitFor()
  expect(await file('edited.md')).toBe('as the person wants it')
})

it('approves nothing that was not shown whole', async () => {
  const { page } = story
  await order(story, 'at length')
  const card = page.getByRole('region', { name: /Needs you: write_file/ })
  await card.getByRole('button', { name: /Show \d+ more lines/ }).waitFor()
  expect(await card.getByText('line 99').count()).toBe(0)
  await card.getByRole('button', { name: 'Show all, then approve' }).waitFor()
  await card.focus()
  await page.keyboard.press('a')
  await card.getByText('line 99').waitFor()
  expect(await file('long.md')).toBe(null)
  // Whoever comes to the buttons has passed every line: none of them lies in a box that scrolls by itself.
  const scrolling = await card.evaluate((root) => [...root.querySelectorAll('*')].filter((one) => one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY !== 'visible' && one.clientHeight > 40).length)
  expect(scrolling).toBe(0)
  await card.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('It is written at length.').waitFor()
  expect((await file('long.md'))?.split('\n').length).toBe(100)
})

it('takes one very long line for more than was shown', async () => {
  const { page } = story
  await order(story, 'in one line')
  const card = page.getByRole('region', { name: /Needs you: write_file/ })
  expect(await card.getByText('and then harm').count()).toBe(0)
  await card.getByRole('button', { name: 'Show all, then approve' }).click()
  await card.getByText('and then harm').waitFor()
  expect(await file('line.md')).toBe(null)
  await card.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('It is one line.').waitFor()
})

it('answers in words: nothing is done, and the agent hears why', async () => {
  const { page } = story
  await order(story, 'write /never.md')
  await page.getByRole('button', { name: 'Tell it…' }).click()
  await page.getByLabel('What should it do instead?').fill('leave it be')
  await page.getByRole('button', { name: 'Send' }).first().click()
  await page.getByText(/It came to this: .*leave it be/).waitFor()
  expect(await file('never.md')).toBe(null)
})

it('keeps what was decided: the newest first, with what was changed and what was said', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/inbox`)
  await page.getByRole('button', { name: 'Decided' }).click()
  const said = page.getByRole('region', { name: 'Decided' })
  const items = page.getByRole('region', { name: 'Items', exact: true })
  await said.getByRole('heading', { name: /never\.md/ }).waitFor()
  await said.getByText('leave it be').waitFor()
  await said.getByText(/by you$/).waitFor()

  await page.getByLabel('What became of it').selectOption({ label: 'Approved' })
  await items.getByRole('button', { name: /\/edited\.md/ }).click()
  await said.getByText('as the person wants it').waitFor()
  expect(await items.getByRole('button', { name: /never\.md/ }).count()).toBe(0)
  // More than a page of them: the others come as somebody goes down.
  await page.getByLabel('What became of it').selectOption({ label: 'Rejected' })
  await items.getByRole('button', { name: /never\.md/ }).waitFor()
  const count = async (): Promise<number> => Number(await items.getByRole('listitem').first().getAttribute('aria-setsize'))
  expect(await count()).toBe(50)
  await items.getByRole('button', { name: 'Show more' }).scrollIntoViewIfNeeded()
  await expect.poll(count).toBeGreaterThan(50)
  await page.getByLabel('What became of it').selectOption({ label: 'Expired' })
  await page.getByText('None of these').waitFor()
})

it('decides in the chat by keys, and never loses the place', async () => {
  const { page } = story
  await order(story, 'write /keys.md')
  const card = page.getByRole('region', { name: /Needs you: write_file/ })
  // The server says first that the answer is theirs.
  await card.getByRole('button', { name: 'Approve', exact: true }).waitFor()
  await card.focus()
  const place = (): Promise<string | null | undefined> => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.tagName)
  await page.keyboard.press('f')
  await expect.poll(place).toBe('TEXTAREA')
  await page.keyboard.press('Escape')
  await expect.poll(place).toMatch(/^Needs you: write_file/)
  await page.keyboard.press('e')
  await expect.poll(place).toBe('Arguments')
  await page.keyboard.press('Escape')
  await page.keyboard.press('x')
  await page.getByText(/It came to this/).waitFor()
  await expect.poll(place).toBe('Message')
  expect(await file('keys.md')).toBe(null)
})

it('allows something for longer, shows the rule first, and takes it away again', async () => {
  const { page, server } = story
  await order(story, 'write /drafts/one.md')
  await page.getByRole('button', { name: 'Approve for longer' }).click()
  await page.getByRole('menuitem', { name: 'Always…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Approve, and stop asking' })
  await dialog.getByText('/drafts').waitFor()
  await dialog.getByRole('button', { name: 'Approve and write the rule' }).click()
  await page.getByText('It came to this').waitFor()

  await order(story, 'write /drafts/two.md')
  await page.getByText('It came to this').waitFor()
  expect(await file('drafts/two.md')).toBe('as the agent wants it')

  await page.goto(`${server.url}/rules`)
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No standing rules').waitFor()
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No standing rules').waitFor()
})

it('asks a person about a call that a crash left open', async () => {
  const { page, server } = story
  const before = story.wrong.length
  await page.goto(`${server.url}/chat?agent=keeper`)
  await page.getByRole('textbox', { name: 'Message' }).fill('ring')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'ring_bell' }).waitFor()
  await server.kill()
  await server.restart({ ADJUTANT_BELL: '/dev/null' })
  await page.reload()

  const card = page.getByRole('region', { name: 'Needs you: ring_bell' })
  await card.getByText('Nobody knows whether this call happened.').waitFor()
  await page.goto(`${server.url}/inbox`)
  await page.getByText('in doubt').first().waitFor()
  await page.getByRole('button', { name: 'It did not: run it' }).click()
  await page.getByText('Nothing needs you').waitFor()
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'ring' }).first().click()
  await page.getByRole('paragraph').filter({ hasText: 'The bell: The bell has been rung.' }).waitFor()
  // A browser reports each request that could not reach the server.
  story.wrong.splice(before)
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
