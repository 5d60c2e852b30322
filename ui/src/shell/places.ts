// The places of the rail, in one list: the rail, the phone's bar, the palette and the go-to keys read it.
import { Bot, ChartColumn, FolderOpen, Inbox, ListTree, MessageSquare, Scale, ScrollText, Settings } from '@lucide/vue'
import type { Component } from 'vue'

export interface Place {
  to: string
  label: string
  icon: Component
  /** The key after `g`. */
  key: string
  /** Shown in the phone's bar. */
  first?: boolean
  /** Apart from the work itself. */
  second?: boolean
  /** Only for whoever runs a workspace or the instance. */
  admin?: boolean
}

export const PLACES: Place[] = [
  { to: '/chat', label: 'Chat', icon: MessageSquare, key: 'c', first: true },
  { to: '/inbox', label: 'Inbox', icon: Inbox, key: 'i', first: true },
  { to: '/runs', label: 'Runs', icon: ListTree, key: 'r', first: true },
  { to: '/agents', label: 'Agents', icon: Bot, key: 'a' },
  { to: '/files', label: 'Files', icon: FolderOpen, key: 'f' },
  { to: '/usage', label: 'Usage', icon: ChartColumn, key: 'm', second: true },
  { to: '/rules', label: 'Rules', icon: Scale, key: 'l', second: true },
  { to: '/audit', label: 'Audit', icon: ScrollText, key: 'u', second: true, admin: true },
  { to: '/settings', label: 'Settings', icon: Settings, key: 's', second: true },
]

/** The places of whoever is signed in. */
export const placesFor = (isAdmin: boolean): Place[] => PLACES.filter((place) => !place.admin || isAdmin)

/** Whether an address is that place, or somewhere in it. */
export const isAt = (path: string, place: Place): boolean => path === place.to || path.startsWith(`${place.to}/`)
