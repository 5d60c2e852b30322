// The files of a notebook, as the server gives them.
import { get, getBlob, getChanged, getText, put, remove } from '../api/client'
import type { Page } from '../api/types'

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
  by: { kind: 'run' | 'person' | 'undo'; name: string | null; run_id: string | null; agent_id: string | null; tool: string | null }
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
export const historyOf = (notebook: string, path: string): Promise<Page<FileChange>> =>
  get('/notebooks/{notebook}/history/{path}', { path: { notebook, path: bare(path) } })
export const contentOf = (notebook: string, path: string, content: string): Promise<string> =>
  getText('/notebooks/{notebook}/history/{path}', { path: { notebook, path: bare(path) }, query: { content } })
/** Makes an earlier state the present one: over the state with this hash, or where nothing is. */
export const putBack = async (notebook: string, path: string, content: string, over: string | null): Promise<FileEntry> =>
  saveFile(notebook, path, await getBlob('/notebooks/{notebook}/history/{path}', { path: { notebook, path: bare(path) }, query: { content } }), over)
export const searchFiles = (notebook: string, q: string): Promise<{ data: Found[]; index_behind: boolean }> =>
  get('/notebooks/{notebook}/search', { path: { notebook }, query: { q, limit: 50 } })
