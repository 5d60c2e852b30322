// Which rows of a long list can be seen. Pure.
const BESIDE = 12

export function windowOf(rows: number, rowPx: number, top: number, height: number): { from: number; to: number } {
  const first = Math.floor(top / rowPx) - BESIDE
  const last = Math.ceil((top + height) / rowPx) + BESIDE
  const to = Math.min(rows, Math.max(last, 0))
  return { from: Math.max(0, Math.min(first, to)), to }
}
