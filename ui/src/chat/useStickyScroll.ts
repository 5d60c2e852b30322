// Keeps the end in sight while a text grows, unless somebody has scrolled up to read.
import { nextTick, type Ref } from 'vue'

const NEAR_PX = 120

export function useStickyScroll(scroller: Readonly<Ref<HTMLElement | null>>): { follow: () => void; toEnd: () => void } {
  const toEnd = (): void => {
    if (scroller.value) scroller.value.scrollTop = scroller.value.scrollHeight
  }
  function follow(): void {
    const box = scroller.value
    if (!box) return
    const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX
    if (isNear) void nextTick(toEnd)
  }
  return { follow, toEnd }
}
