// The words that open a menu while somebody writes: @agent, #file, /command. Pure.
export type Sign = '@' | '#' | '/'

export interface Word {
  sign: Sign
  /** What follows the sign, up to the caret. */
  typed: string
  /** Where the sign stands. */
  from: number
}

/** The word at the caret, if it opens a menu. A command stands at the beginning; the others stand alone. */
export function wordAt(text: string, caret: number): Word | null {
  const before = text.slice(0, caret)
  const command = /^\/([\w-]*)$/.exec(before)
  if (command) return { sign: '/', typed: command[1] ?? '', from: 0 }
  const word = /(?:^|\s)([@#])(\S*)$/.exec(before)
  if (!word) return null
  const typed = word[2] ?? ''
  return { sign: word[1] as Sign, typed, from: caret - typed.length - 1 }
}

/** The text with the word replaced, and where the caret goes. */
export function withWord(text: string, word: Word, by: string): { text: string; caret: number } {
  const end = word.from + 1 + word.typed.length
  return { text: text.slice(0, word.from) + by + text.slice(end), caret: word.from + by.length }
}

/** The folder that a half-written path is in, and what is written after it. */
export function folderOf(typed: string): { folder: string; rest: string } {
  const path = typed.startsWith('/') ? typed : `/${typed}`
  const cut = path.lastIndexOf('/')
  return { folder: path.slice(0, cut) || '/', rest: path.slice(cut + 1) }
}
