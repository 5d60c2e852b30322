// Short notes about what just happened. They go away by themselves and never hold the only copy of anything.
import { ref } from 'vue'
import { asProblem } from '../api/problem'

export interface Toast {
  id: number
  text: string
  tone: 'good' | 'bad'
}

const LASTS_MS = 5_000
let next = 1
export const toasts = ref<Toast[]>([])

export function toast(text: string, tone: Toast['tone'] = 'good'): void {
  const id = next++
  toasts.value.push({ id, text, tone })
  setTimeout(() => dismiss(id), tone === 'bad' ? LASTS_MS * 2 : LASTS_MS)
}
export function toastProblem(thrown: unknown): void {
  const { detail, hint } = asProblem(thrown).body
  toast(hint ? `${detail} ${hint}` : detail, 'bad')
}
export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}
