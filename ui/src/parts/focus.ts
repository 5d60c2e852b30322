// `v-focus`: what appears because somebody asked for it is where they go on.
import type { ObjectDirective } from 'vue'

export const vFocus: ObjectDirective<HTMLElement> = { mounted: (element) => element.focus() }
