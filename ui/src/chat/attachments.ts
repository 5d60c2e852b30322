// Names of files that go with a message. They are kept in the notebook. Pure.
export const FOLDER = '/attachments'
const LONGEST_NAME = 100

/** A name that is one plain piece of a path and not hidden. */
export function plainName(name: string): string {
  const piece = name.split(/[/\\]/).at(-1) ?? ''
  const plain = piece.replace(/[\p{C}<>:"|?*]/gu, '_').replace(/^[.\s]+|\s+$/g, '').slice(-LONGEST_NAME)
  return plain || 'file'
}

/** The name, or the name with a number before its ending. */
export function numbered(name: string, n: number): string {
  if (n === 1) return name
  const dot = name.lastIndexOf('.')
  return dot > 0 ? `${name.slice(0, dot)}-${n}${name.slice(dot)}` : `${name}-${n}`
}
