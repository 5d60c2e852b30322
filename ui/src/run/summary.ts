// Steps in one line: "thought · read 5 files · searched". Pure.
import { t, tn } from '../i18n/t'
import type { Call, Step } from './view'

/** Runs of steps that fold into one line, and what stands between them. */
export type Segment = { kind: 'steps'; key: number; steps: Step[] } | { kind: 'one'; key: number; step: Step }

export function segmentsOf(steps: Step[]): Segment[] {
  const segments: Segment[] = []
  for (const step of steps) {
    const last = segments.at(-1)
    if (step.kind === 'question' || step.kind === 'note') segments.push({ kind: 'one', key: step.seq, step })
    else if (last?.kind === 'steps') last.steps.push(step)
    else segments.push({ kind: 'steps', key: step.seq, steps: [step] })
  }
  return segments
}

const WORDS: Record<string, (n: number) => string> = {
  read_file: (n) => tn(n, 'read {n} file', 'read {n} files'),
  list_files: () => t('listed files'),
  search_files: (n) => tn(n, 'searched', 'searched {n} times'),
  write_file: (n) => tn(n, 'wrote {n} file', 'wrote {n} files'),
  create_file: (n) => tn(n, 'created {n} file', 'created {n} files'),
  delete_file: (n) => tn(n, 'deleted {n} file', 'deleted {n} files'),
}

/** What these steps were, in a few words. */
export function summaryOf(steps: Step[]): string {
  const calls = steps.filter((step): step is Call => step.kind === 'call')
  const done = countBy(calls.filter((call) => call.state !== 'refused'))
  const parts = [...done].map(([tool, n]) => WORDS[tool]?.(n) ?? (n > 1 ? `${tool} × ${n}` : tool))
  const refused = calls.filter((call) => call.state === 'refused').length
  if (refused > 0) parts.push([tn(refused, '{n} call refused', '{n} calls refused'), firstReason(calls)].filter(Boolean).join(': '))
  if (steps.some((step) => step.kind === 'thought')) parts.unshift(t('thought'))
  return parts.join(' · ')
}

/** Why the first of them was: nobody should have to open anything to learn that. */
function firstReason(calls: Call[]): string {
  return (calls.find((call) => call.denial)?.denial?.reason ?? '').replace(/\.$/, '')
}

function countBy(calls: Call[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const call of calls) counts.set(call.tool, (counts.get(call.tool) ?? 0) + 1)
  return counts
}

/** What a call is about: its path, its key, or its whole input. */
export function targetOf(input: string): string {
  try {
    const fields = JSON.parse(input) as Record<string, unknown>
    for (const name of ['path', 'from', 'key', 'query', 'url', 'name']) {
      if (typeof fields[name] === 'string') return fields[name]
    }
    const text = JSON.stringify(fields)
    return text === '{}' ? '' : text
  } catch {
    return input
  }
}
