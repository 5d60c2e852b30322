// Who wrote each line: walks the versions of a file from the oldest and hands lines that stay on. Pure.
import { parseDiff } from '../parts/diff'
import { lineDiff } from '../parts/lines'

export interface Version<W> {
  text: string
  /** Who made it so; none for what was there before the first change that is known. */
  by: W | null
}
export interface Line<W> {
  text: string
  by: W | null
}

const split = (text: string): string[] => (text === '' ? [] : (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n'))

/** The lines of the newest version, each with who wrote it. The oldest version comes first. */
export function blame<W>(versions: Version<W>[]): Line<W>[] {
  let lines: Line<W>[] = []
  let before = ''
  for (const [n, { text, by }] of versions.entries()) {
    if (n === 0) lines = split(text).map((line) => ({ text: line, by }))
    else lines = handOn(lines, parseDiff(lineDiff(before, text)).lines, by)
    before = text
  }
  return lines
}

function handOn<W>(old: Line<W>[], diff: ReturnType<typeof parseDiff>['lines'], by: W | null): Line<W>[] {
  const next: Line<W>[] = []
  let at = 0
  for (const line of diff) {
    if (line.kind === 'same') next.push(old[at++] ?? { text: line.text, by })
    else if (line.kind === 'removed') at += 1
    else if (line.kind === 'added') next.push({ text: line.text, by })
  }
  return next
}

export interface Block<W> {
  by: W | null
  from: number
  lines: string[]
}
/** Neighbours of one hand together. */
export function blocksOf<W>(lines: Line<W>[]): Block<W>[] {
  const blocks: Block<W>[] = []
  for (const [n, line] of lines.entries()) {
    const last = blocks.at(-1)
    if (last && last.by === line.by) last.lines.push(line.text)
    else blocks.push({ by: line.by, from: n + 1, lines: [line.text] })
  }
  return blocks
}
