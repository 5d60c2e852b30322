// Two runs side by side: what each did, step by step, as lines that can be compared. Pure.
import { t } from '../i18n/t'
import { lineDiff } from '../parts/lines'
import { targetOf } from '../run/summary'
import { hasEnded, type RunView, type Step } from '../run/view'

function lineOf(step: Step): string {
  switch (step.kind) {
    case 'call':
      return `${step.tool} ${targetOf(step.input)}${step.state === 'refused' ? ` · ${t('refused')}` : step.isError ? ` · ${t('failed')}` : ''}`
    case 'question':
      return `? ${step.tool} ${targetOf(step.input)} · ${step.answer ? t(step.answer.decision) : t('waits')}`
    case 'thought':
      return `… ${step.text.split('\n')[0] ?? ''}`
    case 'note':
      return `! ${t(step.word)} ${step.text}`
  }
}

/** What a run did, a line for each step. */
export const linesOf = (view: RunView): string[] => view.steps.map(lineOf)

export const stepsDiff = (a: RunView, b: RunView): string => lineDiff(linesOf(a).join('\n'), linesOf(b).join('\n'))
export const answersDiff = (a: RunView, b: RunView): string => lineDiff(a.answer ?? '', b.answer ?? '')

export function spanOf(view: RunView): number | null {
  return view.startedAt && view.endedAt && hasEnded(view.status) ? new Date(view.endedAt).getTime() - new Date(view.startedAt).getTime() : null
}
export const callsOf = (view: RunView): number => view.steps.filter((step) => step.kind === 'call').length
