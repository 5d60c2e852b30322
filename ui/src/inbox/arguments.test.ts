import { expect, it } from 'vitest'
import type { JsonSchema } from '../api/types'
import { countEdits, fieldsOf, toArguments, toTexts } from './arguments'

const schema: JsonSchema = {
  properties: { limit: { type: 'integer' }, path: { type: 'string' }, content: { type: 'string' }, deep: { type: 'boolean' }, properties: { type: 'object' } },
  required: ['path'],
}
const given = { path: '/a.md', content: 'x', limit: 3 }
const fields = fieldsOf(schema, given)

it('asks for short fields that are given first and for what is not given last', () => {
  expect(fields.map((field) => field.name)).toEqual(['path', 'limit', 'content', 'deep', 'properties'])
})

it('gives back what it was given when nobody changes anything', () => {
  expect(toArguments(fields, toTexts(fields, given))).toEqual({ ok: true, value: given })
})

it('says which field cannot be read', () => {
  const read = toArguments(fields, { ...toTexts(fields, given), limit: 'many', properties: '{' })
  expect(read.ok ? [] : Object.keys(read.errors)).toEqual(['limit', 'properties'])
})

it('offers the values that a field may have, and counts what was edited', () => {
  const [mode] = fieldsOf({ properties: { mode: { type: 'string', enum: ['append', 'replace'] } } }, {})
  expect(mode?.choices).toEqual(['append', 'replace'])
  expect(countEdits(fields, toTexts(fields, given), given)).toBe(0)
  expect(countEdits(fields, { ...toTexts(fields, given), limit: '4', content: 'y' }, given)).toBe(2)
})
