// Addresses that screens go by elsewhere, in links of others: each leads to where the screen is.
import type { RouteRecordRaw } from 'vue-router'

const one = (param: string | string[] | undefined): string => (Array.isArray(param) ? param[0] : param) ?? ''
/** Parts of the page of an agent by the name of their tab, where that is another. */
const TABS: Record<string, string> = { overview: 'basics', settings: 'basics', sees: 'told' }

export const MOVED: RouteRecordRaw[] = [
  { path: '/workspaces', redirect: '/files' },
  {
    path: '/w/:slug/:path(.*)*',
    redirect: ({ params: { slug, path } }) => {
      const names = [path ?? []].flat().filter(Boolean)
      return { path: `/files/${one(slug)}`, query: names.length > 0 ? { path: `/${names.join('/')}` } : {} }
    },
  },
  { path: '/agents/:agent/runs', redirect: ({ params }) => ({ path: '/runs', query: { agent: one(params['agent']) } }) },
  { path: '/agents/:agent/pending', redirect: '/inbox' },
  { path: '/agents/:agent/:tab', redirect: ({ params: { agent, tab }, query }) => ({ path: `/agents/${one(agent)}`, query: { ...query, tab: TABS[one(tab)] ?? one(tab) } }) },
  { path: '/settings/providers', redirect: '/settings/models' },
  { path: '/settings/users', redirect: '/settings/people' },
  { path: '/settings/rules', redirect: '/rules' },
]
