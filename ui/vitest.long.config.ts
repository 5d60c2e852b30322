// What takes too long for every change: every screen by Lighthouse, and much more data than anybody should have.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['long/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 120_000,
  },
})
