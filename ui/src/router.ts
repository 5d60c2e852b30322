// Which address shows which screen, and who may see it without signing in.
import { createRouter, createWebHistory } from 'vue-router'
import { MOVED } from './moved'
import { useSession } from './session/store'

declare module 'vue-router' {
  interface RouteMeta {
    /** Seen without signing in. */
    open?: boolean
    title?: string
  }
}

export const router = createRouter({
  history: createWebHistory(),
  routes: [
    { path: '/setup', component: () => import('./session/SetupPage.vue'), meta: { open: true, title: 'Set up' } },
    { path: '/login', component: () => import('./session/LoginPage.vue'), meta: { open: true, title: 'Sign in' } },
    { path: '/', redirect: '/chat' },
    {
      path: '/chat/:chat?',
      component: () => import('./chat/ChatPage.vue'),
      meta: { title: 'Chat' },
      // A link to one event of a run of the chat: the run is where events are shown.
      beforeEnter: ({ query: { run, at } }) => (typeof run === 'string' && typeof at === 'string' ? { path: `/runs/${run}`, hash: `#${at}` } : true),
    },
    { path: '/inbox/:approval?', component: () => import('./inbox/InboxPage.vue'), meta: { title: 'Inbox' } },
    { path: '/runs', component: () => import('./runs/RunsPage.vue'), meta: { title: 'Runs' } },
    { path: '/runs/:run', component: () => import('./runs/RunPage.vue'), meta: { title: 'Run' } },
    { path: '/runs/:a/vs/:b', component: () => import('./runs/ComparePage.vue'), meta: { title: 'Two runs' } },
    { path: '/agents', component: () => import('./agents/AgentsPage.vue'), meta: { title: 'Agents' } },
    { path: '/agents/new', component: () => import('./agents/AgentPage.vue'), meta: { title: 'New agent' } },
    { path: '/agents/:agent', component: () => import('./agents/AgentPage.vue'), meta: { title: 'Agent' } },
    { path: '/files/:notebook?', component: () => import('./files/FilesPage.vue'), meta: { title: 'Files' } },
    { path: '/rules', component: () => import('./rules/RulesPage.vue'), meta: { title: 'Rules' } },
    { path: '/usage', component: () => import('./usage/UsagePage.vue'), meta: { title: 'Usage' } },
    { path: '/audit', component: () => import('./audit/AuditPage.vue'), meta: { title: 'Audit' } },
    { path: '/settings/:section?', component: () => import('./settings/SettingsPage.vue'), meta: { title: 'Settings' } },
    ...MOVED,
    { path: '/:rest(.*)*', component: () => import('./shell/NotFound.vue'), meta: { title: 'Not found' } },
  ],
  scrollBehavior: (_to, _from, saved) => saved ?? { top: 0 },
})

router.beforeEach(async (to) => {
  const session = useSession()
  await session.ready()
  if (to.meta.open || session.me) return true
  if (session.isSetUp === false) return '/setup'
  return { path: '/login', query: to.fullPath === '/' ? {} : { next: to.fullPath } }
})
