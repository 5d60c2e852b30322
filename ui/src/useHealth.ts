// Keeps the health of the server up to date while the page is visible; asks one question at a time.
import { onBeforeUnmount, onMounted, readonly, ref, type DeepReadonly, type Ref } from 'vue'
import { readHealth, type Health } from './health'

// Calm when all is well, quicker while somebody waits for the server to come back.
const ASK_AGAIN_MS = 15_000
const ASK_AGAIN_AFTER_ERROR_MS = 3_000

export function useHealth(): { health: DeepReadonly<Ref<Health>>; askNow: () => Promise<void> } {
  const health = ref<Health>({ state: 'loading' })
  let timer: number | undefined
  let asking = false
  let mounted = false

  async function askNow(): Promise<void> {
    if (asking) return
    asking = true
    window.clearTimeout(timer)
    health.value = await readHealth()
    asking = false
    if (mounted && !document.hidden) {
      const pause = health.value.state === 'ok' ? ASK_AGAIN_MS : ASK_AGAIN_AFTER_ERROR_MS
      timer = window.setTimeout(askNow, pause)
    }
  }

  function onVisibility(): void {
    if (document.hidden) window.clearTimeout(timer)
    else void askNow()
  }

  onMounted(() => {
    mounted = true
    document.addEventListener('visibilitychange', onVisibility)
    void askNow()
  })
  onBeforeUnmount(() => {
    mounted = false
    document.removeEventListener('visibilitychange', onVisibility)
    window.clearTimeout(timer)
  })

  return { health: readonly(health), askNow }
}
