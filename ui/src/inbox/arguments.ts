// Between a tool's arguments and the texts of a form. Pure.
import type { JsonSchema } from '../api/types'
import { t } from '../i18n/t'

export interface Field {
  name: string
  kind: 'string' | 'number' | 'boolean' | 'json'
  /** The only values it may have; none where it may have any. */
  choices: string[]
  description: string
  isRequired: boolean
  isLong: boolean
}

const LONG = 60

/** The fields of a schema: what is given or required first, and of these the short ones. */
export function fieldsOf(schema: JsonSchema, given: Record<string, unknown>): Field[] {
  const required = new Set(schema.required ?? [])
  const names = Object.keys(schema.properties ?? {})
  const weight = ({ name, isLong }: Field): number => (name in given || required.has(name) ? 0 : 4) + (isLong ? 2 : 0) + (required.has(name) ? 0 : 1)
  const fields = names.map((name) => fieldOf(name, schema.properties?.[name] ?? {}, required.has(name), given[name]))
  return fields.map((field, place) => ({ field, place })).sort((a, b) => weight(a.field) - weight(b.field) || a.place - b.place).map(({ field }) => field)
}

function fieldOf(name: string, schema: JsonSchema, isRequired: boolean, given: unknown): Field {
  const kind = kindOf(schema.type)
  const text = typeof given === 'string' ? given : ''
  const isLong = kind === 'json' || (kind === 'string' && (name === 'content' || text.length > LONG || text.includes('\n')))
  // A value that is no text keeps its field, so that it is read as what it is.
  const choices = kind === 'string' ? (schema.enum ?? []).filter((value) => typeof value === 'string') : []
  return { name, kind, choices, description: schema.description ?? '', isRequired, isLong: isLong && choices.length === 0 }
}

/** How many fields say something else than before. */
export function countEdits(fields: Field[], texts: Record<string, string>, given: Record<string, unknown>): number {
  const before = toTexts(fields, given)
  return fields.filter(({ name }) => (texts[name] ?? '') !== before[name]).length
}

function kindOf(type: string | undefined): Field['kind'] {
  if (type === 'string' || type === undefined) return 'string'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'boolean' ? 'boolean' : 'json'
}

export function toTexts(fields: Field[], given: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(fields.map(({ name, kind }) => [name, textOf(kind, given[name])]))
}

function textOf(kind: Field['kind'], value: unknown): string {
  if (value === undefined || value === null) return ''
  return kind === 'json' ? JSON.stringify(value, null, 2) : String(value)
}

export type Read = { ok: true; value: Record<string, unknown> } | { ok: false; errors: Record<string, string> }

/** What the form says. A field that is empty and optional is left out. */
export function toArguments(fields: Field[], texts: Record<string, string>): Read {
  const value: Record<string, unknown> = {}
  const errors: Record<string, string> = {}
  for (const field of fields) {
    const text = texts[field.name] ?? ''
    if (text === '' && !field.isRequired) continue
    try {
      value[field.name] = valueOf(field, text)
    } catch (error) {
      errors[field.name] = error instanceof Error ? error.message : String(error)
    }
  }
  return Object.keys(errors).length === 0 ? { ok: true, value } : { ok: false, errors }
}

function valueOf(field: Field, text: string): unknown {
  if (field.kind === 'number') {
    const number = Number(text)
    if (text.trim() === '' || !Number.isFinite(number)) throw new Error(t('This is no number.'))
    return number
  }
  if (field.kind === 'boolean') return text === 'true'
  if (field.kind === 'string') return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new Error(t('This is no JSON.'))
  }
}
