// How the page is built: nothing inlined, so that a strict content policy holds.
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vitest/config'
import { compress } from './compress'
import { sizeLimit } from './size-limit'

// `npm run dev` serves the sources and passes calls on to a server that `make run` started.
const server = process.env['ADJUTANT_SERVER'] ?? 'http://127.0.0.1:7878'

export default defineConfig({
  base: '/',
  plugins: [vue(), sizeLimit(), compress()],
  build: {
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    host: '127.0.0.1',
    proxy: { '/healthz': server, '/api': server },
  },
  test: {
    include: ['src/**/*.test.ts'],
  },
})
