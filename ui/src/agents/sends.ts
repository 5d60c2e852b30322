// Where what an agent reads is sent to, so that a model can answer. Pure.
import { t } from '../i18n/t'
import { providerOf } from '../models/store'
import type { Provider } from '../models/providers'
import { fieldsOf, type Draft } from './draft'

/** To hosts, or providers where the host is not told; to one that is chosen for each run; or nowhere. */
export type Sends = { to: 'places'; places: string[] } | { to: 'chosen' } | { to: 'nowhere' }
/** Words that name no model: one is chosen when a run starts. */
const CHOOSING = ['auto', 'cheapest', 'fastest', 'smartest', 'balanced', 'fallback']
/** Kinds that answer within the server. */
const WITHIN = ['demo', 'scripted']

/** The model of an agent that leaves it to the default: the first of these that says one. */
export const usualOf = (...said: (string | undefined)[]): string => said.find((model) => model && model !== 'default') ?? 'default'

/** All models that a run of it may ask: the first one, those that stand in, and the one for when money runs short. */
export function modelsOf(draft: Draft, usual: string): string[] {
  const { model, fallback_models: others, budget } = fieldsOf(draft) as { model: string | string[]; fallback_models?: string[] | null; budget: { cheaper_model: string | null } }
  const named = [model, others ?? [], budget.cheaper_model ?? []].flat()
  return [...new Set(named.map((name) => (name === 'default' ? usual : name)))]
}

/** `known`: the models of the catalog, for a name that says no provider. */
export function sendsOf(models: string[], providers: Provider[], known: string[]): Sends {
  if (models.some((model) => CHOOSING.includes(model))) return { to: 'chosen' }
  const places = models.flatMap((model): string[] => {
    const whole = model.includes('/') ? model : known.find((id) => id.slice(providerOf(id).length + 1) === model)
    const provider = whole && providers.find(({ name }) => name === providerOf(whole))
    if (!provider) return [t('the provider of {model}', { model })]
    return WITHIN.includes(provider.kind) ? [] : [provider.host || provider.title]
  })
  return places.length > 0 ? { to: 'places', places: [...new Set(places)] } : { to: 'nowhere' }
}

/** The same as a sentence, with the hosts that its tools reach. */
export function sendsWords(sends: Sends, hosts: string): string {
  if (sends.to === 'nowhere') return hosts ? t('Sends to: {hosts}', { hosts }) : t('Sends nothing to the network.')
  const place = sends.to === 'chosen' ? t('the provider that is chosen for each run') : sends.places.join(', ')
  return hosts ? t('Sends what it reads to {place}; its tools send to: {hosts}', { place, hosts }) : t('Sends what it reads to {place}, and to no other host.', { place })
}
