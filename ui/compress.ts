// Writes every file of the built page also in two packed forms beside it: the server sends whichever a browser takes.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'

/** Below this an answer fits into one packet either way. */
const LEAST_BYTES = 1024

export function compress(): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    writeBundle({ dir }) {
      if (dir === undefined) return
      for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue
        const file = join(entry.parentPath, entry.name)
        const plain = readFileSync(file)
        if (plain.length < LEAST_BYTES) continue
        writeFileSync(`${file}.br`, brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } }))
        writeFileSync(`${file}.gz`, gzipSync(plain, { level: 9 }))
      }
    },
  }
}
