// Keeps the view of one run fresh: reads a run that has ended, follows one that has not.
import { onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue'
import { get } from '../api/client'
import type { Page, WireEvent } from '../api/types'
import { useLive } from '../live/store'
import { emptyView, fold, hasEnded, type RunView } from './view'

const PAGE = 200
const DRAW_MS = 30

export interface FollowedRun {
  view: Ref<RunView>
  events: Ref<WireEvent[]>
  isLoaded: Ref<boolean>
  problem: Ref<unknown>
}

export function useRunView(id: Ref<string>): FollowedRun {
  const live = useLive()
  let state = emptyView(id.value)
  let log: WireEvent[] = []
  const view = shallowRef(state)
  const events = shallowRef(log)
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)
  let leave = new AbortController()
  let unfollow = (): void => {}
  let drawing: ReturnType<typeof setTimeout> | undefined

  /** Many events make one drawing, also in a tab that nobody looks at. */
  function draw(): void {
    drawing ??= setTimeout(drawNow, DRAW_MS)
  }
  function drawNow(): void {
    drawing = undefined
    view.value = { ...state, steps: [...state.steps] }
    events.value = [...log]
  }
  function take(event: WireEvent): void {
    if (event.id !== undefined && event.id <= state.lastSeq) return
    fold(state, event)
    if (event.id !== undefined) log.push(event)
    if (hasEnded(state.status)) unfollow()
    draw()
  }

  async function readAll(run: string, signal: AbortSignal): Promise<void> {
    for (let after = 0; ; ) {
      const page = await get<Page<WireEvent>>('/runs/{run}/events', { path: { run }, query: { after, limit: PAGE }, signal })
      // What is read in pages is drawn once, when it is all there.
      for (const event of page.data) {
        fold(state, event)
        log.push(event)
      }
      if (!page.has_more || page.next_cursor === null) return
      after = Number(page.next_cursor)
    }
  }

  function stop(): void {
    leave.abort()
    unfollow()
    clearTimeout(drawing)
    drawing = undefined
  }
  async function begin(run: string): Promise<void> {
    stop()
    leave = new AbortController()
    const { signal } = leave
    view.value = state = emptyView(run)
    events.value = log = []
    problem.value = null
    isLoaded.value = false
    try {
      await readAll(run, signal)
      drawNow()
      isLoaded.value = true
      const onRefused = (refusal: unknown): void => void (problem.value = refusal)
      if (!signal.aborted && !hasEnded(state.status)) unfollow = live.follow({ id: run, after: () => state.lastSeq, onEvent: take, onRefused })
    } catch (error) {
      if (!signal.aborted) problem.value = error
    }
  }

  watch(id, (run) => run && void begin(run), { immediate: true })
  onScopeDispose(stop)
  return { view, events, isLoaded, problem }
}
