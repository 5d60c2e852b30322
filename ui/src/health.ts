// What the server says about itself, read once and turned into a state the page can show.

export type Health =
  | { state: 'loading' }
  | { state: 'ok'; version: string | null }
  | { state: 'error'; reason: string }

// Long enough for a busy machine, short enough that a person does not wonder.
const ANSWER_WITHIN_MS = 5_000
// A version is a few characters; anything longer is not our server.
const VERSION_MAX_CHARS = 64

/** Asks `/healthz` and always comes back with a state: a failure is an answer too. */
export async function readHealth(ask: typeof fetch = fetch): Promise<Health> {
  try {
    const response = await ask('healthz', {
      cache: 'no-store',
      headers: { accept: 'application/json, text/plain' },
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    return parseHealth(response.status, await response.text())
  } catch (error) {
    const late = error instanceof DOMException && error.name === 'TimeoutError'
    return { state: 'error', reason: late ? 'It did not answer in time.' : 'It cannot be reached.' }
  }
}

/** Understands both forms of the answer: `{"status":"ok","version":"…"}` and the plain word `ok`. */
export function parseHealth(status: number, body: string): Health {
  if (status !== 200) return { state: 'error', reason: `It answered with status ${status}.` }
  const text = body.trim()
  if (text.toLowerCase() === 'ok') return { state: 'ok', version: null }

  const answer = jsonObject(text)
  if (answer === null) return { state: 'error', reason: 'Its answer could not be read.' }
  if (answer['status'] !== 'ok') return { state: 'error', reason: 'It says that it is not well.' }
  return { state: 'ok', version: versionOf(answer['version']) }
}

function jsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function versionOf(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  return value.length <= VERSION_MAX_CHARS ? value : null
}
