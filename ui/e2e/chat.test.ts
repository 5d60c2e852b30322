// What a chat can do beside talking: only plan, another model, messages that wait for their turn, and an end.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, order, setUp, type Story } from './story'

const SCRIPT = `
- when: { user: change, turn: 1 }
  calls:
    - { name: write_file, arguments: { path: /todo.md, content: "all new" } }
- when: { user: change }
  text: "It came to this: \${last_result}"
- text: Heard.
`
const SCRIBE = `---
name: Scribe
---
Answer in one word.
`

let story: Story
beforeAll(async () => {
  story = await begin({ script: SCRIPT, agents: { 'scribe.md': SCRIBE } })
  await setUp(story)
})
afterAll(() => story?.end())

it('only plans when it is told so, and says so', async () => {
  const { page, server } = story
  await page.goto(server.url)
  await page.getByRole('button', { name: 'Mode: Auto' }).click()
  await page.getByRole('menuitemradio', { name: /^Plan/ }).click()
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.fill('change')
  await box.press('Enter')
  await page.getByText(/It came to this/).waitFor()
  expect(await page.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0)
  // The choice stays with the chat, and ends by a command.
  await page.getByRole('button', { name: 'Mode: Plan' }).waitFor()
  await box.pressSequentially('/auto')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Mode: Auto' }).waitFor()
  await page.goto(`${server.url}/files/welcome?path=/todo.md`)
  await page.getByText('buy mlik').waitFor()
})

it('goes to the next mode by a key that keeps nobody in the box', async () => {
  const { page, server } = story
  await page.goto(server.url)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.fill('a thought')
  await box.press('Shift+Tab')
  await page.getByRole('button', { name: 'Mode: Ask' }).waitFor()
  await page.getByRole('status').filter({ hasText: 'Mode: Ask' }).waitFor()
  expect(await box.evaluate((node) => node === document.activeElement)).toBe(true)
  await box.press('Escape')
  await page.keyboard.press('Shift+Tab')
  expect(await box.evaluate((node) => node === document.activeElement)).toBe(false)
})

it('asks another model when somebody chooses one', async () => {
  const { page, server } = story
  await page.goto(server.url)
  await page.getByLabel('Model').locator('option:checked', { hasText: 'test/any' }).waitFor({ state: 'attached' })
  await page.getByLabel('Model').selectOption({ label: 'Another…' })
  await page.getByLabel('Provider and model').fill('demo/guide')
  await page.keyboard.press('Enter')
  await page.getByLabel('Model').locator('option:checked', { hasText: 'demo/guide' }).waitFor({ state: 'attached' })
  await page.getByRole('textbox', { name: 'Message' }).fill('what do you remember')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'See the run' }).click()
  await page.getByText('demo/guide').first().waitFor()
})

it('takes what is written to another agent, by keys alone', async () => {
  const { page } = story
  await order(story, 'greet')
  await page.getByText('See the run').waitFor()
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('textbox', { name: 'Message' }).fill('for somebody else')
  await page.getByRole('button', { name: 'Another agent' }).press('Enter')
  await page.getByText('Another agent: a new chat with what is written').waitFor()
  expect(await page.getByRole('menuitem').allInnerTexts()).toEqual(['Scribe'])
  await page.getByRole('menuitem', { name: 'Scribe' }).press('Enter')
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('for somebody else')
  expect(await page.getByLabel('Agent', { exact: true }).locator('option:checked').innerText()).toContain('Scribe')
  await page.getByRole('textbox', { name: 'Message' }).fill('')
  await page.setViewportSize({ width: 1280, height: 720 })
})

it('lets messages wait while the agent is at work, and gives them back', async () => {
  const { page } = story
  // A question keeps the chat busy until it is answered.
  await order(story, 'change')
  const reject = page.getByRole('button', { name: 'Reject' })
  await reject.waitFor()
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.fill('the second')
  await page.getByRole('button', { name: 'Send when it is free' }).click()
  await page.getByRole('article', { name: 'Waits: the second' }).getByText('Waits for its turn').waitFor()
  await box.fill('the third')
  await box.press('Enter')
  const third = page.getByRole('article', { name: 'Waits: the third' })
  await third.getByRole('button', { name: 'Take back' }).click()
  await third.waitFor({ state: 'detached' })
  expect(await box.inputValue()).toBe('the third')

  await reject.click()
  await page.getByRole('article', { name: 'Message: the second' }).getByText('Heard.').waitFor()
  expect(await page.getByRole('article', { name: /^Waits/ }).count()).toBe(0)
  expect(await page.getByRole('article').count()).toBe(2)
})

it('says why a message that waited was not sent, sends it again, or drops it', async () => {
  const { page } = story
  const activate = (active: boolean): Promise<number> => page.evaluate(async (active) => (await fetch(`/api/v1/agents/guide/activate?active=${active}`, { method: 'POST' })).status, active)
  await order(story, 'change')
  const reject = page.getByRole('button', { name: 'Reject' })
  await reject.waitFor()
  const box = page.getByRole('textbox', { name: 'Message' })
  for (const text of ['the second', 'the third']) {
    await box.fill(text)
    if (text === 'the second') {
      await page.locator('input[type=file]').setInputFiles([{ name: 'beside.md', mimeType: 'text/plain', buffer: Buffer.from('# Beside') }])
      await page.getByText('being kept…').waitFor({ state: 'detached' })
      await page.getByRole('list', { name: 'Attached files' }).getByText('beside.md').waitFor()
    }
    await box.press('Enter')
    await page.getByRole('article', { name: `Waits: ${text}` }).waitFor()
  }
  expect(await activate(false)).toBe(200)
  await reject.click()
  const second = page.getByRole('article', { name: 'Waits: the second' })
  const third = page.getByRole('article', { name: 'Waits: the third' })
  await second.getByRole('alert').getByText(/^It was not sent: .*is not active/).waitFor()
  await third.getByRole('button', { name: 'Drop it' }).click()
  await third.waitFor({ state: 'detached' })

  expect(await activate(true)).toBe(200)
  await box.fill('something else is being written')
  await second.getByRole('button', { name: 'Send again' }).click()
  const heard = page.getByRole('article', { name: 'Message: the second' })
  await heard.getByText('Heard.').waitFor()
  await heard.getByRole('link', { name: 'beside.md' }).waitFor()
  await second.waitFor({ state: 'detached' })
  expect(await box.inputValue()).toBe('something else is being written')
})

it('takes files along: chosen, dropped, taken out again, and refused with a reason', async () => {
  const { page, server } = story
  await page.goto(server.url)
  await page.getByRole('button', { name: 'Attach files' }).waitFor()
  const file = (name: string, text: string): { name: string; mimeType: string; buffer: Buffer } => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })
  await page.locator('input[type=file]').setInputFiles([file('plan.md', '# Plan'), file('wrong.md', 'not this one')])
  const list = page.getByRole('list', { name: 'Attached files' })
  await list.getByText('wrong.md').waitFor()
  await list.getByText('being kept…').first().waitFor({ state: 'detached' })
  await list.getByRole('button', { name: 'Take wrong.md out' }).click()
  // A browser reports the answer that says that a name is taken; the next one is tried.
  const before = story.wrong.length
  const dropped = await page.evaluateHandle(() => {
    const data = new DataTransfer()
    data.items.add(new File(['# Another plan'], 'plan.md', { type: 'text/markdown' }))
    return data
  })
  await page.locator('form.box').dispatchEvent('drop', { dataTransfer: dropped })
  await list.getByText('plan-2.md').waitFor()
  await list.getByText('being kept…').first().waitFor({ state: 'detached' })
  story.wrong.splice(before)
  // From the disk: what a test hands over itself goes through the browser's own door, slowly.
  const large = join(server.data, 'large.txt')
  await writeFile(large, 'x'.repeat(5 * 1024 * 1024))
  await page.locator('input[type=file]').setInputFiles(large)
  await list.getByText('large.txt').waitFor()
  await list.getByText('being kept…').first().waitFor({ state: 'detached' })
  expect(await list.getByText('It was not sent').count()).toBe(0)
  await list.getByRole('button', { name: 'Take large.txt out' }).click()
  await list.getByText('large.txt').waitFor({ state: 'detached' })
  const huge = join(server.data, 'huge.txt')
  await writeFile(huge, 'x'.repeat(33 * 1024 * 1024))
  await page.locator('input[type=file]').setInputFiles(huge)
  await list.getByRole('listitem').filter({ hasText: 'huge.txt' }).getByText('It is larger than 32 MB. It was not sent.').waitFor()
  await list.getByRole('button', { name: 'Take huge.txt out' }).click()

  await page.getByRole('textbox', { name: 'Message' }).fill('read these')
  await page.keyboard.press('Enter')
  const said = page.getByRole('article', { name: /^Message: read these/ })
  // The words are as they were written; the files come with them, each a way to the file.
  await said.getByRole('list', { name: 'Attached files' }).getByRole('link', { name: 'plan.md', exact: true }).waitFor()
  expect(await said.locator('.bubble').innerText()).toBe('read these')
  await said.getByRole('link', { name: 'plan-2.md' }).click()
  await page.getByRole('heading', { name: 'Another plan' }).waitFor()
  const names = async (): Promise<string[]> => {
    const folder = await page.evaluate(async () => (await fetch('/api/v1/notebooks/welcome/files/attachments')).json())
    return (folder as { data: { name: string }[] }).data.map((one) => one.name)
  }
  await expect.poll(async () => (await names()).filter((name) => !name.startsWith('beside')), { timeout: 20_000 }).toEqual(['plan-2.md', 'plan.md'])
})

it('forgets a chat for good after asking once more', async () => {
  const { page } = story
  await order(story, 'a word that nobody shall read')
  await page.getByText('Heard.').waitFor()
  const chat = page.url()
  await page.getByRole('button', { name: 'What can be done with this chat' }).click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  const question = page.getByRole('alertdialog', { name: 'Delete the chat' })
  await question.getByText('for good').waitFor()
  await question.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Heard.').waitFor()

  await page.getByRole('textbox', { name: 'Message' }).pressSequentially('/delete')
  await page.keyboard.press('Enter')
  await question.getByRole('button', { name: 'Delete the chat' }).click()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  await page.getByText('The chat is deleted.').waitFor()
  expect(await page.getByRole('link', { name: 'a word that nobody shall read' }).count()).toBe(0)
  const before = story.wrong.length
  await page.goto(chat)
  await page.getByRole('alert').waitFor()
  // A browser reports the answer that says so.
  story.wrong.splice(before)
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
