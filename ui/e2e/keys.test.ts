// Keys that people bring: kept, tested against a provider, changed and forgotten, and never shown.
import { once } from 'node:events'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, setUp, type Story } from './story'

const WRONG = 'sk-wrong-5f0e77aa1b'
const RIGHT = 'sk-right-93b1f0c7a2'
const CHUNK = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'some', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

let story: Story
let provider: HttpServer
beforeAll(async () => {
  // A provider that knows one key.
  provider = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${RIGHT}`) {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no such key"}}')
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`${CHUNK({ role: 'assistant', content: 'Yes.' }, null)}${CHUNK({}, 'stop')}data: [DONE]\n\n`)
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const address = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
  story = await begin({ script: '- text: Heard.\n', settings: `\n[providers.lab]\nkind = "compatible"\nbase_url = "${address}"\n\n[providers.groq]\nkind = "groq"\napi_key_env = "E2E_GROQ"\n`, env: { E2E_GROQ: 'gsk-unused' } })
  await setUp(story)
})
afterAll(async () => {
  await story?.end()
  provider?.close()
})

it('keeps a key and shows only its end', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/models`)
  await page.getByText('No keys are kept here').waitFor()
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Provider').fill('lab')
  await page.getByLabel('What you call it').fill('the lab account')
  await page.getByLabel('The key', { exact: true }).fill(WRONG)
  await page.getByRole('radio', { name: /The workspace/ }).check()
  await page.getByRole('button', { name: 'Keep the key' }).click()
  const item = page.getByRole('listitem').filter({ hasText: 'the lab account' })
  await item.getByText(`····${WRONG.slice(-4)}`).waitFor()
  await item.getByText('only to 127.0.0.1').waitFor()
  expect(await page.content()).not.toContain(WRONG)
})

it('says of a wrong key that the provider refuses it, and of the right one that it is good', async () => {
  const { page } = story
  const item = page.getByRole('listitem').filter({ hasText: 'the lab account' })
  // No model of this provider is in the catalog, so one has to be named.
  await item.getByRole('button', { name: 'Test' }).click()
  await item.getByLabel('Model to ask').fill('some')
  await item.getByRole('button', { name: 'Ask it' }).click()
  await item.getByText(/lab\/some did not answer: .*key/).waitFor()
  await item.getByRole('button', { name: 'New value' }).click()
  await item.getByLabel('The new key').fill(RIGHT)
  await item.getByRole('button', { name: 'Change it' }).click()
  await item.getByText(`····${RIGHT.slice(-4)}`).waitFor()
  await item.getByRole('button', { name: 'Test' }).click()
  await item.getByText('The key is good').waitFor()
})

it('shows at an agent which key its runs use', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/guide?tab=credentials`)
  const house = page.getByRole('listitem').filter({ hasText: 'the lab account' })
  await house.getByText('used now').waitFor()
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Provider').fill('lab')
  await page.getByLabel('What you call it').fill('only for the guide')
  await page.getByLabel('The key', { exact: true }).fill(RIGHT)
  await page.getByRole('button', { name: 'Keep the key' }).click()
  await page.getByRole('listitem').filter({ hasText: 'only for the guide' }).getByText('used now').waitFor()
  expect(await house.getByText('used now').count()).toBe(0)
})

it('lists the models and says why one would be chosen', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/settings/models`)
  const models = page.getByRole('region', { name: 'Models of groq' })
  await models.getByRole('row').nth(1).waitFor()
  await page.getByLabel('Way to choose').selectOption('cheapest')
  await page.getByText('It would be').getByText(/^groq\//).waitFor()
  await page.getByRole('checkbox', { name: 'It has to see images' }).check()
  await page.getByText(/Left out: \d+/).click()
  await page.getByText('cannot see images').first().waitFor()
})

it('forgets a key after asking once more', async () => {
  const { page } = story
  const item = page.getByRole('listitem').filter({ hasText: 'the lab account' })
  await item.getByRole('button', { name: 'Forget' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Forget' }).click()
  await page.getByText('the lab account is forgotten.').waitFor()
  await item.waitFor({ state: 'detached' })
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
