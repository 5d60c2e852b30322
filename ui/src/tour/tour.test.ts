import { beforeAll, expect, it, vi } from 'vitest'
import type * as Module from './tour'

let tour: typeof Module
const kept = new Map<string, string>()
beforeAll(async () => {
  vi.stubGlobal('localStorage', { getItem: (name: string) => kept.get(name) ?? null, setItem: (name: string, value: string) => kept.set(name, value) })
  tour = await import('./tour')
})

it('is offered to whoever has not had it, also when what was kept is no place in it', () => {
  const { readTour } = tour
  expect([readTour(null), readTour('{'), readTour('{"at":"elsewhere"}'), readTour('{"at":"record"}')].map((one) => one.at)).toEqual(['offered', 'offered', 'offered', 'offered'])
})

it('goes on where somebody was, and stays over once it is', () => {
  const { beginTour, endTour, goTo, isTouring, readTour } = tour
  const again = (): Module.Tour => readTour([...kept.values()][0] ?? null)
  beginTour()
  expect([isTouring(), again()]).toEqual([true, { at: 'begin' }])
  goTo({ at: 'ask', run: 'run_1' })
  expect(again()).toEqual({ at: 'ask', run: 'run_1' })
  endTour()
  expect([isTouring(), again()]).toEqual([false, { at: 'over' }])
})
