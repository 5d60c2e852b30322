// Keeps the chosen one of a row in sight, where the row is longer than the screen is wide.
import { nextTick, onMounted, watch, type Ref } from 'vue'

export function useShownChoice(row: Readonly<Ref<HTMLElement | null>>, chosen: () => unknown): void {
  async function show(): Promise<void> {
    await nextTick()
    row.value?.querySelector('[aria-current="page"],[data-state="active"]')?.scrollIntoView({ inline: 'center', block: 'nearest' })
  }
  onMounted(show)
  watch(chosen, show)
}
