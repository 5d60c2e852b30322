import { expect, it } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { MOVED } from './moved'

const router = createRouter({ history: createMemoryHistory(), routes: [...MOVED, { path: '/:rest(.*)*', component: {} }] })
async function leadsTo(address: string): Promise<string> {
  await router.push(address)
  return decodeURIComponent(router.currentRoute.value.fullPath)
}

it.each([
  ['/workspaces', '/files'],
  ['/w/welcome', '/files/welcome'],
  ['/w/welcome/projects/a b.md', '/files/welcome?path=/projects/a+b.md'],
  ['/agents/guide/scope', '/agents/guide?tab=scope'],
  ['/agents/guide/sees', '/agents/guide?tab=told'],
  ['/agents/guide/runs', '/runs?agent=guide'],
  ['/agents/guide/pending', '/inbox'],
  ['/settings/providers', '/settings/models'],
  ['/settings/users', '/settings/people'],
  ['/settings/rules', '/rules'],
])('leads from %s to %s', async (from, to) => {
  expect(await leadsTo(from)).toBe(to)
})
