// Every text of the page goes through here. The English sentence is the key; a locale maps it to another one.
import { pseudo } from './pseudo'

export type Values = Record<string, string | number>

const locale = new URLSearchParams(globalThis.location?.search ?? '').get('locale') ?? 'en'
export const isPseudo = locale === 'pseudo'

/** The text for people, with `{name}` filled in. */
export function t(text: string, values: Values = {}): string {
  const filled = text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
  return isPseudo ? pseudo(filled) : filled
}

const plural = new Intl.PluralRules('en')

/** One form for one, another for many; `{n}` is the number. */
export function tn(n: number, one: string, many: string, values: Values = {}): string {
  const count = new Intl.NumberFormat('en').format(n)
  return t(plural.select(n) === 'one' ? one : many, { ...values, n: count })
}
