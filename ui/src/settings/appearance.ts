// Light, dark, or as the system says; and whether single keys are shortcuts. Kept in this browser only.
import { ref, watch } from 'vue'

export type Scheme = 'system' | 'light' | 'dark'
const SCHEME = 'adjutant.scheme'
const KEYS = 'adjutant.keys'

const SCHEMES: readonly string[] = ['system', 'light', 'dark']
const kept = localStorage.getItem(SCHEME) ?? 'system'

export const scheme = ref<Scheme>(SCHEMES.includes(kept) ? (kept as Scheme) : 'system')
/** Single keys (j, k, a …) can be switched off, for people whose tools press keys for them. */
export const singleKeys = ref(localStorage.getItem(KEYS) !== 'off')

export function applyScheme(): void {
  if (scheme.value === 'system') delete document.documentElement.dataset['scheme']
  else document.documentElement.dataset['scheme'] = scheme.value
}

export function isDark(): boolean {
  return scheme.value === 'dark' || (scheme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
}

watch(scheme, (value) => {
  localStorage.setItem(SCHEME, value)
  applyScheme()
})
watch(singleKeys, (on) => localStorage.setItem(KEYS, on ? 'on' : 'off'))
