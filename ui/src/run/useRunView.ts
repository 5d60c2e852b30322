// Keeps the view of one run fresh: reads a run that has ended, follows one that has not.
import { onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue'
import { addressOf, get } from '../api/client'
import { follow } from '../api/stream'
import type { Page, WireEvent } from '../api/types'
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
  let state = emptyView(id.value)
  let log: WireEvent[] = []
  const view = shallowRef(state)
  const events = shallowRef(log)
  const isLoaded = ref(false)
  const problem = ref<unknown>(null)
  let leave = new AbortController()
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
    fold(state, event)
    if (event.id !== undefined) log.push(event)
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

  async function begin(run: string): Promise<void> {
    leave.abort()
    clearTimeout(drawing)
    drawing = undefined
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
      if (hasEnded(state.status)) return
      await follow({
        url: addressOf('/runs/{run}/events', { run }),
        after: state.lastSeq,
        signal,
        onEvent: take,
      })
    } catch (error) {
      if (!signal.aborted) problem.value = error
    }
  }

  watch(id, (run) => run && void begin(run), { immediate: true })
  onScopeDispose(() => {
    leave.abort()
    clearTimeout(drawing)
  })
  return { view, events, isLoaded, problem }
}
