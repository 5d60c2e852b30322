// Files that go with the next message: kept in the notebook as soon as they are chosen, and taken out again if somebody thinks better of it.
import { computed, ref, type ComputedRef, type Ref } from 'vue'
import { asProblem, Problem } from '../api/problem'
import type { AttachedFile } from '../api/types'
import { t } from '../i18n/t'
import { deleteFile, saveFile, type FileEntry } from '../files/files'
import { FOLDER, numbered, plainName } from './attachments'

export interface Attachment {
  key: number
  name: string
  /** Where it is, once it is there. */
  kept: FileEntry | null
  wrong: string | null
}
/** As much as the server keeps of one file. */
const MOST_BYTES = 32 * 1024 * 1024
const MOST_TRIES = 20
const TAKEN = [409, 412]
let next = 1

/** As the server is told of them. */
export const bodyOf = (files: Attachment[]): AttachedFile[] => files.flatMap((one) => (one.kept ? [{ path: one.kept.path }] : []))

/** Files of a message that was taken back: they are in the notebook already. */
export const keptBefore = (files: AttachedFile[]): Attachment[] =>
  files.map(({ path }) => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    return { key: next++, name, kept: { path, name, kind: 'file', size: 0, modified_at: '' }, wrong: null }
  })

export interface Attachments {
  all: Ref<Attachment[]>
  isSaving: ComputedRef<boolean>
  add: (files: Iterable<File>) => void
  remove: (one: Attachment) => Promise<void>
  /** Those that are kept; the box is empty afterwards. */
  take: () => Attachment[]
  /** What was taken and not sent. */
  putBack: (files: Attachment[]) => void
}

export function useAttachments(notebook: () => string | undefined): Attachments {
  const all = ref<Attachment[]>([])
  const isSaving = computed(() => all.value.some((one) => !one.kept && !one.wrong))
  const change = (key: number, by: Partial<Attachment>): void => {
    all.value = all.value.map((one) => (one.key === key ? { ...one, ...by } : one))
  }

  async function keep(key: number, file: File): Promise<void> {
    if (file.size > MOST_BYTES) return change(key, { wrong: t('It is larger than {most}. It was not sent.', { most: t('{n} MB', { n: MOST_BYTES / 1024 / 1024 }) }) })
    const name = plainName(file.name)
    for (let n = 1; n <= MOST_TRIES; n++) {
      try {
        const kept = await saveFile(notebook() ?? '', `${FOLDER}/${numbered(name, n)}`, file, null)
        // Taken out while it was on its way.
        if (!all.value.some((one) => one.key === key)) return drop(kept)
        return change(key, { kept, name: kept.name })
      } catch (error) {
        if (error instanceof Problem && TAKEN.includes(error.status) && n < MOST_TRIES) continue
        return change(key, { wrong: asProblem(error).body.detail })
      }
    }
  }
  /** What cannot be taken out again is only a file in the notebook. */
  const drop = (kept: FileEntry): Promise<void> => deleteFile(notebook() ?? '', kept.path, kept.hash ?? '').catch(() => undefined)

  function add(files: Iterable<File>): void {
    for (const file of files) {
      const key = next++
      all.value = [...all.value, { key, name: file.name, kept: null, wrong: null }]
      void keep(key, file)
    }
  }
  async function remove(one: Attachment): Promise<void> {
    all.value = all.value.filter((other) => other.key !== one.key)
    if (one.kept) await drop(one.kept)
  }
  function take(): Attachment[] {
    const kept = all.value.filter((one) => one.kept)
    all.value = []
    return kept
  }
  function putBack(files: Attachment[]): void {
    all.value = [...files, ...all.value]
  }
  return { all, isSaving, add, remove, take, putBack }
}
