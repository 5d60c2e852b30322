// Which questions that wait are about a file. Pure.
import type { Approval } from '../api/types'

const LETTER = /[\p{L}\p{N}_./-]/u
/** Whether a line names a path, and not one that only begins or ends like it. */
export function names(line: string, path: string): boolean {
  for (let at = line.indexOf(path); at >= 0; at = line.indexOf(path, at + 1)) {
    const [before, after] = [line[at - 1] ?? '', line.slice(at + path.length)]
    // A stop ends a sentence, unless more of a name follows.
    if (!LETTER.test(before) && !LETTER.test(after.replace(/^\.(?!\S)/, '').slice(0, 1))) return true
  }
  return false
}
export const about = (pending: Approval[], path: string): Approval[] => pending.filter((one) => one.kind === 'call' && names(one.summary ?? '', path))
