// The three states of the server, from every answer it could give.
import { describe, expect, it } from 'vitest'
import { parseHealth, readHealth } from './health'

describe('an answer of the server', () => {
  it('is well when the JSON says ok, and carries the version', () => {
    expect(parseHealth(200, '{"status":"ok","version":"0.1.0"}')).toEqual({ state: 'ok', version: '0.1.0' })
  })

  it('is well when the plain text says ok', () => {
    expect(parseHealth(200, 'ok\n')).toEqual({ state: 'ok', version: null })
  })

  it('shows no version that is missing, oddly typed or absurdly long', () => {
    for (const version of [undefined, 7, '', 'v'.repeat(65)]) {
      expect(parseHealth(200, JSON.stringify({ status: 'ok', version }))).toEqual({ state: 'ok', version: null })
    }
  })

  it('is an error when the status code is not 200, whatever the body says', () => {
    expect(parseHealth(503, 'ok')).toEqual({ state: 'error', reason: 'It answered with status 503.' })
  })

  it('is an error when the server says that it is not well', () => {
    expect(parseHealth(200, '{"status":"degraded"}').state).toBe('error')
  })

  it('is an error when it is not ours to read', () => {
    for (const body of ['', '<!doctype html>', '[]', 'null', '{']) {
      expect(parseHealth(200, body)).toEqual({ state: 'error', reason: 'Its answer could not be read.' })
    }
  })
})

describe('asking the server', () => {
  it('asks for a relative address, so that the page works under a sub-path', async () => {
    const asked: unknown[] = []
    await readHealth(async (address) => {
      asked.push(address)
      return new Response('ok')
    })
    expect(asked).toEqual(['healthz'])
  })

  it('turns a refused connection into a state instead of throwing', async () => {
    const refused = () => Promise.reject(new TypeError('fetch failed'))
    expect(await readHealth(refused)).toEqual({ state: 'error', reason: 'It cannot be reached.' })
  })

  it('says so when the answer comes too late', async () => {
    const late = () => Promise.reject(new DOMException('signal timed out', 'TimeoutError'))
    expect(await readHealth(late)).toEqual({ state: 'error', reason: 'It did not answer in time.' })
  })
})
