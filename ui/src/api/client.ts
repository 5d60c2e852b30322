// Calls to the server. Addresses and request bodies are checked against its own description (`npm run api` makes its types).
import type { paths } from '#api'
import { asProblem, problemOf } from './problem'

const ROOT = '/api/v1'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Short<P> = P extends `${typeof ROOT}${infer Rest}` ? Rest : never
/** Addresses that know a method, without the root. */
export type Address<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: unknown } ? ([paths[P][M]] extends [undefined] ? never : Short<P>) : never
}[keyof paths]

type Operation<M extends Method, A extends string> = `${typeof ROOT}${A}` extends keyof paths
  ? paths[`${typeof ROOT}${A}`] extends { [K in M]: infer O }
    ? O
    : never
  : never
type JsonOf<B> = B extends { content: { 'application/json': infer J } } ? J : never
export type BodyOf<M extends Method, A extends string> =
  Operation<M, A> extends { requestBody?: infer B } ? JsonOf<NonNullable<B>> : never

export type Query = Record<string, string | number | boolean | undefined>

export interface Ask<Body> {
  /** What stands for `{name}` in the address. */
  path?: Record<string, string>
  query?: Query
  body?: Body
  /** A text or a file that is sent as it is, in place of JSON. */
  text?: string | Blob
  /** The version that is changed. */
  match?: string
  /** Only where nothing is yet. */
  isNew?: boolean
  /** The version that is here already. */
  known?: string
  signal?: AbortSignal
}

let chosen: () => string | undefined = () => undefined
/** Where somebody who is in several workspaces is now. */
export function onWorkspace(find: () => string | undefined): void {
  chosen = find
}
/** Asked of all workspaces at once: who somebody is, what waits for them, and the names of agents there. */
const EVERYWHERE = new Set(['get /me', 'get /agents', 'get /approvals', 'post /approvals/batch'])
const isId = (word: string): boolean => /^[a-z]+_[0-9a-z]{26}$/.test(word)

/** Which workspace a request is about. An id says by itself where its thing is; a short name does not. */
export function workspaceOf(method: Method, address: string, path: Record<string, string> = {}, query: Query = {}): Record<string, string> {
  const here = chosen()
  // The runs of a chat are where the chat is.
  const isSaid = EVERYWHERE.has(`${method} ${address}`) || [...Object.values(path), String(query['chat'])].some(isId)
  return here && !isSaid ? { 'adjutant-workspace': here } : {}
}

type Listener = () => void
let signedOut: Listener = () => {}
/** Told when the server says that nobody is signed in. */
export function onSignedOut(listener: Listener): void {
  signedOut = listener
}

export function addressOf(address: string, path: Record<string, string> = {}, query: Query = {}): string {
  // A path of a file keeps its slashes; everything else is one piece.
  const encoded = (name: string): string => (path[name] ?? '').split(name === 'path' ? '/' : /$^/).map(encodeURIComponent).join('/')
  const filled = address.replace(/\{(\w+)\}/g, (_, name: string) => encoded(name))
  const said = Object.entries(query).filter((pair): pair is [string, string | number | boolean] => pair[1] !== undefined)
  const search = new URLSearchParams(said.map(([name, value]) => [name, String(value)])).toString()
  return ROOT + filled + (search && `?${search}`)
}

/** The keys of what was sent and got no answer. Sent again as it was, it has the same key, and does its work once. */
const unanswered = new Map<string, string>()
const MOST_UNANSWERED = 100

function intentOf(url: string, { body, text }: Ask<unknown>): string {
  // What is no text cannot be compared, so it is always new.
  const sent = text instanceof Blob ? crypto.randomUUID() : (text ?? JSON.stringify(body) ?? '')
  return `${url}\n${sent}`
}
function keyFor(intent: string): string {
  const key = unanswered.get(intent) ?? crypto.randomUUID()
  unanswered.delete(intent)
  return key
}
function keep(intent: string, key: string): void {
  const [oldest] = unanswered.keys()
  if (oldest !== undefined && unanswered.size >= MOST_UNANSWERED) unanswered.delete(oldest)
  unanswered.set(intent, key)
}

export async function send(method: Method, url: string, ask: Ask<unknown>, headers: Record<string, string> = {}): Promise<Response> {
  const all: Record<string, string> = { accept: 'application/json', ...headers }
  if (ask.body !== undefined) all['content-type'] = 'application/json'
  if (ask.text !== undefined) all['content-type'] = 'application/octet-stream'
  if (ask.match) all['if-match'] = ask.match
  if (ask.isNew) all['if-none-match'] = '*'
  if (ask.known) all['if-none-match'] = ask.known
  const intent = method === 'post' ? intentOf(url, ask) : ''
  const key = intent && keyFor(intent)
  if (key) all['idempotency-key'] = key
  const options: RequestInit = { method: method.toUpperCase(), headers: all, credentials: 'same-origin' }
  if (ask.body !== undefined) options.body = JSON.stringify(ask.body)
  if (ask.text !== undefined) options.body = ask.text
  if (ask.signal) options.signal = ask.signal
  let response: Response
  try {
    response = await fetch(url, options)
  } catch (error) {
    // Whoever called it off does not wait for it any more.
    if (error instanceof DOMException) throw error
    if (key) keep(intent, key)
    throw asProblem(error)
  }
  if (response.ok || (response.status === 304 && ask.known)) return response
  const problem = await problemOf(response)
  // The server failed, or is still at work on the first one: what comes of it is not known yet.
  if (key && (response.status >= 500 || problem.code === 'in_flight')) keep(intent, key)
  if (problem.code === 'unauthenticated' && !url.endsWith('/session')) signedOut()
  throw problem
}

async function call<T>(method: Method, address: string, ask: Ask<unknown> = {}): Promise<T> {
  const response = await send(method, addressOf(address, ask.path, ask.query), ask, workspaceOf(method, address, ask.path, ask.query))
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** Null where the version that is known is still the one there is. */
export async function getChanged<T>(address: Address<'get'>, ask: Ask<never> & { known: string }): Promise<T | null> {
  const response = await send('get', addressOf(address, ask.path, ask.query), ask, workspaceOf('get', address, ask.path, ask.query))
  return response.status === 304 ? null : ((await response.json()) as T)
}
export const get = <T>(address: Address<'get'>, ask?: Ask<never>): Promise<T> => call<T>('get', address, ask)
export const post = <T, A extends Address<'post'> = Address<'post'>>(address: A, ask?: Ask<BodyOf<'post', A>>): Promise<T> =>
  call<T>('post', address, ask)
export const put = <T, A extends Address<'put'> = Address<'put'>>(address: A, ask?: Ask<BodyOf<'put', A>>): Promise<T> =>
  call<T>('put', address, ask)
export const patch = <T, A extends Address<'patch'> = Address<'patch'>>(address: A, ask?: Ask<BodyOf<'patch', A>>): Promise<T> =>
  call<T>('patch', address, ask)
/** A text of the server as it is. */
export const getText = async (address: Address<'get'>, ask: Ask<never>): Promise<string> =>
  (await send('get', addressOf(address, ask.path, ask.query), ask, { accept: '*/*', ...workspaceOf('get', address, ask.path) })).text()
/** Bytes of the server as they are. */
export const getBlob = async (address: Address<'get'>, ask: Ask<never>): Promise<Blob> =>
  (await send('get', addressOf(address, ask.path, ask.query), ask, { accept: '*/*', ...workspaceOf('get', address, ask.path) })).blob()
/** Takes away, and says what is left. */
export const removed = <T>(address: Address<'delete'>, ask?: Ask<never>): Promise<T> => call<T>('delete', address, ask)
export const remove = (address: Address<'delete'>, ask?: Ask<never>): Promise<void> => call<void>('delete', address, ask)
