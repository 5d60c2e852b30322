import { expect, it } from 'vitest'
import { suggestionsFor } from './suggestions'

it('offers what the demo model knows to nobody who has another one', () => {
  const [demo, real] = [suggestionsFor('demo/guide'), suggestionsFor('openai/gpt-5')].map((all) => all.map(({ text }) => text))
  expect(demo).toContain('tidy the welcome notes')
  expect(real?.filter((text) => demo?.includes(text))).toEqual([])
  // As many, so that nothing moves when it is known which.
  expect(real?.length).toBe(demo?.length)
})
