// Starts the real server on a free port with an empty data directory, and takes both away again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const READY_WITHIN_MS = 60_000
const STOP_WITHIN_MS = 10_000

export interface Server {
  url: string
  /** The link by which somebody becomes the owner. */
  setUpLink: string
  /** Where its files are. */
  data: string
  stop(): Promise<void>
}

export async function startServer(): Promise<Server> {
  const binary = process.env['ADJUTANT_BIN']
  if (!binary) throw new Error('ADJUTANT_BIN must name the server to test; `make test` sets it')

  const data = await mkdtemp(join(tmpdir(), 'adjutant-e2e-'))
  const listen = `127.0.0.1:${await freePort()}`
  const child = spawn(binary, ['serve', '--listen', listen, '--data', data, '--no-open'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))

  async function stop(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const impatient = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
    await gone
    clearTimeout(impatient)
    await rm(data, { recursive: true, force: true })
  }

  try {
    return { ...(await ready(child)), data, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function ready(child: ReturnType<typeof spawn>): Promise<{ url: string; setUpLink: string }> {
  return new Promise((resolve, reject) => {
    let said = ''
    const fail = (why: string) => reject(new Error(`${why}; it said:\n${said}`))
    const timer = setTimeout(() => fail('the server was not ready in time'), READY_WITHIN_MS)
    const listen = (chunk: Buffer) => {
      said += chunk.toString()
      const ready = /adjutant ready on (http:\/\/\S+)/.exec(said)
      if (ready?.[1]) {
        clearTimeout(timer)
        resolve({ url: ready[1], setUpLink: /http:\S+\/setup#t=\S+/.exec(said)?.[0] ?? '' })
      }
    }
    child.stdout?.on('data', listen)
    child.stderr?.on('data', listen)
    child.once('error', (error) => fail(`the server did not start (${error.message})`))
    child.once('close', (code) => {
      clearTimeout(timer)
      fail(`the server ended with code ${code}`)
    })
  })
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('the probe has no port')
  return address.port
}
