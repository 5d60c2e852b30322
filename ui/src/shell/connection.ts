// Whether the server answers. Asks only while somebody looks, and more often while it does not.
import { ref } from 'vue'

const USUAL_MS = 15_000
const TROUBLED_MS = 2_000

export const isOnline = ref(true)

let timer: ReturnType<typeof setTimeout> | undefined

async function ask(): Promise<void> {
  clearTimeout(timer)
  if (!document.hidden) {
    isOnline.value = await fetch('/healthz', { cache: 'no-store' }).then(
      (answer) => answer.ok,
      () => false,
    )
  }
  timer = setTimeout(() => void ask(), isOnline.value ? USUAL_MS : TROUBLED_MS)
}

/** Begins to ask; a tab that is looked at again asks at once. */
export function watchConnection(): void {
  void ask()
  document.addEventListener('visibilitychange', () => !document.hidden && void ask())
  window.addEventListener('online', () => void ask())
  window.addEventListener('offline', () => (isOnline.value = false))
}

export const askNow = (): Promise<void> => ask()
