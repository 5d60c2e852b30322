// A model that takes its time, and one that means harm.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, setUp, type Story } from './story'

const WORDS = Array.from({ length: 80 }, (_, n) => `word${n + 1}.`)
const SCRIPT = `
- when: { user: count }
  text: "${WORDS.join(' ')}"
  chunk: 8
  pace_ms: 200
- when: { user: harm }
  text: |
    <img src="https://evil.example/pixel.png" onerror="document.title='owned'">
    <script>document.title = 'owned'</script>
    ![pixel](https://evil.example/pixel.png)
    [press me](javascript:document.title='owned')

    Read [the manual](https://evil.example/?told=secret) ![of a cat](https://evil.example/cat.png)
    or https://evil.example/?told=secret

    <form action="https://evil.example"><button>Approve</button></form>
    The end.
- when: { user: fail }
  error: { class: bad_request, status: 400 }
- when: { user: no key }
  error: { class: unauthorized, status: 401 }
- when: { user: in trouble }
  error: { class: overloaded, status: 503, retry_after: 60 }
`

let story: Story
beforeAll(async () => {
  story = await begin({ script: SCRIPT })
  await setUp(story)
})
afterAll(() => story?.end())

async function say(text: string): Promise<void> {
  await story.page.goto(story.server.url)
  await story.page.getByRole('textbox', { name: 'Message' }).fill(text)
  await story.page.keyboard.press('Enter')
}

it('goes on after a reload in the middle of an answer, without loss or doubling', async () => {
  const { page } = story
  await say('count')
  const written = page.getByRole('article').locator('.markdown').first()
  await written.waitFor()
  const before = await written.innerText()
  await page.reload()
  await written.waitFor()
  // On a slow machine it may have become whole in the meantime.
  const after = await written.innerText()
  expect(after.startsWith(before) || after === WORDS.join(' ')).toBe(true)
  await page.getByText('word80.').waitFor()
  await page.getByText('See the run').waitFor()
  const answer = await page.getByRole('article').locator('.markdown').last().innerText()
  expect(answer.split(/\s+/)).toEqual(WORDS)
})

it('stops a run in the middle of an answer', async () => {
  const { page } = story
  await say('count')
  await page.getByText('word3.').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('The run was stopped.').waitFor()
  // What it had written by then stays for whoever was reading it, and the end is told once.
  await page.getByText('word3.').waitFor()
  expect(await page.getByRole('article').locator('.note').count()).toBe(1)
})

it('says in the chat that a run is paused, and lets it go on there', async () => {
  const { page, server } = story
  await say('count')
  await page.getByText('word2.').waitFor()
  const chat = page.url()
  const { data } = (await page.evaluate(async () => (await fetch('/api/v1/runs?limit=1')).json())) as { data: { id: string }[] }
  await page.goto(`${server.url}/runs/${data[0]?.id}`)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('button', { name: 'Go on' }).waitFor()
  await page.goto(chat)
  await page.getByText('Paused. Nothing is done until somebody lets it go on.').waitFor()
  expect(await page.getByRole('textbox', { name: 'Message' }).getAttribute('placeholder')).toBe('Guide is paused; messages wait.')
  await page.getByRole('button', { name: 'Go on' }).click()
  await page.getByText('It goes on.').waitFor()
  await page.getByText('word80.').waitFor()
})

it('says what went wrong with the model and when it is asked again', async () => {
  const { page } = story
  await say('in trouble')
  await page.getByText(/The model did not answer\. The provider is overloaded.* It is tried again at \d/).waitFor()
  await page.getByText('Waiting to try again…').waitFor()
  expect(await page.getByRole('link', { name: 'Other models' }).getAttribute('href')).toBe('/settings/models')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('The run was stopped.').waitFor()
  expect(await page.getByRole('link', { name: 'Other models' }).count()).toBe(0)
})

it('leads from a key that the provider refuses to the keys', async () => {
  const { page } = story
  await say('no key')
  const end = page.getByRole('article').locator('.note')
  await end.getByText(/^The run failed\. .*provider/).waitFor()
  expect(await end.count()).toBe(1)
  await end.getByRole('link', { name: 'See the keys' }).click()
  await page.getByRole('heading', { name: /Keys/ }).first().waitFor()
})

it('shows what a hostile model writes as text', async () => {
  const { page } = story
  await say('harm')
  await page.getByText('The end.').waitFor()
  await page.getByText('See the run').waitFor()
  const answer = page.getByRole('article').locator('.markdown').last()
  expect(await answer.locator('img, script, form, button, [onerror]').count()).toBe(0)
  expect(await page.title()).not.toContain('owned')
  // Only what was written as a link is one, and it says where it leads.
  expect(await answer.locator('a[href]').allInnerTexts()).toEqual(['the manual', 'of a cat'])
  await answer.getByText('the manual (evil.example) of a cat (evil.example)').waitFor()
})

it('says what failed and that nothing more was done, and says the same again if it is told to', async () => {
  const { page } = story
  await say('fail')
  await page.getByText(/^The run failed\. .* What was done so far stays/).waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('1 run before the edit').waitFor()
  await page.getByText('The run failed.').waitFor()
  expect(await page.getByRole('article').count()).toBe(1)
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
