// The files of a notebook, as the server gives them.
import { addressOf, get, getBlob, getChanged, post, put, remove } from '../api/client'
import type { Page } from '../api/types'
import { textIn } from './text'

export interface Notebook {
  id: string
  workspace_id: string
  slug: string
  kind: 'managed' | 'linked'
}
export interface FileEntry {
  path: string
  name: string
  kind: 'file' | 'folder'
  size: number
  modified_at: string
  hash?: string
}
export interface FileDocument extends FileEntry {
  text: string | null
  is_untrusted: boolean
}
export interface FileChange {
  at: string
  action: 'created' | 'changed' | 'deleted'
  by: { kind: 'run' | 'person' | 'undo'; name: string | null; run_id: string | null; agent_id: string | null; tool: string | null; approved_by?: string | null }
  before: string | null
  after: string | null
}
export interface Found {
  path: string
  snippet: string
}

const EACH = 200
/** The server's addresses have no slash at the beginning of a path. */
const bare = (path: string): string => path.replace(/^\/+/, '')

export function listFolder(notebook: string, path: string, cursor?: string): Promise<Page<FileEntry>> {
  const query = { limit: EACH, ...(cursor && { cursor }) }
  if (bare(path) === '') return get('/notebooks/{notebook}/files', { path: { notebook }, query })
  return get('/notebooks/{notebook}/files/{path}', { path: { notebook, path: bare(path) }, query })
}
export const readFile = (notebook: string, path: string): Promise<FileDocument> =>
  get('/notebooks/{notebook}/files/{path}', { path: { notebook, path: bare(path) } })
/** The same where it is another than the state with this hash; null where it is not. */
export const readChanged = (notebook: string, path: string, hash: string): Promise<FileDocument | null> =>
  getChanged('/notebooks/{notebook}/files/{path}', { path: { notebook, path: bare(path) }, known: `"${hash}"` })
/** Saves over the state with this hash, or where nothing is. */
export const saveFile = (notebook: string, path: string, text: string | Blob, over: string | null): Promise<FileEntry> =>
  put('/notebooks/{notebook}/files/{path}', { path: { notebook, path: bare(path) }, text, ...(over === null ? { isNew: true } : { match: `"${over}"` }) })
export const deleteFile = (notebook: string, path: string, hash: string): Promise<void> =>
  remove('/notebooks/{notebook}/files/{path}', { path: { notebook, path: bare(path) }, match: `"${hash}"` })
/** Its bytes, for the browser to show or to keep. */
export const addressOfFile = (notebook: string, path: string): string => addressOf('/notebooks/{notebook}/files/{path}', { notebook, path: bare(path) })
/** The kinds of pictures that the server gives as such; it gives everything else as something to keep. */
export const isPicture = (path: string): boolean => /\.(png|jpe?g|gif|webp)$/i.test(path)
/** To where nothing is. */
export const moveFile = (notebook: string, from: string, to: string, hash: string): Promise<FileEntry> =>
  post<FileEntry, '/notebooks/{notebook}/move'>('/notebooks/{notebook}/move', { path: { notebook }, match: `"${hash}"`, body: { from, to } })
export const makeFolder = (notebook: string, path: string): Promise<unknown> =>
  post<unknown, '/notebooks/{notebook}/folders'>('/notebooks/{notebook}/folders', { path: { notebook }, body: { path } })
/** A path as people write it, from the top of the notebook. */
export const fromTop = (said: string): string => (said.startsWith('/') ? said : `/${said}`)
export const historyOf = (notebook: string, path: string, cursor?: string): Promise<Page<FileChange>> =>
  get('/notebooks/{notebook}/history/{path}', { path: { notebook, path: bare(path) }, ...(cursor && { query: { cursor } }) })
const bytesOf = (notebook: string, path: string, content: string): Promise<Blob> =>
  getBlob('/notebooks/{notebook}/history/{path}', { path: { notebook, path: bare(path) }, query: { content } })
/** The text of an earlier state; null where it is none, and empty where nothing was. */
export const contentOf = async (notebook: string, path: string, content: string | null | undefined): Promise<string | null> =>
  content ? textIn(await (await bytesOf(notebook, path, content)).arrayBuffer()) : ''
/** Makes an earlier state the present one: over the state with this hash, or where nothing is. */
export const putBack = async (notebook: string, path: string, content: string, over: string | null): Promise<FileEntry> =>
  saveFile(notebook, path, await bytesOf(notebook, path, content), over)
export const searchFiles = (notebook: string, q: string): Promise<{ data: Found[]; index_behind: boolean }> =>
  get('/notebooks/{notebook}/search', { path: { notebook }, query: { q, limit: 50 } })
