// The models that can be used here, read once and again when the page says so.
import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import { get } from '../api/client'

export interface Model {
  /** `provider/model`: what an agent writes. */
  id: string
  kind: string
  abilities: string[]
  context_window: number | null
  max_output: number | null
  prices: { input_usd: number | null; output_usd: number | null; cached_usd?: number | null }
  grade: number
  first_piece_ms: number | null
  resting_seconds: number | null
  /** Whether its provider does not serve it any more, and since when. */
  retired?: boolean
  retired_on?: string | null
}
interface ModelList {
  default_model: string
  data: Model[]
}

/** Words that choose a model for each run. */
export const STRATEGIES: [string, string][] = [
  ['balanced', 'Balanced'],
  ['cheapest', 'Cheapest'],
  ['fastest', 'Fastest'],
  ['smartest', 'Smartest'],
]
export const providerOf = (id: string): string => id.split('/')[0] ?? id

/** The models under their providers, both by name. */
export function byProvider(models: Model[]): { provider: string; kind: string; models: Model[] }[] {
  const groups = new Map<string, Model[]>()
  for (const model of models) groups.set(providerOf(model.id), [...(groups.get(providerOf(model.id)) ?? []), model])
  const named = [...groups].sort(([a], [b]) => a.localeCompare(b))
  return named.map(([provider, all]) => ({ provider, kind: all[0]?.kind ?? '', models: all.sort((a, b) => a.id.localeCompare(b.id)) }))
}

export const useModels = defineStore('models', () => {
  const all = ref<Model[]>([])
  const usual = ref('')
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)
  const groups = computed(() => byProvider(all.value))
  /** Those to choose from: a retired model can be written, and is not offered. */
  const offered = computed(() => all.value.filter((model) => !model.retired))

  async function load(): Promise<void> {
    try {
      const list = await get<ModelList>('/models')
      all.value = list.data
      usual.value = list.default_model
      problem.value = null
      isLoaded.value = true
    } catch (error) {
      problem.value = error
    }
  }
  const ready = (): Promise<void> => (isLoaded.value ? Promise.resolve() : load())
  return { all, offered, usual, isLoaded, problem, groups, load, ready }
})
