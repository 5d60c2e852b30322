// Sets formulas. Loaded only when there is one.
import temml from 'temml'
import { purifyMaths } from './markdown'

/** A formula longer than this stays code. */
const LONGEST = 5_000

/** Clean markup of a formula, or none when it cannot be set. */
export function mathsOf(formula: string, isBlock: boolean): string | null {
  if (formula.length > LONGEST) return null
  try {
    const set = temml.renderToString(formula, { displayMode: isBlock, throwOnError: true, trust: false, maxExpand: 100, maxSize: [20, 20] })
    // Styles would be refused by the content policy already while the sanitiser reads them.
    return purifyMaths(set.replace(/ style="[^"]*"/g, ''))
  } catch {
    return null
  }
}
