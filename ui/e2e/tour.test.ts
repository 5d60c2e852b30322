// The tour: offered once, taken by keys alone, left and begun again, and remembered.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { begin, setUp, type Story } from './story'

let story: Story
beforeAll(async () => {
  story = await begin()
  await setUp(story)
})
afterAll(() => story?.end())

const tour = (): ReturnType<Story['page']['getByRole']> => story.page.getByRole('region', { name: 'Tour' })

it('leads from a first order to what the agent may touch, by keys alone', async () => {
  const { page } = story
  await page.getByRole('button', { name: 'Take the tour' }).focus()
  await page.keyboard.press('Enter')
  await tour().getByText('1 of 5').waitFor()
  await tour().getByRole('button', { name: 'Give it its first order' }).press('Enter')
  await tour().getByText('It asks before it writes').waitFor()
  await page.getByRole('button', { name: 'Approve', exact: true }).press('Enter')
  await tour().getByText('Decided, and not final').waitFor()
  await tour().getByRole('button', { name: 'See the run' }).press('Enter')
  await page.getByRole('button', { name: 'Undo' }).waitFor()
  await tour().getByText('4 of 5').waitFor()
})

it('goes on where it was after a reload, and is over when it is done', async () => {
  const { page } = story
  await page.reload()
  await tour().getByRole('button', { name: 'What may it touch?' }).click()
  await page.getByRole('region', { name: 'What can it touch?' }).waitFor()
  await tour().getByRole('button', { name: 'Done' }).click()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: /What should be done/ }).waitFor()
  expect([await tour().count(), await page.getByText('New here?').count()]).toEqual([0, 0])
})

it('begins again from the menu, and can be left at any station', async () => {
  const { page } = story
  await page.getByRole('button', { name: /Account of/ }).click()
  await page.getByRole('menuitem', { name: 'Take the tour' }).click()
  await tour().getByText('A minute with an agent').waitFor()
  await tour().getByRole('button', { name: 'Leave the tour' }).click()
  await tour().waitFor({ state: 'detached' })
})

it('begins from an empty inbox, too', async () => {
  const { page, server } = story
  await page.goto(`${server.url}/inbox`)
  await page.getByText('Nothing needs you').waitFor()
  await page.getByRole('button', { name: 'Take the tour' }).click()
  await tour().getByText('A minute with an agent').waitFor()
  await tour().getByRole('button', { name: 'Leave the tour' }).click()
  await tour().waitFor({ state: 'detached' })
})

it('did all that without an error and without asking anybody else', () => {
  expect(story.wrong).toEqual([])
})
