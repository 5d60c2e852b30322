// Fails the build when what a first visit to the chat loads is more than a slow line should carry.
import { gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'

const MOST_KB = 150
const FIRST_VISIT = ['src/main.ts', 'src/chat/ChatPage.vue']

export function sizeLimit(): Plugin {
  return {
    name: 'size-limit',
    apply: 'build',
    generateBundle(_options, bundle) {
      const loaded = new Set<string>()
      const load = (file: string): void => {
        const piece = bundle[file]
        if (piece?.type !== 'chunk' || loaded.has(file)) return
        loaded.add(file)
        piece.imports.forEach(load)
      }
      for (const [file, piece] of Object.entries(bundle)) {
        if (piece.type === 'chunk' && FIRST_VISIT.some((name) => piece.isEntry || piece.facadeModuleId?.endsWith(name))) load(file)
      }
      let bytes = 0
      for (const file of loaded) {
        const piece = bundle[file]
        if (piece?.type === 'chunk') bytes += gzipSync(piece.code).length
      }
      const kb = Math.ceil(bytes / 1024)
      if (kb > MOST_KB) this.error(`the first visit loads ${kb} KB of compressed script, more than ${MOST_KB}`)
      this.info(`the first visit loads ${kb} KB of compressed script, of ${MOST_KB}`)
    },
  }
}
