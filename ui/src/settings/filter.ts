// What texts may hold, as a form has it. Pure.
export interface FilterEntry {
  category?: string | null
  pattern?: string | null
  points: string[]
  action: string
}
export const POINTS: [string, string][] = [
  ['prompt', 'what people say'],
  ['tool', 'what tools are given'],
  ['input', 'what tools bring back'],
  ['output', 'what the model says'],
  ['memory', 'what is remembered'],
]
export const ACTIONS: [string, string][] = [
  ['block', 'refuse it'],
  ['redact', 'black it out'],
  ['ask', 'ask first'],
  ['label', 'only mark it'],
]
export const CATEGORIES: [string, string][] = [
  ['secrets', 'secrets: keys, passwords, tokens'],
  ['personal', 'personal data: addresses, numbers'],
]

export const newEntry = (): FilterEntry => ({ category: 'secrets', points: ['prompt', 'output'], action: 'redact' })

/** Either a category or a pattern, and only what was filled in. */
export function cleaned(entries: FilterEntry[]): FilterEntry[] {
  return entries.map(({ category, pattern, points, action }) => ({ ...(category ? { category } : { pattern: pattern ?? '' }), points: POINTS.map(([point]) => point).filter((point) => points.includes(point)), action }))
}
