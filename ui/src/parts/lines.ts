// The difference of two texts, line by line, in the form of a unified diff with all lines. Pure.
const MOST_CELLS = 4_000_000

export function lineDiff(before: string, after: string): string {
  const a = linesOf(before)
  const b = linesOf(after)
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1
  const middle = changes(a.slice(start, a.length - end), b.slice(start, b.length - end))
  const same = (line: string): string => ` ${line}`
  const body = [...a.slice(0, start).map(same), ...middle, ...a.slice(a.length - end).map(same)]
  return [`@@ -1,${a.length} +1,${b.length} @@`, ...body].join('\n')
}

function linesOf(text: string): string[] {
  if (text === '') return []
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
}

/** The longest common lines, or all old and then all new where that would take too long. */
function changes(a: string[], b: string[]): string[] {
  const removed = a.map((line) => `-${line}`)
  const added = b.map((line) => `+${line}`)
  if (a.length * b.length > MOST_CELLS) return [...removed, ...added]
  const width = b.length + 1
  const common = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const below = common[(i + 1) * width + j] ?? 0
      const beside = common[i * width + j + 1] ?? 0
      common[i * width + j] = a[i] === b[j] ? (common[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(below, beside)
    }
  }
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push(` ${a[i]}`)
      ;[i, j] = [i + 1, j + 1]
    } else if ((common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0)) lines.push(removed[i++] ?? '')
    else lines.push(added[j++] ?? '')
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)]
}
