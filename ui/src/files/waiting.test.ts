import { expect, it } from 'vitest'
import { names } from './waiting'

it('knows a path by all of it', () => {
  const of = (line: string): boolean => names(line, '/todo.md')
  expect(['change /todo.md', 'change /todo.md: 2 lines', '"/todo.md"', 'Changes /todo.md.', 'move /old/todo.md to /todo.md'].map(of)).toEqual([true, true, true, true, true])
  expect(['change /old/todo.md', 'change /todo.md.bak', 'change /todo.mdx', ''].map(of)).toEqual([false, false, false, false])
})
