// Somebody in two workspaces: what is made lands where they are, lists show one of them, and nothing that waits is overlooked.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, setUp, tidy, type Story } from './story'

let story: Story
beforeAll(async () => {
  story = await begin()
  await setUp(story)
  await tidy(story.page)
})
afterAll(() => story?.end())

async function goTo(name: string): Promise<void> {
  const { page } = story
  await page.getByRole('button', { name: /^Workspace/ }).click()
  await page.getByRole('menuitemradio', { name }).click()
  await page.getByRole('button', { name: `Workspace ${name}` }).waitFor()
}

it('makes another workspace and goes there', async () => {
  const { page, server } = story
  expect(await page.getByRole('button', { name: /^Workspace/ }).count()).toBe(0)
  await page.goto(`${server.url}/settings/workspace`)
  await page.getByLabel('Name of the new workspace').fill('Office')
  await page.getByRole('button', { name: 'Make the workspace' }).click()
  await page.getByRole('button', { name: 'Workspace Office' }).waitFor()
  await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe('Office')
})

it('makes agents and rules where it is, after asking the guard there', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/agents/new?tab=scope`)
  await page.getByRole('region', { name: 'What can it touch?' }).getByText('asked the guard now').waitFor()
  await page.getByRole('tab', { name: 'Basics' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Clerk')
  await page.getByRole('button', { name: 'Make the agent' }).click()
  await page.getByRole('heading', { name: 'Clerk' }).waitFor()
  await page.goto(`${server.url}/rules`)
  await page.getByRole('button', { name: 'New rule' }).click()
  await page.getByRole('button', { name: 'Save the rule' }).click()
  await page.getByRole('listitem').filter({ hasText: 'delete_file' }).waitFor()
  await page.goto(`${server.url}/audit`)
  await page.getByText('Rule saved').first().waitFor()
  const csv = await page.getByRole('link', { name: 'CSV' }).getAttribute('href')
  expect((await page.request.get(server.url + csv)).status()).toBe(200)
})

it('shows the question of the other workspace in the inbox, by the name of its agent, and takes the answer', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/inbox`)
  const question = page.getByRole('region', { name: /Needs you: write_file/ })
  await question.waitFor()
  await page.getByRole('main').getByText('Guide').first().waitFor()
  await question.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('Nothing needs you').waitFor()
})

it('shows nothing of one in the other', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/runs`)
  await page.getByText('No runs here').first().waitFor()
  await goTo('Home')
  await page.goto(`${server.url}/runs`)
  await page.getByRole('link', { name: 'tidy the welcome notes' }).waitFor()
  await page.goto(`${server.url}/rules`)
  await page.getByText('No standing rules').waitFor()
  await page.goto(`${server.url}/agents`)
  await page.getByRole('link', { name: /Guide/ }).waitFor()
  expect(await page.getByRole('link', { name: /Clerk/ }).count()).toBe(0)
})

it('is changed on a phone too', async () => {
  const { page } = story
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Go to Office' }).click()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Go to Home' }).waitFor()
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
