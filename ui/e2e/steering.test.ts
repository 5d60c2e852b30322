// Steering without a mouse, looking back at a run, and an agent that may do more than before.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, listen, setUp, tidy, type Story } from './story'

let story: Story
beforeAll(async () => {
  story = await begin()
  await setUp(story)
})
afterAll(() => story?.end())

it('decides in the inbox by keys alone, and the chat in another tab follows', async () => {
  const { page } = story
  await tidy(page)
  const other = await story.browser.context.newPage()
  listen(other, story.server.url, story.wrong)
  await other.goto(page.url())
  await other.getByRole('button', { name: 'Approve', exact: true }).waitFor()

  await page.locator('body').press('Escape')
  await page.getByRole('main').focus()
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.getByRole('region', { name: /Needs you: write_file/ }).waitFor()
  await page.keyboard.press('a')
  await page.getByText('Nothing needs you').waitFor()
  await other.getByText('is tidy now').waitFor()
  await other.close()
})

it('shows a run as story, as time and as its log, and proves it whole', async () => {
  const { page } = story
  await page.goto(`${story.server.url}/runs`)
  await page.getByRole('link', { name: 'tidy the welcome notes' }).first().click()
  await page.getByText(/^Whole: \d+ events/).waitFor()
  const files = page.getByRole('region', { name: 'Files of this run' })
  await files.getByRole('button', { name: 'Difference of /todo.md' }).click()
  await files.getByRole('row', { name: /buy milk/ }).waitFor()
  await files.getByText('It is still as the run left it.').waitFor()

  await page.getByRole('tab', { name: 'Waterfall' }).click()
  await page.getByRole('list', { name: 'Where the time went' }).waitFor()
  await page.getByRole('tab', { name: 'Events' }).click()
  await page.getByRole('button', { name: /interaction_complete/ }).waitFor()

  await page.getByRole('slider', { name: 'Place in the run' }).fill('0')
  await page.getByRole('heading', { name: 'The run begins' }).waitFor()
  const event = page.getByRole('complementary', { name: 'The event' })
  await event.getByText('tidy the welcome notes', { exact: true }).waitFor()
  await event.getByText('As it is in the log').click()
  await event.getByText('"user_message": "tidy the welcome notes"').waitFor()
  await page.getByRole('button', { name: 'Replay' }).click()
  await page.getByText(/It comes out the same/).waitFor()
})

it('edits a message and forks a run', async () => {
  const { page } = story
  await page.getByRole('link', { name: 'Open the chat' }).click()
  await page.getByText('is tidy now').waitFor()
  const chat = page.url()
  await page.getByRole('button', { name: 'Edit this message' }).click()
  await page.getByLabel('Say instead').fill('what do you remember')
  await page.getByRole('button', { name: 'Send' }).first().click()
  await page.getByRole('article', { name: 'Message: what do you remember' }).getByText('See the run').waitFor()
  expect(await page.getByRole('article').count()).toBe(1)
  await page.getByText('1 run before the edit').click()
  await page.getByRole('article').getByRole('link', { name: 'tidy the welcome notes' }).waitFor()

  await page.getByRole('button', { name: 'Fork from this message' }).click()
  await page.waitForURL((url) => url.pathname.startsWith('/chat/') && url.href !== chat)
  await page.getByRole('link', { name: 'Forked from another run' }).waitFor()
  // What it carries out was said in the other chat.
  await page.getByText('The order of that run:').waitFor()
  await page.getByRole('region', { name: 'Conversation' }).getByText('what do you remember', { exact: true }).waitFor()
  // The fork is its first run, however the chat goes on.
  await page.getByRole('textbox', { name: 'Message' }).fill('what do you remember')
  await page.keyboard.press('Enter')
  await page.getByRole('article').nth(1).getByText('See the run').waitFor()
  await page.getByRole('link', { name: 'See the run' }).first().click()
  // A fork and what it comes from lead to each other.
  await page.getByRole('link', { name: 'See the run it comes from' }).click()
  await page.getByRole('heading', { name: 'what do you remember' }).waitFor()
  await page.getByRole('region', { name: 'Forks' }).getByRole('link', { name: 'Compare' }).click()
  await page.getByText('Both took the same steps.').waitFor()
})

it('forks a run with other instructions, and sends none that are the same', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'what do you remember' }).first().click()
  await page.getByText(/^Whole: \d+ events/).waitFor()
  const original = page.url()
  const fork = async (): Promise<Record<string, unknown>> => {
    const [sent] = await Promise.all([page.waitForRequest(/\/fork$/), page.getByRole('button', { name: 'Start the fork' }).click()])
    await page.waitForURL((url) => url.href !== original)
    return sent.postDataJSON() as Record<string, unknown>
  }
  expect(await fork()).not.toHaveProperty('system_prompt')
  await page.goto(original)
  await page.getByText('With other instructions').click()
  const told = page.getByLabel('Instructions of the fork')
  await expect.poll(() => told.inputValue()).not.toBe('')
  await told.fill('Answer in one word.')
  expect(await fork()).toMatchObject({ system_prompt: 'Answer in one word.' })
})

it('makes an agent, lets it write in one folder, and keeps both versions', async () => {
  const { page } = story
  await page.goto(`${story.server.url}/agents/new`)
  await page.getByRole('textbox', { name: 'Name' }).fill('Librarian')
  await page.getByRole('button', { name: 'Make the agent' }).click()
  await page.getByRole('heading', { name: 'Librarian' }).waitFor()

  await page.getByRole('tab', { name: 'What it may touch' }).click()
  const reach = page.getByRole('region', { name: 'What can it touch?' })
  await reach.getByText('asked the guard now').waitFor()
  await page.getByRole('checkbox', { name: 'Write in /' }).check()
  await reach.getByText('This edit adds 6 files it can write').waitFor()
  await reach.getByText('See the list').click()
  await reach.locator('details[open]').getByText('/projects/', { exact: false }).first().waitFor()
  const tree = page.getByRole('group', { name: 'Folders of welcome' })
  expect(await tree.getByRole('checkbox', { name: 'Write everything in /projects' }).isDisabled()).toBe(true)
  await tree.getByRole('checkbox', { name: 'Delete everything in /projects' }).check()
  await page.getByRole('checkbox', { name: 'Delete in /projects' }).waitFor()
  expect(await tree.getByRole('checkbox', { name: 'Delete everything in /', exact: true }).evaluate((box: HTMLInputElement) => box.indeterminate)).toBe(true)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2.').waitFor()
  await page.getByRole('button', { name: 'Ask', exact: true }).click()
  await page.getByText('Asks you').waitFor()
  // A call of a tool it does not have, with what the tool needs filled in.
  await page.getByLabel('Action').selectOption('kv_set')
  await page.getByLabel('Arguments').fill('{"key": "a"')
  await page.getByRole('button', { name: 'Ask', exact: true }).click()
  await page.getByText('The arguments are a JSON object').waitFor()
  await page.getByLabel('Arguments').fill('{"key": "a", "value": "b"}')
  await page.getByRole('button', { name: 'Ask', exact: true }).click()
  await page.getByText('Refused', { exact: true }).waitFor()
  await page.getByRole('tab', { name: 'Versions' }).click()
  await page.getByText('can_write').waitFor()
})

it('takes an agent as the beginning of another, and deletes that after asking once more', async () => {
  const { page } = story
  const menu = page.getByRole('button', { name: 'What can be done with this agent' })
  await menu.click()
  await page.getByRole('menuitem', { name: 'Duplicate' }).click()
  await page.getByRole('button', { name: 'Make the agent' }).click()
  await page.getByRole('heading', { name: 'Librarian (copy)' }).waitFor()
  await page.getByRole('tab', { name: 'What it may touch' }).click()
  expect(await page.getByRole('checkbox', { name: 'Write in /', exact: true }).isChecked()).toBe(true)

  await menu.click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete Librarian (copy)' }).click()
  await page.getByText('Librarian (copy) is gone.').waitFor()
  await page.getByRole('link', { name: /Librarian/ }).waitFor()
  expect(await page.getByRole('link', { name: /Librarian \(copy\)/ }).count()).toBe(0)
})

it('takes an agent along as a file, and another over from one', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide`)
  await page.getByRole('button', { name: 'What can be done with this agent' }).click()
  await page.getByRole('menuitem', { name: 'As a file…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Guide as a file' })
  const text = dialog.getByRole('textbox', { name: 'Text of the file' })
  await expect.poll(() => text.inputValue()).toMatch(/^---\nname: Guide\n/)
  const [file] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('link', { name: 'Download' }).click()])
  expect(file.suggestedFilename()).toBe('guide.md')

  await page.goto(`${server.url}/agents/new`)
  await page.getByRole('button', { name: 'From a file…' }).click()
  const other = page.getByRole('dialog', { name: 'An agent from a file' })
  const before = story.wrong.length
  await other.getByRole('textbox').fill('---\nname: Filed\nautonomi: low\n---\nRead.')
  await other.getByRole('button', { name: 'Take over into the form' }).click()
  await other.getByRole('alert').getByText(/line 3: unknown field `autonomi`/).waitFor()
  // A browser reports the answer that says so.
  story.wrong.splice(before)
  await other.getByRole('textbox').fill('---\nname: Filed\nkeywords: [shelf]\nscope:\n  notebooks: ["*"]\n  folders: [/]\n---\nRead.')
  await other.getByRole('button', { name: 'Take over into the form' }).click()
  await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe('Filed')
  await page.getByRole('button', { name: 'Make the agent' }).click()
  await page.waitForURL(/\/agents\/filed/)
  const made = await page.evaluate(async () => (await fetch('/api/v1/agents/filed')).json())
  expect(made).toMatchObject({ keywords: ['shelf'], system_prompt: 'Read.', can_write: false })
})

it('offers agents, files and commands while somebody writes', async () => {
  const { page } = story
  await page.goto(`${story.server.url}/chat`)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.pressSequentially('@lib')
  await page.getByRole('option', { name: '@librarian' }).waitFor()
  await page.keyboard.press('Enter')
  expect(await page.getByLabel('Agent').locator('option:checked').innerText()).toContain('Librarian')
  expect(await box.inputValue()).toBe('')

  await box.pressSequentially('read #pro')
  await page.getByRole('option', { name: /#projects/ }).waitFor()
  await page.keyboard.press('Tab')
  await page.getByRole('option', { name: /#garden/ }).click()
  expect(await box.inputValue()).toMatch(/^read \/projects\/garden\S* $/)

  await box.fill('')
  await box.pressSequentially('/inb')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
})

it('names a chat, shares it and hands what is written to another agent', async () => {
  const { page } = story
  await page.goto(`${story.server.url}/chat`)
  await page.getByRole('button', { name: /what do you remember/i }).click()
  await page.getByText('See the run').waitFor()
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.pressSequentially('/rename')
  await page.keyboard.press('Enter')
  await page.getByLabel('Its name').fill('Things kept')
  await page.getByRole('button', { name: 'Rename', exact: true }).click()
  await page.getByRole('link', { name: 'Things kept' }).waitFor()
  await page.getByRole('button', { name: 'What can be done with this chat' }).click()
  await page.getByRole('menuitem', { name: 'Share it with the workspace' }).click()
  await page.getByText('shared', { exact: true }).waitFor()

  await box.pressSequentially('sort the shelf @libr')
  await page.getByRole('option', { name: '@librarian' }).click()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('sort the shelf')
  expect(await page.getByLabel('Agent').locator('option:checked').innerText()).toContain('Librarian')
})

it('stops everything at one switch, and lets it go on', async () => {
  const { page } = story
  await page.goto(`${story.server.url}/settings/stop`)
  await page.getByLabel('Why (others see it)').first().fill('a drill')
  await page.getByRole('button', { name: 'Stop everything' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Stop everything' }).click()
  await page.getByText('Everything is stopped: no run starts').waitFor()
  await page.getByRole('button', { name: 'Let them go on' }).first().click()
  await page.getByText('Everything is stopped: no run starts').waitFor({ state: 'detached' })
  await page.goto(`${story.server.url}/audit`)
  await page.getByText('a drill').first().waitFor()
})

it('shows in every tab that the whole instance is stopped, and lets it go on', async () => {
  const { page } = story
  await page.goto(`${story.server.url}/settings/stop`)
  await page.getByRole('button', { name: 'Stop all workspaces' }).click()
  const other = await story.browser.context.newPage()
  listen(other, story.server.url, story.wrong)
  await other.goto(`${story.server.url}/runs`)
  await other.getByRole('heading', { name: 'Runs' }).waitFor()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Stop all workspaces' }).click()
  await other.getByText('The whole instance is stopped').waitFor()
  await page.getByRole('button', { name: 'Let them go on' }).first().click()
  await other.getByText('The whole instance is stopped').waitFor({ state: 'detached' })
  await other.close()
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
