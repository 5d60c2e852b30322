import { expect, it } from 'vitest'
import { emptyView, fold, type RunView } from '../run/view'
import { answersDiff, linesOf, stepsDiff } from './compare'

function run(id: string, path: string, answer: string): RunView {
  const view = emptyView(id)
  fold(view, { event: 'tool_call', id: 1, data: { id: 'c', tool_name: 'read_file', tool_input: JSON.stringify({ path }) } })
  fold(view, { event: 'tool_result', id: 2, data: { id: 'c', tool_name: 'read_file', tool_output: 'x', allowed: true } })
  fold(view, { event: 'answer', id: 3, data: { content: answer } })
  return view
}

it('says what each did in one line a step', () => {
  expect(linesOf(run('a', '/todo.md', 'Done.'))).toEqual(['read_file /todo.md'])
})

it('shows where two runs part, and nothing where they do not', () => {
  const [a, b] = [run('a', '/todo.md', 'Done.'), run('b', '/ideas.md', 'Done.')]
  expect(stepsDiff(a, b).split('\n').slice(1)).toEqual(['-read_file /todo.md', '+read_file /ideas.md'])
  expect(answersDiff(a, b).split('\n').slice(1)).toEqual([' Done.'])
})
