// The tour: a minute with the demo model, in five stations. Where somebody is in it is kept in this browser.
import { ref } from 'vue'

export const STATIONS = ['begin', 'ask', 'changed', 'record', 'reach'] as const
export type Station = (typeof STATIONS)[number]
export interface Tour {
  /** `offered` until somebody takes it or leaves it, `over` after that. */
  at: Station | 'offered' | 'over'
  /** The run that it looks at. */
  run?: string
}

const NAME = 'adjutant.tour'
const isStation = (at: unknown): at is Station => STATIONS.includes(at as Station)

/** What was kept, or the offer where nothing sensible was. A station that looks at a run needs the run. */
export function readTour(kept: string | null): Tour {
  try {
    const { at, run } = JSON.parse(kept ?? '{}') as Partial<Tour>
    if (at === 'over' || at === 'begin') return { at }
    if (isStation(at) && typeof run === 'string') return { at, run }
  } catch {
    // Whatever it was, it is no place in the tour.
  }
  return { at: 'offered' }
}

export const tour = ref<Tour>(readTour(localStorage.getItem(NAME)))
export function goTo(next: Tour): void {
  tour.value = next
  localStorage.setItem(NAME, JSON.stringify(next))
}
export const isTouring = (): boolean => isStation(tour.value.at)
export const beginTour = (): void => goTo({ at: 'begin' })
export const endTour = (): void => goTo({ at: 'over' })
