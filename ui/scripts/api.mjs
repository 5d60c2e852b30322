// Writes the types of the HTTP API from the server's own description, beside the packages: made, never edited, not kept.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'

const source = new URL('../../docs/openapi.json', import.meta.url)
const target = new URL('../node_modules/.api/schema.d.ts', import.meta.url)

const description = JSON.parse(await readFile(source, 'utf8'))
// Operations are found by their address. Their names are those of handlers, which several addresses share.
for (const operations of Object.values(description.paths)) {
  for (const operation of Object.values(operations)) delete operation.operationId
}
await mkdir(new URL('.', target), { recursive: true })
await writeFile(target, astToString(await openapiTS(description, { defaultNonNullable: false, emptyObjectsUnknown: true })))
