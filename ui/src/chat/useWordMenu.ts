// What the menus of the message box offer: agents, files of the notebook, commands.
import { computed, ref, watch, type ComputedRef, type Ref } from 'vue'
import { useAgents } from '../agents/store'
import type { Agent } from '../api/types'
import { listFolder, type FileEntry } from '../files/files'
import { t } from '../i18n/t'
import { rank } from '../palette/rank'
import { folderOf, type Word } from './words'

export interface Command {
  name: string
  label: string
  run: () => void
}
export interface Choice {
  id: string
  label: string
  hint: string
  /** What stands in the text instead of the word. */
  by: string
  /** A folder goes on. */
  goesOn?: boolean
  run?: () => void
}
const MOST = 8

export function useWordMenu(
  word: Ref<Word | null>,
  notebook: () => string | undefined,
  commands: () => Command[],
  onAgent: (agent: Agent) => void,
): ComputedRef<Choice[]> {
  const agents = useAgents()
  const entries = ref<{ folder: string; all: FileEntry[] } | null>(null)
  const place = computed(() => (word.value?.sign === '#' ? folderOf(word.value.typed) : null))

  watch(
    () => place.value?.folder,
    async (folder) => {
      const from = notebook()
      if (folder === undefined || !from || entries.value?.folder === folder) return
      // Whoever may not see the files writes the path by hand.
      const page = await listFolder(from, folder).catch(() => null)
      entries.value = { folder, all: page?.data ?? [] }
    },
  )
  const agentChoices = (typed: string): Choice[] =>
    rank(
      agents.active.map((agent) => ({ id: agent.id, label: agent.slug, hint: agent.name, by: '', run: () => onAgent(agent) })),
      typed,
    )
  const commandChoices = (typed: string): Choice[] =>
    rank(
      commands().map(({ name, label, run }) => ({ id: name, label: name, hint: label, by: '', run })),
      typed,
    )
  function fileChoices(): Choice[] {
    if (!place.value || entries.value?.folder !== place.value.folder) return []
    const all = entries.value.all.map((entry): Choice => {
      const isFolder = entry.kind === 'folder'
      return { id: entry.path, label: entry.name, hint: isFolder ? t('folder') : entry.path, by: isFolder ? `#${entry.path}/` : `${entry.path} `, goesOn: isFolder }
    })
    return rank(all, place.value.rest)
  }
  return computed(() => {
    switch (word.value?.sign) {
      case '@':
        return agentChoices(word.value.typed).slice(0, MOST)
      case '#':
        return fileChoices().slice(0, MOST)
      case '/':
        return commandChoices(word.value.typed).slice(0, MOST)
      case undefined:
        return []
    }
  })
}
