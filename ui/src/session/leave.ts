// Signing out, from wherever the page offers it.
import { toastProblem } from '../parts/toasts'
import { useSession } from './store'

export async function leave(): Promise<void> {
  try {
    await useSession().signOut()
    // Read anew, so that whoever comes next finds nothing that was written here.
    location.assign('/login')
  } catch (error) {
    toastProblem(error)
  }
}
