// A unified diff as lines with their numbers. Pure.
import { ROW, heightOf, visible } from './visible'

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'hunk'
  text: string
  before: number | null
  after: number | null
}

export interface Diff {
  lines: DiffLine[]
  added: number
  removed: number
}

export function parseDiff(text: string): Diff {
  const lines: DiffLine[] = []
  let [before, after, added, removed] = [0, 0, 0, 0]
  let isInside = false
  const source = text.endsWith('\n') ? text.slice(0, -1) : text
  for (const line of source.split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line)
    if (hunk) {
      ;[before, after, isInside] = [Number(hunk[1]), Number(hunk[2]), true]
      lines.push({ kind: 'hunk', text: line, before: null, after: null })
    } else if (!isInside || line.startsWith('\\')) {
      continue
    } else if (line.startsWith('+')) {
      lines.push({ kind: 'added', text: line.slice(1), before: null, after: after++ })
      added += 1
    } else if (line.startsWith('-')) {
      lines.push({ kind: 'removed', text: line.slice(1), before: before++, after: null })
      removed += 1
    } else {
      lines.push({ kind: 'same', text: line.slice(1), before: before++, after: after++ })
    }
  }
  return { lines, added, removed }
}

/** How many rows of a difference are shown before somebody asks for the rest. */
export const FIRST_LINES = 60

/** The beginning of a difference, with nothing hidden in its letters, and how many rows are left. */
export function firstRows({ lines }: Diff, rows = FIRST_LINES): { shown: DiffLine[]; hidden: number } {
  const seen = lines.map((line) => ({ ...line, text: visible(line.text) }))
  const all = seen.reduce((sum, line) => sum + heightOf(line.text), 0)
  const shown: DiffLine[] = []
  let room = rows
  for (const line of seen) {
    if (room <= 0) break
    // Of a line that is longer than what is left the beginning is shown.
    shown.push({ ...line, text: line.text.slice(0, room * ROW) })
    room -= heightOf(line.text)
  }
  return { shown, hidden: Math.max(0, all - rows) }
}
