import { expect, it } from 'vitest'
import { markedName, markedSnippet, type Piece } from './marked'

const show = (pieces: Piece[]): string => pieces.map(({ text, isMarked }) => (isMarked ? `<${text}>` : text)).join('')

it('marks what the server found, by its stem and from the first letter on', () => {
  expect(show(markedSnippet('buy [Milk] and [milking] stools', 'milks'))).toBe('buy <Milk> and <milking> stools')
  expect(show(markedSnippet('a [summary]', 'garden su'))).toBe('a <summary>')
})

it('leaves brackets that belong to the text', () => {
  expect(show(markedSnippet('- [ ] buy [milk], see [here](x) and [[milk]](y)', 'milk'))).toBe('- [ ] buy <milk>, see [here](x) and [<milk>](y)')
})

it('marks the words in a name that has all of them', () => {
  expect(show(markedName('/notes/Todo.md', 'todo'))).toBe('/notes/<Todo>.md')
  expect(show(markedName('/notes/Todo.md', 'todo milk'))).toBe('/notes/Todo.md')
  expect(show(markedName('/a+b.md', '+b'))).toBe('/a<+b>.md')
})
