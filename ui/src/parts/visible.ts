// Text that somebody decides about: nothing may hide in it, and what is long is shown in part only as long as that is said. Pure.

/** Controls but tab and line break, format characters (zero-width, directions, tags), halves of characters, separators of lines. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** The text with every character written out that cannot be seen, or that turns others around. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`)
}

/** How many rows of a text are shown before somebody asks for the rest. */
export const FIRST_ROWS = 40
/** About how many letters make a row. */
export const ROW = 100
/** How many rows a line takes: one that is very long is no single one. */
export const heightOf = (line: string): number => Math.max(1, Math.ceil(line.length / ROW))

/** The beginning of a text, and how many rows of it are left. A line that is very long counts as several. */
export function beginningOf(text: string, rows = FIRST_ROWS): { shown: string; hidden: number } {
  const lines = text.split('\n')
  const heights = lines.map(heightOf)
  const all = heights.reduce((sum, height) => sum + height, 0)
  if (all <= rows) return { shown: text, hidden: 0 }
  let room = rows
  const shown: string[] = []
  for (const [index, line] of lines.entries()) {
    const height = heights[index] ?? 1
    if (height > room) {
      if (room > 0) shown.push(line.slice(0, room * ROW))
      break
    }
    shown.push(line)
    room -= height
  }
  return { shown: shown.join('\n'), hidden: all - rows }
}
