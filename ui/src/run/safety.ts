// What keeps runs safe beside the guard, and what of it does not hold. Pure.
export interface Standing {
  state: 'enforced' | 'degraded' | 'off'
  reason?: string | null
}
export type Safety = Record<string, Standing>

const NAMES: Record<string, string> = {
  encryption: 'Encryption of what is kept',
  durability: 'Safety from power cuts',
  audit_chain: 'The chain of the record',
  egress_filter: 'The filter of what leaves',
  price_known: 'Known prices',
  sandbox: 'A sandbox for code',
}
/** Its name in words; a key of the translation. */
export const safetyName = (word: string): string => NAMES[word] ?? word

/** What was not enforced in a run. Without a tool that runs code nothing would be in a sandbox, so none is missing. */
export function weakIn(safety: Safety): [word: string, standing: Standing][] {
  return Object.entries(safety).filter(([word, { state }]) => state !== 'enforced' && !(word === 'sandbox' && state === 'off'))
}
