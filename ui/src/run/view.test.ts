import { describe, expect, it } from 'vitest'
import type { WireEvent } from '../api/types'
import { emptyView, fold, openQuestions } from './view'

const at = (id: number, event: string, data: Record<string, unknown> = {}): WireEvent => ({ event, id, data })
const live = (event: string, data: Record<string, unknown>): WireEvent => ({ event, data })
const asked = at(5, 'approval_required', { approval_id: 'a1', kind: 'call', tool_name: 'write_file', tool_input: '{"path":"/a"}' })

function viewOf(events: WireEvent[]) {
  const view = emptyView('run_1')
  events.forEach((event) => fold(view, event))
  return view
}

describe('the view of a run', () => {
  it('takes an event that comes twice once', () => {
    const events = [at(1, 'interaction_started', { user_message: 'hi' }), at(3, 'thinking', { content: 'hm' }), at(3, 'thinking', { content: 'hm' })]
    expect(viewOf(events).steps).toHaveLength(1)
  })

  it('replaces what was written live by the durable answer', () => {
    const view = viewOf([at(1, 'interaction_started'), live('answer_delta', { at: 0, delta: 'Hel' }), live('answer_delta', { at: 3, delta: 'lo' })])
    expect(view.live).toBe('Hello')
    fold(view, at(4, 'answer', { content: 'Hello.' }))
    expect([view.live, view.answer]).toEqual(['', 'Hello.'])
  })

  it('forgets live text when the turn turns out to be thinking, and when the call is made again', () => {
    const view = viewOf([live('answer_delta', { delta: 'x' }), live('turn_reset', {})])
    expect(view.live).toBe('')
    fold(view, live('answer_delta', { delta: 'half' }))
    fold(view, at(4, 'retrying', { reason: 'the line broke' }))
    expect(view.live).toBe('')
  })

  it('puts live text where it belongs, however often it comes', () => {
    const piece = (at: number, delta: string, turn = 1): WireEvent => live('answer_delta', { turn, at, delta })
    const view = viewOf([piece(0, 'one '), piece(4, 'two')])
    fold(view, piece(0, 'one two th'))
    fold(view, piece(4, 'two'))
    fold(view, piece(7, ' three'))
    expect(view.live).toBe('one two three')
    fold(view, piece(0, 'next', 2))
    expect(view.live).toBe('next')
  })

  it('shows that something was missed, until the whole comes', () => {
    const view = viewOf([live('answer_delta', { turn: 1, at: 9, delta: 'four' }), live('answer_delta', { turn: 1, at: 13, delta: ' five' })])
    expect(view.live).toBe('… four five')
    fold(view, live('answer_delta', { turn: 1, at: 0, delta: 'one two four five' }))
    fold(view, live('answer_delta', { turn: 1, at: 17, delta: '!' }))
    expect(view.live).toBe('one two four five!')
  })

  it('waits while a question is open and goes on when it is answered', () => {
    const view = viewOf([at(1, 'interaction_started'), asked])
    expect([view.status, openQuestions(view).length]).toEqual(['WAITING_APPROVAL', 1])
    fold(view, at(6, 'approved', { approval_id: 'a1', decision: 'approve', decided_by: 'usr_1' }))
    expect([view.status, openQuestions(view).length]).toEqual(['RUNNING', 0])
  })

  it('joins a call with its result, and shows a refused call that never began', () => {
    const view = viewOf([
      at(1, 'tool_call', { id: 'c1', tool_name: 'read_file', tool_input: '{}' }),
      at(2, 'tool_result', { id: 'c1', tool_name: 'read_file', tool_output: 'text', allowed: true, ms: 3 }),
      at(3, 'denied', { id: 'c2', rule: 'P16', reason: 'it may not delete', smallest_grant: 'delete /old.md' }),
      at(4, 'tool_result', { id: 'c2', tool_name: 'delete_file', tool_output: 'no', allowed: false, is_error: true }),
    ])
    expect(view.steps.map((step) => step.kind === 'call' && [step.id, step.state])).toEqual([
      ['c1', 'done'],
      ['c2', 'refused'],
    ])
    expect(view.steps.map((step) => step.kind === 'call' && step.denial?.grant)).toEqual([undefined, 'delete /old.md'])
  })

  it('knows what was read from outside when a question was asked', () => {
    const view = viewOf([
      at(1, 'tool_call', { id: 'c1', tool_name: 'fetch_web_page', tool_input: '{"url":"https://example.org/"}' }),
      at(2, 'tool_result', { id: 'c1', tool_output: 'text', allowed: true, labels: ['untrusted'] }),
      asked,
    ])
    expect(openQuestions(view)[0]?.sources).toEqual(['fetch_web_page https://example.org/'])
  })

  it('says of a note what it is about', () => {
    const view = viewOf([
      at(1, 'retrying', { reason: 'the line broke', retry_at: '2026-01-31T12:04:10.000Z' }),
      at(2, 'budget_alert', { at_usd: 1, spent_usd: 1.25 }),
      at(3, 'content_filtered', { point: 'output', redacted: [0], labels: {} }),
      at(4, 'content_filtered', { point: 'input', redacted: [], blocked: 2, labels: {} }),
      at(5, 'error', { error: 'nobody answers', problem: { code: 'network' }, retryable: true }),
    ])
    expect(view.steps.map((step) => step.kind === 'note' && [step.word, step.text.replace(/\d\d:04:10/, 'then')])).toEqual([
      ['retrying', 'The line broke. It is tried again at then.'],
      ['budget_alert', '$1.25 spent: the mark of $1.00 is passed'],
      ['content_filtered', 'something was taken out of an answer'],
      ['content_filtered', 'held back: the arguments of a call'],
    ])
    expect(view.failure).toEqual({ code: 'network', text: 'nobody answers', isRetryable: true })
  })

  it('withdraws what nobody answered when the run ends', () => {
    const view = viewOf([asked, at(9, 'interaction_complete', { status: 'CANCELLED', cost_usd: 0.5, files_modified: ['/a'] })])
    expect(openQuestions(view)).toEqual([])
    expect([view.status, view.cost, view.filesModified]).toEqual(['CANCELLED', 0.5, ['/a']])
  })

  it('keeps what was being written when somebody stops it, and tells once that it was stopped', () => {
    const half = [at(1, 'interaction_started'), live('answer_delta', { turn: 1, at: 0, delta: 'Half of a' })]
    const view = viewOf([...half, at(4, 'cancelled', { reason: 'enough' }), at(5, 'interaction_complete', { status: 'CANCELLED' })])
    expect([view.live, view.unfinished, view.steps]).toEqual(['', 'Half of a', []])
    expect(viewOf([...half, at(5, 'interaction_complete', { status: 'FAILED' })]).unfinished).toBe('')
  })

  it('says why it holds, and until when', () => {
    const words = (data: object): unknown => viewOf([at(1, 'paused', { ...data })]).steps.map((step) => step.kind === 'note' && step.text.replace(/\d\d:04:10/, 'then'))
    expect(words({ reason: 'person' })).toEqual(['Nothing is done until somebody lets it go on.'])
    expect(words({ reason: 'rate', until: '2026-01-31T12:04:10.000Z' })).toEqual(['It has used up what it may do for now, and goes on by itself at then.'])
  })

  it('makes another object of a step that changes, so that it is drawn again', () => {
    const view = viewOf([at(1, 'tool_call', { id: 'c1', tool_name: 'read_file' })])
    const before = view.steps[0]
    fold(view, at(2, 'tool_result', { id: 'c1', tool_output: 'text', allowed: true }))
    expect(view.steps[0]).not.toBe(before)
  })
})

it('asks for money when it is used up, and goes on when some was given', () => {
  const view = emptyView('r')
  fold(view, { event: 'paused', id: 1, data: { reason: 'budget', approval_id: 'approval_1', summary: 'The budget of the run is used up. +$0.25 and continue?', raise_microusd: 250_000 } })
  expect([view.status, openQuestions(view).map((one) => [one.about, one.raiseUsd])]).toEqual(['PAUSED', [['budget', 0.25]]])
  fold(view, { event: 'resumed', id: 2, data: { by: 'usr_1', raised_microusd: 250_000 } })
  expect([view.status, openQuestions(view)]).toEqual(['RUNNING', []])
})
