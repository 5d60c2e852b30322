// Whether the window is like something now, also after it was turned or made wider.
import { onScopeDispose, ref, type Ref } from 'vue'

export function useMedia(query: string): Readonly<Ref<boolean>> {
  const list = matchMedia(query)
  const isSo = ref(list.matches)
  const look = (): void => void (isSo.value = list.matches)
  list.addEventListener('change', look)
  onScopeDispose(() => list.removeEventListener('change', look))
  return isSo
}
