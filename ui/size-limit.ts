// Fails the build when what a first visit to the chat loads is more than a slow line should carry.
import { gzipSync } from 'node:zlib'
import type { Plugin, Rolldown } from 'vite'

const MOST_KB = 150
/** A new chat, and one that is open. What a browser fetches for the first is measured in e2e/first-run. */
const VISITS = [
  ['src/chat/ChatPage.vue', 'src/chat/NewChat.vue'],
  ['src/chat/ChatPage.vue', 'src/chat/ChatThread.vue'],
]

/** What the entry and these files import, all the way down. */
function bytesOf(bundle: Rolldown.OutputBundle, names: string[]): number {
  const loaded = new Map<string, number>()
  const load = (file: string): void => {
    const piece = bundle[file]
    if (piece?.type !== 'chunk' || loaded.has(file)) return
    loaded.set(file, gzipSync(piece.code).length)
    piece.imports.forEach(load)
  }
  for (const [file, piece] of Object.entries(bundle)) {
    if (piece.type === 'chunk' && (piece.isEntry || names.some((name) => piece.facadeModuleId?.endsWith(name)))) load(file)
  }
  return [...loaded.values()].reduce((sum, size) => sum + size, 0)
}

export function sizeLimit(): Plugin {
  return {
    name: 'size-limit',
    apply: 'build',
    generateBundle(_options, bundle) {
      const kb = Math.max(...VISITS.map((names) => Math.ceil(bytesOf(bundle, names) / 1024)))
      if (kb > MOST_KB) this.error(`the first visit loads ${kb} KB of compressed script, more than ${MOST_KB}`)
      this.info(`the first visit loads ${kb} KB of compressed script, of ${MOST_KB}`)
    },
  }
}
