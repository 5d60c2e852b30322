// Keys that work on every screen: the palette, the help, and `g` with a letter to go somewhere.
import { onBeforeUnmount, onMounted, ref } from 'vue'
import { useRouter } from 'vue-router'
import { singleKeys } from '../settings/appearance'
import { PLACES } from './places'

export const isPaletteOpen = ref(false)
export const isHelpOpen = ref(false)
export const paletteKey = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘K' : 'Ctrl K'

const GO_WITHIN_MS = 1_200

/** Whether a key goes into something that is being filled in. */
export function isTyping(event: KeyboardEvent): boolean {
  // An editor with its own root hides what is inside; the path of the event does not.
  const target = (event.composedPath()[0] ?? event.target) as HTMLElement | null
  return !!target && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

/** Whether a press is a shortcut of one key: nothing held, nothing filled in, nothing open on top, and not switched off. */
export function isSingleKey(event: KeyboardEvent): boolean {
  // A key that is held down would answer what comes next before anybody has read it.
  if (event.repeat) return false
  if (!singleKeys.value || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return false
  return !document.querySelector('[role="dialog"],[role="menu"]')
}

/** Listens while the component is there. */
export function useKeys(onKey: (event: KeyboardEvent) => void): void {
  onMounted(() => document.addEventListener('keydown', onKey))
  onBeforeUnmount(() => document.removeEventListener('keydown', onKey))
}

export function useGlobalKeys(): void {
  const router = useRouter()
  // Before everything: a page that was only just opened has had no `g` yet.
  let goAt = -Infinity
  useKeys((event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      // Whoever has to sign in first goes nowhere.
      if (document.querySelector('dialog[open]')) return
      isPaletteOpen.value = !isPaletteOpen.value
      return
    }
    if (!isSingleKey(event)) return
    if (event.key === '?') {
      isHelpOpen.value = true
    } else if (event.timeStamp - goAt < GO_WITHIN_MS) {
      goAt = -Infinity
      const place = PLACES.find((place) => place.key === event.key)
      if (!place) return
      // The letter after `g` is not also a shortcut of the screen.
      event.preventDefault()
      event.stopImmediatePropagation()
      void router.push(place.to)
    } else if (event.key === 'g') {
      goAt = event.timeStamp
    }
  })
}
