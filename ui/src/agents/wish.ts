// One thing that an agent might want, as it is put to the guard. Pure.
import type { JsonSchema, Tool } from '../api/types'
import { t } from '../i18n/t'
import { VERBS, type Verb } from './draft'

/** A verb with a path, or a tool with its arguments. */
export interface Wish {
  what: string
  path: string
  /** JSON, as somebody types it. */
  given: string
  /** Empty is the one that a run would get. */
  notebook: string
}
export const isVerb = (what: string): what is Verb => (VERBS as readonly string[]).includes(what)

const EMPTY: Record<string, unknown> = { string: '', integer: 0, number: 0, boolean: false, array: [], object: {} }
const exampleOf = (name: string, schema: JsonSchema): unknown => {
  if (name === 'url') return 'https://'
  return schema.enum?.[0] ?? EMPTY[schema.type ?? 'string'] ?? ''
}
/** What a tool needs at least, to be filled in. */
export function beginningOf(tool: Pick<Tool, 'schema'>): string {
  const { properties = {}, required = [] } = tool.schema
  return JSON.stringify(Object.fromEntries(required.map((name) => [name, exampleOf(name, properties[name] ?? {})])), null, 2)
}

export type Asked = { ok: true; body: Record<string, unknown> } | { ok: false; why: string }
export function bodyOf({ what, path, given, notebook }: Wish): Asked {
  const where = notebook ? { notebook_id: notebook } : {}
  if (isVerb(what)) return { ok: true, body: { action: what, path, ...where } }
  try {
    const read: unknown = JSON.parse(given.trim() || '{}')
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return { ok: true, body: { tool: what, arguments: read, ...where } }
  } catch {
    // Said below.
  }
  return { ok: false, why: t('The arguments are a JSON object, such as {example}.', { example: '{"key": "value"}' }) }
}
