// The sections of the settings, in one list: the settings and the palette read it.
import { defineAsyncComponent, type Component } from 'vue'

export interface Section {
  name: string
  label: string
  page: Component
  /** Only for whoever runs the workspace or the instance. */
  admin?: boolean
}

const SECTIONS: Section[] = [
  { name: 'profile', label: 'Profile', page: defineAsyncComponent(() => import('./ProfileSection.vue')) },
  { name: 'appearance', label: 'Appearance', page: defineAsyncComponent(() => import('./AppearanceSection.vue')) },
  { name: 'models', label: 'Models and keys', page: defineAsyncComponent(() => import('./ModelsSection.vue')) },
  { name: 'tokens', label: 'API tokens', page: defineAsyncComponent(() => import('./TokensSection.vue')) },
  { name: 'workspace', label: 'Workspace', page: defineAsyncComponent(() => import('./WorkspaceSection.vue')), admin: true },
  { name: 'people', label: 'People', page: defineAsyncComponent(() => import('./PeopleSection.vue')), admin: true },
  { name: 'stop', label: 'Stop switch', page: defineAsyncComponent(() => import('./StopSection.vue')), admin: true },
  { name: 'tools', label: 'Tools', page: defineAsyncComponent(() => import('./ToolsSection.vue')) },
  { name: 'about', label: 'About', page: defineAsyncComponent(() => import('./AboutSection.vue')) },
]

/** The sections of whoever is signed in. */
export const sectionsFor = (isAdmin: boolean): Section[] => SECTIONS.filter((section) => !section.admin || isAdmin)
