// Asks before somebody leaves what they have not saved: for another screen, another thing on this one, or altogether.
import { onBeforeUnmount, onMounted, type Ref } from 'vue'
import { onBeforeRouteLeave, onBeforeRouteUpdate } from 'vue-router'
import { t } from '../i18n/t'

export function useUnsaved(isChanged: Readonly<Ref<boolean>>): void {
  const mayLeave = (): boolean => !isChanged.value || window.confirm(t('Leave without saving? Your changes are lost.'))
  onBeforeRouteLeave(mayLeave)
  // Another view of the same thing keeps what was written.
  onBeforeRouteUpdate((to, from) => (to.path === from.path && to.query['path'] === from.query['path']) || mayLeave())
  const hold = (event: BeforeUnloadEvent): void => {
    if (isChanged.value) event.preventDefault()
  }
  onMounted(() => window.addEventListener('beforeunload', hold))
  onBeforeUnmount(() => window.removeEventListener('beforeunload', hold))
}
