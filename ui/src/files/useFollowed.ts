// Reads again what runs may have changed: soon after one of them moves, and once for many moves in a row.
import { onBeforeUnmount, watch } from 'vue'
import { useLive } from '../live/store'

const GATHER_MS = 700

export function useFollowed(read: () => Promise<void>): void {
  const live = useLive()
  let timer: ReturnType<typeof setTimeout> | undefined
  watch(
    () => live.runsBeat,
    () => {
      timer ??= setTimeout(() => {
        timer = undefined
        void read()
      }, GATHER_MS)
    },
  )
  onBeforeUnmount(() => clearTimeout(timer))
}
