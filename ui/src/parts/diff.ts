// A unified diff as lines with their numbers. Pure.
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

/** How many lines of a difference are shown before somebody asks for the rest. */
export const FIRST_LINES = 60

/** Whether a difference is longer than what is shown of it at first. */
export function isLong(text: string | null | undefined): boolean {
  return text ? parseDiff(text).lines.length > FIRST_LINES : false
}
