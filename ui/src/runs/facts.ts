// What an event says, in words: a title, short facts, and longer texts. Pure; the JSON of the log has all of it.
import type { WireEvent } from '../api/types'
import { formatCompact, formatDate, formatMoney, formatSpan } from '../i18n/format'
import { t, tn } from '../i18n/t'
import { targetOf } from '../run/summary'

export interface Facts {
  title: string
  facts: [label: string, value: string][]
  texts: [label: string, text: string][]
}
type Data = Record<string, unknown>

const TITLES: Record<string, string> = {
  interaction_started: 'The run begins',
  thinking: 'A thought',
  answer: 'The answer',
  usage: 'The model answered',
  tool_call: 'A call begins',
  tool_result: 'A call ended',
  denied: 'The guard refused a call',
  approval_required: 'It asks',
  approved: 'Somebody said yes',
  rejected: 'Somebody said no',
  in_doubt: 'Nobody knows how a call ended',
  retrying: 'The model failed, and is asked again',
  fallback: 'The model failed; another one is asked',
  paused: 'The run holds',
  resumed: 'The run goes on',
  cancelled: 'The run is stopped',
  budget_alert: 'A sum was passed',
  content_filtered: 'The content filter acted',
  error: 'The run failed',
  interaction_complete: 'The run ended',
}
const text = (data: Data, name: string): string => (typeof data[name] === 'string' ? data[name] : '')
/** One of a few words that people know in their own language. */
const word = (data: Data, name: string): string => (text(data, name) && t(text(data, name).toLowerCase().replace('_', ' ')))
const number = (data: Data, name: string): number | null => (typeof data[name] === 'number' ? data[name] : null)
const list = (data: Data, name: string): string[] => (Array.isArray(data[name]) ? data[name].filter((one): one is string => typeof one === 'string') : [])

/** What a call that ended was given stands where it began. */
function inputOf({ event, data }: WireEvent, all: WireEvent[]): string {
  if (event !== 'tool_result') return text(data, 'tool_input')
  const begun = all.findLast((one) => one.event === 'tool_call' && one.data['id'] === data['id'])
  return begun ? text(begun.data, 'tool_input') : ''
}

/** `all`: the log that it stands in. */
export function factsOf(shown: WireEvent, all: WireEvent[] = []): Facts {
  const { event, data } = shown
  const facts: Facts['facts'] = []
  const add = (label: string, value: string): void => void (value !== '' && facts.push([t(label), value]))
  add('Tool', text(data, 'tool_name'))
  add('About', targetOf(inputOf(shown, all)))
  add('Model', text(data, 'model') || text(data, 'unpriced_model'))
  add('From', text(data, 'from'))
  add('To', text(data, 'to'))
  if (event === 'tool_result') add('Verdict', data['allowed'] === false ? t('refused') : data['is_error'] === true ? t('allowed, and failed') : t('allowed'))
  add('Status', word(data, 'status'))
  add('Decision', word(data, 'decision'))
  add('For', word(data, 'scope'))
  add('Rule', text(data, 'rule'))
  add('Risk', word(data, 'risk'))
  add('Reason', text(data, 'reason') || text(data, 'error'))
  add('Smallest grant', text(data, 'smallest_grant'))
  add('Labels', list(data, 'labels').join(', '))
  const ms = number(data, 'ms')
  if (ms !== null) add('Took', formatSpan(ms))
  const usage = data['usage'] as { input?: number; output?: number; cached?: number } | undefined
  if (usage) {
    add('Tokens', t('{in} in, {out} out', { in: formatCompact(usage.input ?? 0), out: formatCompact(usage.output ?? 0) }))
    if (usage.cached) add('From the cache', tn(usage.cached, '{n} token', '{n} tokens'))
  }
  const cost = number(data, 'cost_usd') ?? number(data, 'spent_usd')
  if (cost !== null) add('Cost', formatMoney(cost))
  add('Files', list(data, 'files_modified').join(', '))
  for (const [label, name] of [['Ends', 'expires_at'], ['Until', 'until'], ['Again', 'retry_at']] as const) if (text(data, name)) add(label, formatDate(text(data, name)))
  return { title: t(TITLES[event] ?? event), facts, texts: textsOf(data) }
}

function textsOf(data: Data): Facts['texts'] {
  const input = text(data, 'tool_input')
  const all: Facts['texts'] = [
    ['Message', text(data, 'user_message') || text(data, 'message')],
    ['Text', text(data, 'content')],
    ['Input', pretty(input) === targetOf(input) ? '' : pretty(input)],
    ['Output', text(data, 'tool_output')],
  ]
  return all.filter(([, said]) => said !== '').map(([label, said]) => [t(label), said])
}
function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}
