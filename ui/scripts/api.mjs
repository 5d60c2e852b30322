// Writes the types of the HTTP API from the server's own description, beside the packages: made, never edited, not kept.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'

const source = new URL('../../docs/openapi.json', import.meta.url)
const target = new URL('../node_modules/.api/schema.d.ts', import.meta.url)

const description = JSON.parse(await readFile(source, 'utf8'))
await mkdir(new URL('.', target), { recursive: true })
await writeFile(target, astToString(await openapiTS(description, { defaultNonNullable: false, emptyObjectsUnknown: true })))
