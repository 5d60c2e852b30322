// The time, for "3 minutes ago": one timer for all of them.
import { ref } from 'vue'

const EVERY_MS = 30_000
export const now = ref(Date.now())
setInterval(() => (now.value = Date.now()), EVERY_MS)
