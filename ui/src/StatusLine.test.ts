// What a person reads in each state, rendered without a browser.
import { createSSRApp } from 'vue'
import { renderToString } from 'vue/server-renderer'
import { expect, it } from 'vitest'
import type { Health } from './health'
import StatusLine from './StatusLine.vue'

const shown = (health: Health) => renderToString(createSSRApp(StatusLine, { health }))

it('says that it is still asking', async () => {
  expect(await shown({ state: 'loading' })).toContain('Asking the server')
})

it('says that the server runs, with its version and nothing to press', async () => {
  const html = await shown({ state: 'ok', version: '0.1.0' })
  expect(html).toContain('The server is running.')
  expect(html).toContain('Version 0.1.0')
  expect(html).not.toContain('<button')
})

it('says what is wrong, what to do, and offers to ask again', async () => {
  const html = await shown({ state: 'error', reason: 'It cannot be reached.' })
  expect(html).toContain('It cannot be reached.')
  expect(html).toContain('adjutant serve')
  expect(html).toContain('Ask again')
})

it('never lets the server write markup into the page', async () => {
  expect(await shown({ state: 'ok', version: '<img src=x>' })).not.toContain('<img')
})
