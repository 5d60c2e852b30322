import { expect, it } from 'vitest'
import { summaryOf } from './summary'
import type { Call } from './view'

const call = (tool: string, more: Partial<Call> = {}): Call => ({ kind: 'call', seq: 1, id: tool, tool, input: '{}', output: '', isError: false, ms: 1, state: 'done', denial: null, ...more })

it('says why something was refused without being opened', () => {
  const refused = call('delete_file', { state: 'refused', denial: { rule: 'scope', reason: 'It may not delete.', grant: null } })
  expect(summaryOf([call('read_file'), refused, { ...refused, id: 'c3' }])).toBe('read 1 file · 2 calls refused: It may not delete')
  expect(summaryOf([{ ...refused, denial: null }])).toBe('1 call refused')
})
