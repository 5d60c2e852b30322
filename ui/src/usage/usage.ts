// What was spent and what may be, as the server gives it.
import { get, put, remove } from '../api/client'

export interface UsageRow {
  group: string
  name: string | null
  day: string | null
  calls: number
  failed: number
  tokens: { input: number; output: number; cached: number; reasoning: number }
  cost_usd: number
  unpriced: number
  estimated: number
}
export interface Usage {
  data: UsageRow[]
  total_usd: number
  unpriced: number
  from: string
}
export type GroupBy = 'agent' | 'model' | 'user' | 'key' | 'day'
export interface Limits {
  run_usd?: number | null
  day_usd?: number | null
  month_usd?: number | null
  alert_at_usd?: number[]
  /** Whether models without a known price are asked although there is a limit. */
  allow_unpriced?: boolean
}
export interface Spent {
  spent_microusd: number
  limit_microusd: number | null
  until: string
}
export interface BudgetLine {
  workspace_id: string
  kind: 'workspace' | 'person' | 'agent' | 'key'
  subject: string
  name: string | null
  budget: Limits
  day: Spent
  month: Spent
}

export interface Asked {
  group_by: GroupBy
  from: string
  to?: string
  interval?: 'day'
  workspace_id?: string
  agent?: string
}
export const readUsage = (asked: Asked): Promise<Usage> => get('/usage', { query: { ...asked } })
export const readBudgets = (): Promise<{ data: BudgetLine[] }> => get('/budgets')
export const saveWorkspaceBudget = (workspace: string, limits: Limits): Promise<BudgetLine> => put('/workspaces/{workspace}/budget', { path: { workspace }, body: limits })
export const savePersonBudget = (workspace: string, user: string, limits: Limits): Promise<BudgetLine> =>
  put('/workspaces/{workspace}/members/{user}/budget', { path: { workspace, user }, body: limits })
export const dropWorkspaceBudget = (workspace: string): Promise<void> => remove('/workspaces/{workspace}/budget', { path: { workspace } })
