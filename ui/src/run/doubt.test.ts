import { expect, it } from 'vitest'
import { approvalOf } from './question'
import { emptyView, fold, openQuestions } from './view'

it('asks about a call in doubt with what it was to do and what is known of it', () => {
  const view = emptyView('run_1')
  const data = { approval_id: 'approval_1', call_id: 'c1', tool_name: 'http_request', summary: 'POST http://x/', tool_input: '{"url":"http://x/"}', reason: 'It broke off.' }
  fold(view, { event: 'in_doubt', id: 3, data })
  const [question] = openQuestions(view)
  expect([question?.about, question?.summary, question?.reason]).toEqual(['in_doubt', 'POST http://x/', 'It broke off.'])
  expect(question && approvalOf(question, view).arguments).toEqual({ url: 'http://x/' })
})
