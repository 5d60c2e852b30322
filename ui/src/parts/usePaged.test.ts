import { expect, it } from 'vitest'
import { usePaged } from './usePaged'

const PAGE = 3

/** A list that others change; it comes three at a time. */
function listOf(...ids: string[]) {
  const list = { ids }
  const paged = usePaged((from) => {
    const at = from === null ? 0 : list.ids.indexOf(from) + 1
    const data = list.ids.slice(at, at + PAGE)
    const has_more = at + PAGE < list.ids.length
    return Promise.resolve({ data, has_more, next_cursor: has_more ? (data.at(-1) ?? null) : null })
  })
  return { list, ...paged }
}

it('leaves no hole when more than a page has come since', async () => {
  const { list, items, cursor, load, more } = listOf('d', 'c', 'b', 'a')
  await load()
  await more()
  expect([items.value, cursor.value]).toEqual([['d', 'c', 'b', 'a'], null])
  list.ids = ['i', 'h', 'g', 'f', 'e', ...list.ids]
  await load()
  expect(items.value).toEqual(['i', 'h', 'g', 'f', 'e', 'd'])
  await more()
  expect([items.value, cursor.value]).toEqual([list.ids, null])
})

it('sees what changed further down', async () => {
  const { list, items, load, more } = listOf('e', 'd', 'c', 'a')
  await load()
  await more()
  list.ids = ['e', 'd', 'c', 'b', 'a']
  await load()
  expect(items.value).toEqual(list.ids)
})

it('shows nothing of a list that it is no more', async () => {
  const { items, load, clear } = listOf('a')
  const reading = load()
  clear()
  expect([await reading, items.value]).toEqual([false, []])
  expect([await load(), items.value]).toEqual([true, ['a']])
})
