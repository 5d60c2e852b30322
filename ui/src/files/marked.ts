// What was found, in pieces, with those that were looked for marked. Pure.

export interface Piece {
  text: string
  isMarked: boolean
}
/** How much of a word has to be the same: endings differ, because stems are searched. */
const STEM = 3
const wordsOf = (query: string): string[] => query.toLowerCase().split(/\s+/).filter(Boolean)
const letters = (word: string): string => word.toLowerCase().replace(/^[^\p{L}\p{N}]+/u, '').slice(0, STEM)

function pieces(text: string, pattern: RegExp, isFound: (inner: string) => boolean): Piece[] {
  const all: Piece[] = []
  let from = 0
  for (const found of text.matchAll(pattern)) {
    const inner = found[1] ?? ''
    if (!isFound(inner)) continue
    all.push({ text: text.slice(from, found.index), isMarked: false }, { text: inner, isMarked: true })
    from = found.index + found[0].length
  }
  all.push({ text: text.slice(from), isMarked: false })
  return all.filter((piece) => piece.text !== '')
}

/** The server puts what it found into brackets. Others, as of a link or of a list to tick off, belong to the text. */
export function markedSnippet(snippet: string, query: string): Piece[] {
  const stems = wordsOf(query).map(letters).filter(Boolean)
  return pieces(snippet, /\[([^[\]]+)\]/g, (inner) => stems.includes(letters(inner)) || stems.some((stem) => stem.length < STEM && letters(inner).startsWith(stem)))
}

/** A name, where it holds the words. */
export function markedName(name: string, query: string): Piece[] {
  const words = wordsOf(query)
  if (words.length === 0 || !words.every((word) => name.toLowerCase().includes(word))) return [{ text: name, isMarked: false }]
  const either = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  return pieces(name, new RegExp(`(${either})`, 'gi'), () => true)
}
