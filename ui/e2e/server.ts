// Starts the real server on a free port with an empty data directory, and takes both away again.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
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
  /** Ends it like a crash, and starts it again at the same address with the same files. */
  kill(): Promise<void>
  restart(env?: Env): Promise<void>
  stop(): Promise<void>
}

type Env = Record<string, string>
export interface Start {
  /** A model that answers from it is the default; see docs/scripted-models.md. */
  script?: string
  /** What that model costs; nobody knows without it. */
  dollarsForAMillion?: number
  /** More of the configuration, as TOML. */
  settings?: string
  /** Agents that are there from the first start, by the name of their file. */
  agents?: Record<string, string>
  /** Takes the build that can be made to crash: it has a tool whose end only a person can tell. */
  canCrash?: boolean
  env?: Env
}

export async function startServer({ script, dollarsForAMillion, settings, agents, canCrash, env }: Start = {}): Promise<Server> {
  const which = canCrash ? 'ADJUTANT_FAULTS_BIN' : 'ADJUTANT_BIN'
  const binary = process.env[which]
  if (!binary) throw new Error(`${which} must name the server to test; \`make test\` sets it`)

  const data = await mkdtemp(join(tmpdir(), 'adjutant-e2e-'))
  const listen = `127.0.0.1:${await freePort()}`
  const config = script === undefined ? [] : ['--config', await configOf(data, script, dollarsForAMillion, settings ?? '')]
  for (const [name, text] of Object.entries(agents ?? {})) {
    await mkdir(join(data, 'agents'), { recursive: true })
    await writeFile(join(data, 'agents', name), text)
  }
  const start = (more: Env = {}): ChildProcess =>
    spawn(binary, ['serve', '--listen', listen, '--data', data, '--no-open', ...config], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...more } })
  let child = start(env)

  async function stop(): Promise<void> {
    await end(child, 'SIGTERM')
    await rm(data, { recursive: true, force: true })
  }
  async function restart(more?: Env): Promise<void> {
    child = start(more)
    await ready(child)
  }

  try {
    return { ...(await ready(child)), data, stop, restart, kill: () => end(child, 'SIGKILL') }
  } catch (error) {
    await stop()
    throw error
  }
}

async function configOf(folder: string, script: string, dollars: number | undefined, more: string): Promise<string> {
  const file = join(folder, 'e2e.toml')
  const prices = dollars === undefined ? '' : `input_usd = "${dollars}"\noutput_usd = "${dollars}"\n`
  await writeFile(join(folder, 'story.yaml'), script)
  await writeFile(file, 'default_model = "test/any"\n\n[providers.test]\nkind = "scripted"\nscript = "story.yaml"\n' + prices + more)
  return file
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'close')
  child.kill(signal)
  const impatient = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
  await gone
  clearTimeout(impatient)
}

function ready(child: ChildProcess): Promise<{ url: string; setUpLink: string }> {
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

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('the probe has no port')
  return address.port
}
