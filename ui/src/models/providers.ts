// The providers of models, as the server names them.
import { get } from '../api/client'
import type { Page } from '../api/types'

export interface Provider {
  /** What the names of its models begin with. */
  name: string
  title: string
  kind: string
  /** Only admins are told. */
  host?: string | null
  key: 'operator' | 'stored' | 'not_needed' | 'missing'
  key_env: string[]
  models: number
  detected: boolean
  resting_seconds?: number | null
}
export const listProviders = async (): Promise<Provider[]> => (await get<Page<Provider>>('/providers')).data
