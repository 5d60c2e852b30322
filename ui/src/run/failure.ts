// What helps after a run has failed, by the stable word for why. Pure.
import { t } from '../i18n/t'

export interface NextStep {
  words: string
  /** Where that is done, and what the link says. */
  to?: string
  label?: string
}
const keys = (words: string): NextStep => ({ words, to: '/settings/models', label: t('See the keys') })
const models = (words: string): NextStep => ({ words, to: '/settings/models', label: t('See the models') })

/** None where there is nothing better to say than what happened. */
export function failureStep(code: string): NextStep | null {
  switch (code) {
    case 'unauthorized':
      return keys(t('The provider does not take the key: put a good one in its place.'))
    case 'no_credit':
      return keys(t('The account at the provider is empty: fill it up, or take another key.'))
    case 'unknown_model':
      return models(t('Choose a model that the provider has.'))
    case 'context_overflow':
      return { words: t('Begin a new chat, or take a model that reads more.') }
    case 'rate_limited':
    case 'overloaded':
    case 'network':
    case 'provider_timeout':
      return models(t('Another model may answer, or this one a little later.'))
    default:
      return null
  }
}
