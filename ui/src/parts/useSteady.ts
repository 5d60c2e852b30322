// Work that many small things cause, done at most once in a while: the first time at once, for what comes meanwhile once more.
import { onScopeDispose } from 'vue'

/** One at a time, so that no answer overtakes another; between two beginnings at least so many milliseconds. */
export function useSteady(everyMs: number, work: () => Promise<void>): () => void {
  let isBusy = false
  let isWanted = false
  let timer: ReturnType<typeof setTimeout> | undefined
  async function begin(): Promise<void> {
    isBusy = true
    isWanted = false
    const rest = new Promise<void>((resolve) => (timer = setTimeout(resolve, everyMs)))
    await work().catch(() => undefined)
    await rest
    isBusy = false
    if (isWanted) void begin()
  }
  onScopeDispose(() => {
    clearTimeout(timer)
    isBusy = true
  })
  return () => {
    isWanted = true
    if (!isBusy) void begin()
  }
}
