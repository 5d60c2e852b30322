// Mounts the page; owns nothing else.
import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { router } from './router'
import { applyScheme } from './settings/appearance'
import './styles/tokens.css'
import './styles/base.css'
import './styles/controls.css'
import './styles/pieces.css'

applyScheme()
createApp(App).use(createPinia()).use(router).mount('#app')
