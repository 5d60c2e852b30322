// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from 'vitest'

beforeEach(() => {
  localStorage.clear()
  vi.resetModules()
})

it('keeps a search under its name until it is forgotten', async () => {
  const first = await import('./views')
  first.keep('Mine', 'agent:guide')
  first.keep('Mine', 'agent:guide since:7d')
  vi.resetModules()
  const later = await import('./views')
  expect(later.kept.value).toEqual([['Mine', 'agent:guide since:7d']])
  later.forget('Mine')
  expect(later.kept.value).toEqual([])
})

it('begins anew where what was kept cannot be read', async () => {
  localStorage.setItem('adjutant.audit-views', '{broken')
  expect((await import('./views')).kept.value).toEqual([])
})
