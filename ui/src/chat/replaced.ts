// Runs that an edited message has replaced. They are kept, folded away under the run that took their place.
import type { Run } from '../api/types'

/** Those that this run has replaced, and those that they had replaced, newest first. */
export function replacedBy(id: string, runs: readonly Run[]): Run[] {
  return runs.filter((run) => run.superseded_by === id).flatMap((run) => [run, ...replacedBy(run.id, runs)])
}
