// What a run looks like, folded from its events. Pure: the chat, the run page and its scrubber all use it.
import { formatClock, formatMoney } from '../i18n/format'
import { t } from '../i18n/t'
import { targetOf } from './summary'
import type { Place, RunStatus, Scope, TokenUsage, WireEvent } from '../api/types'

export interface Thought {
  kind: 'thought'
  seq: number
  turn: number
  form: 'text' | 'reasoning'
  text: string
}
export interface Call {
  kind: 'call'
  seq: number
  id: string
  tool: string
  input: string
  output: string | null
  isError: boolean
  ms: number | null
  state: 'running' | 'done' | 'refused'
  denial: Denial | null
}
/** Why the guard said no, and the least that would have made it a yes. */
export interface Denial {
  rule: string
  reason: string
  grant: string | null
}
export interface Question {
  kind: 'question'
  seq: number
  id: string
  /** `budget` asks for money, `in_doubt` for what became of a call. */
  about: 'call' | 'in_doubt' | 'budget'
  callId: string | null
  tool: string
  input: string
  summary: string
  diff: string | null
  fingerprint: string | null
  risk: string | null
  reason: string
  rule: string | null
  labels: string[]
  /** What had been read from outside by then, each in a few words. */
  sources: string[]
  place: Place | null
  scopes: Scope[]
  isHidden: boolean
  expiresAt: string | null
  /** What a yes adds, where money is asked for. */
  raiseUsd: number | null
  /** The model whose price is not known, where that is what is asked about. */
  unpricedModel: string | null
  answer: { decision: string; by: string; scope: string | null; message: string | null } | null
}
export interface Note {
  kind: 'note'
  seq: number
  tone: 'plain' | 'warn'
  word: 'retrying' | 'fallback' | 'paused' | 'resumed' | 'budget_alert' | 'content_filtered'
  text: string
}
/** What ended a run before it was done. */
export interface Failure {
  /** The stable word for it. */
  code: string
  text: string
  /** Whether saying the same again may help. */
  isRetryable: boolean
}
export type Step = Thought | Call | Question | Note

export interface RunView {
  id: string
  lastSeq: number
  chatId: string
  agentId: string
  userMessage: string | null
  /** Paths of the files that came with the message. */
  attachments: string[]
  model: string | null
  status: RunStatus
  startedAt: string | null
  endedAt: string | null
  steps: Step[]
  /** What the guard refused, by call. A refused call never begins, so this comes before it is a step. */
  denials: Record<string, Denial>
  /** What was read from outside, each in a few words: the calls that did, the last one first, and attached files. */
  untrusted: string[]
  answer: string | null
  /** Text that is being written; replaced by a durable event. */
  live: string
  liveThinking: string
  /** The turn it belongs to. */
  liveTurn: number
  /** Where each of the two begins in its turn: beyond 0 when its start was not heard. */
  liveFrom: { live: number; liveThinking: number }
  cost: number
  usage: TokenUsage | null
  filesModified: string[]
  failure: Failure | null
  /** What was being written when somebody stopped it. Nothing durable holds it, so it is there for who saw it. */
  unfinished: string
}

export function emptyView(id: string): RunView {
  return {
    id,
    lastSeq: 0,
    chatId: '',
    agentId: '',
    userMessage: null,
    attachments: [],
    model: null,
    status: 'QUEUED',
    startedAt: null,
    endedAt: null,
    steps: [],
    denials: {},
    untrusted: [],
    answer: null,
    live: '',
    liveThinking: '',
    liveTurn: 0,
    liveFrom: { live: 0, liveThinking: 0 },
    cost: 0,
    usage: null,
    filesModified: [],
    failure: null,
    unfinished: '',
  }
}

const ENDED: readonly RunStatus[] = ['COMPLETED', 'FAILED', 'CANCELLED']
export const hasEnded = (status: RunStatus): boolean => ENDED.includes(status)

const MICRO = 1_000_000
/** What came in with a message is nobody's own word. */
const FROM_OUTSIDE = '/attachments/'
/** Stands for live text that was not heard. */
const MISSED = '… '
type Data = Record<string, unknown>
const text = (data: Data, name: string): string => (typeof data[name] === 'string' ? (data[name] as string) : '')
const maybe = (data: Data, name: string): string | null => (typeof data[name] === 'string' ? (data[name] as string) : null)
const number = (data: Data, name: string): number => (typeof data[name] === 'number' ? (data[name] as number) : 0)
const list = (data: Data, name: string): string[] => (Array.isArray(data[name]) ? (data[name] as string[]) : [])

/** Forgets what was live: something durable has taken its place. */
export function dropLive(view: RunView): void {
  view.live = ''
  view.liveThinking = ''
  view.liveFrom = { live: 0, liveThinking: 0 }
}

/** Adds one event. An event that is already in is left out, so that coming back never doubles anything. */
export function fold(view: RunView, { event, id, data }: WireEvent): void {
  if (id === undefined) return foldLive(view, event, data)
  if (id <= view.lastSeq) return
  view.lastSeq = id
  foldDurable(view, event, id, data)
}

function foldLive(view: RunView, event: string, data: Data): void {
  if (event === 'turn_reset') return dropLive(view)
  if (event !== 'answer_delta' && event !== 'thinking_delta') return
  const field = event === 'answer_delta' ? 'live' : 'liveThinking'
  if (number(data, 'turn') !== view.liveTurn) dropLive(view)
  view.liveTurn = number(data, 'turn')
  const at = number(data, 'at')
  const place = at - (at === 0 ? 0 : view.liveFrom[field])
  const known = view[field]
  if (place >= 0 && place <= known.length) {
    if (at === 0) view.liveFrom[field] = 0
    view[field] = known.slice(0, place) + text(data, 'delta')
  } else {
    // What comes before was not heard.
    view.liveFrom[field] = at - MISSED.length
    view[field] = MISSED + text(data, 'delta')
  }
}

function foldDurable(view: RunView, event: string, seq: number, data: Data): void {
  switch (event) {
    case 'interaction_started':
      view.chatId = text(data, 'chat_id')
      view.agentId = text(data, 'agent_id')
      view.userMessage = maybe(data, 'user_message')
      view.attachments = (Array.isArray(data['attachments']) ? data['attachments'] : []).map((file: Data) => text(file, 'path'))
      view.untrusted = view.attachments.filter((path) => path.startsWith(FROM_OUTSIDE)).map((path) => t('attached {path}', { path }))
      view.model = maybe(data, 'model')
      view.startedAt = maybe(data, 'ts')
      view.status = 'RUNNING'
      return
    case 'thinking':
      dropLive(view)
      view.steps.push({ kind: 'thought', seq, turn: number(data, 'turn'), form: text(data, 'kind') === 'reasoning' ? 'reasoning' : 'text', text: text(data, 'content') })
      return
    case 'answer':
      dropLive(view)
      view.answer = text(data, 'content')
      return
    case 'usage':
      view.cost += number(data, 'cost_usd')
      return
    case 'tool_call':
      view.status = 'RUNNING'
      startCall(view, seq, data)
      return
    case 'tool_result':
      endCall(view, seq, data)
      return
    case 'denied':
      view.denials[text(data, 'id')] = { rule: text(data, 'rule'), reason: text(data, 'reason'), grant: maybe(data, 'smallest_grant') }
      return
    case 'approval_required':
      view.status = 'WAITING_APPROVAL'
      view.steps.push({ ...questionOf(seq, data), sources: [...view.untrusted] })
      return
    case 'in_doubt':
      view.status = 'IN_DOUBT'
      view.steps.push({ ...questionOf(seq, data), about: 'in_doubt', summary: text(data, 'summary') || text(data, 'tool_name') })
      return
    case 'approved':
    case 'rejected':
      answerQuestion(view, data)
      return
    case 'error':
      view.failure = { code: text((data['problem'] as Data | undefined) ?? {}, 'code'), text: text(data, 'error'), isRetryable: data['retryable'] === true }
      return
    case 'interaction_complete':
      finish(view, data)
      return
    default:
      note(view, event, seq, data)
  }
}

function startCall(view: RunView, seq: number, data: Data): void {
  const known = callOf(view, data)
  if (known) return replace(view, known, { ...known, state: 'running' })
  view.steps.push({ kind: 'call', seq, id: text(data, 'id'), tool: text(data, 'tool_name'), input: text(data, 'tool_input'), output: null, isError: false, ms: null, state: 'running', denial: null })
}

function endCall(view: RunView, seq: number, data: Data): void {
  const began = callOf(view, data) ?? { kind: 'call', seq, id: text(data, 'id'), tool: text(data, 'tool_name'), input: '' }
  const call: Call = {
    ...began,
    output: text(data, 'tool_output'),
    isError: data['is_error'] === true,
    ms: number(data, 'ms'),
    state: data['allowed'] === false ? 'refused' : 'done',
    denial: view.denials[text(data, 'id')] ?? null,
  }
  const known = callOf(view, data)
  if (list(data, 'labels').includes('untrusted')) view.untrusted.unshift(`${call.tool} ${targetOf(call.input)}`.trim())
  if (known) replace(view, known, call)
  else view.steps.push(call)
  const doubt = openQuestions(view).find((question) => question.about === 'in_doubt' && question.callId === call.id)
  if (doubt) replace(view, doubt, { ...doubt, answer: { decision: 'resolved', by: '', scope: null, message: null } })
}

function callOf(view: RunView, data: Data): Call | undefined {
  return view.steps.find((step): step is Call => step.kind === 'call' && step.id === data['id'])
}

/** A step that changes becomes another one, so that whoever draws sees which. */
function replace(view: RunView, before: Step, after: Step): void {
  view.steps[view.steps.indexOf(before)] = after
}

function questionOf(seq: number, data: Data): Question {
  const about = text(data, 'kind')
  return {
    kind: 'question',
    seq,
    id: text(data, 'approval_id'),
    about: about === 'budget' || about === 'in_doubt' ? about : 'call',
    callId: maybe(data, 'call_id'),
    tool: text(data, 'tool_name'),
    input: text(data, 'tool_input'),
    summary: text(data, 'summary'),
    diff: maybe(data, 'diff'),
    fingerprint: maybe(data, 'fingerprint'),
    risk: maybe(data, 'risk'),
    reason: text(data, 'reason'),
    rule: maybe(data, 'rule'),
    labels: list(data, 'labels'),
    sources: [],
    place: (data['place'] as Place | undefined) ?? null,
    scopes: list(data, 'allowed_scopes') as Scope[],
    isHidden: data['hidden'] === true,
    expiresAt: maybe(data, 'expires_at'),
    raiseUsd: typeof data['raise_microusd'] === 'number' ? data['raise_microusd'] / MICRO : null,
    unpricedModel: maybe(data, 'unpriced_model'),
    answer: null,
  }
}

function answerQuestion(view: RunView, data: Data): void {
  const question = openQuestions(view).find((step) => step.id === data['approval_id'])
  if (question) {
    const decision = text(data, 'reason') === 'expired' ? 'expired' : text(data, 'decision')
    const answer = { decision, by: text(data, 'decided_by'), scope: maybe(data, 'scope'), message: maybe(data, 'message') }
    replace(view, question, { ...question, answer })
  }
  if (openQuestions(view).length === 0) view.status = 'RUNNING'
}

/** What waits for somebody. */
export function openQuestions(view: RunView): Question[] {
  return view.steps.filter((step): step is Question => step.kind === 'question' && step.answer === null)
}

function finish(view: RunView, data: Data): void {
  view.status = text(data, 'status') as RunStatus
  if (view.status === 'CANCELLED') view.unfinished = view.live
  dropLive(view)
  view.endedAt = maybe(data, 'ts')
  view.cost = number(data, 'cost_usd')
  view.usage = (data['usage'] as TokenUsage | undefined) ?? null
  view.filesModified = list(data, 'files_modified')
  for (const question of openQuestions(view)) {
    replace(view, question, { ...question, answer: { decision: 'withdrawn', by: '', scope: null, message: null } })
  }
}

/** Money that is used up is a question, like any other that waits for somebody. */
function askForMoney(view: RunView, seq: number, data: Data): void {
  view.steps.push({ ...questionOf(seq, data), about: 'budget', tool: 'budget', reason: text(data, 'summary') })
}
function giveMoney(view: RunView, data: Data): void {
  const by = text(data, 'by')
  for (const question of openQuestions(view).filter((one) => one.about === 'budget')) {
    replace(view, question, { ...question, answer: { decision: 'approve', by, scope: null, message: null } })
  }
}

function note(view: RunView, event: string, seq: number, data: Data): void {
  // The call is made again: what the one that failed had written is void.
  if (event === 'retrying' || event === 'fallback') dropLive(view)
  if (event === 'paused') view.status = 'PAUSED'
  if (event === 'resumed') view.status = 'RUNNING'
  if (event === 'paused' && maybe(data, 'approval_id')) return askForMoney(view, seq, data)
  if (event === 'resumed') giveMoney(view, data)
  const kind = NOTES.find(([word]) => word === event)
  if (kind) view.steps.push({ kind: 'note', seq, word: kind[0], tone: kind[1], text: kind[2](data) })
}

/** What was said, as a sentence of its own. */
export const sentence = (words: string): string => (words ? `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?…]$/.test(words) ? '' : '.'}` : '')
const said = (data: Data): string => sentence(text(data, 'reason'))
const at = (data: Data, name: string): string => formatClock(text(data, name))
const together = (...parts: string[]): string => parts.filter(Boolean).join(' ')

function pausedWords(data: Data): string {
  if (maybe(data, 'until')) return t('It has used up what it may do for now, and goes on by itself at {time}.', { time: at(data, 'until') })
  return text(data, 'reason') === 'budget' ? t('A budget is used up.') : t('Nothing is done until somebody lets it go on.')
}

/** What is worth a line of its own: its word, its tone, and what is said of it. */
const NOTES: [Note['word'], Note['tone'], (data: Data) => string][] = [
  ['fallback', 'warn', (data) => together(said(data), t('{model} is asked instead.', { model: text(data, 'to') }))],
  ['retrying', 'warn', (data) => together(said(data), maybe(data, 'retry_at') ? t('It is tried again at {time}.', { time: at(data, 'retry_at') }) : '')],
  ['paused', 'warn', pausedWords],
  ['budget_alert', 'warn', (data) => t('{spent} spent: the mark of {at} is passed', { spent: formatMoney(number(data, 'spent_usd')), at: formatMoney(number(data, 'at_usd')) })],
  ['content_filtered', 'warn', filteredWords],
  ['resumed', 'plain', () => ''],
]

const POINTS: Record<string, string> = {
  prompt: 'the message',
  tool: 'the name of a tool',
  input: 'the arguments of a call',
  output: 'an answer',
  memory: 'what was to be remembered',
}
function filteredWords(data: Data): string {
  const where = t(POINTS[text(data, 'point')] ?? 'a text')
  if (typeof data['blocked'] === 'number') return t('held back: {where}', { where })
  return list(data, 'redacted').length > 0 ? t('something was taken out of {where}', { where }) : t('labelled: {where}', { where })
}
