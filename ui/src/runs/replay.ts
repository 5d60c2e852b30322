// What a replay says: the recorded run walked again, and where it came out differently.
export interface Replayed {
  events: number
  requests: number
  verdicts: number
  divergences: { seq: number; kind: string; recorded: string; found: string }[]
}
