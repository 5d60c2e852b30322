// Short notes about what just happened. They go away by themselves and never hold the only copy of anything.
import { ref } from 'vue'
import { asProblem } from '../api/problem'

export interface Toast {
  id: number
  text: string
  tone: 'good' | 'bad'
  action?: Action | undefined
}
/** What can still be done about it, as taking it back. */
export interface Action {
  label: string
  run: () => void
}

const LASTS_MS = 5_000
let next = 1
export const toasts = ref<Toast[]>([])

export function toast(text: string, tone: Toast['tone'] = 'good', action?: Action): void {
  const id = next++
  toasts.value.push({ id, text, tone, action })
  // What somebody may want to do something about stays for longer.
  setTimeout(() => dismiss(id), tone === 'bad' || action ? LASTS_MS * 2 : LASTS_MS)
}
export function toastProblem(thrown: unknown): void {
  const { detail, hint } = asProblem(thrown).body
  toast(hint ? `${detail} ${hint}` : detail, 'bad')
}
export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}
