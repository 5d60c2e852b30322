// From a model's text to markup. The only place that makes HTML from text, and the only sanitiser.
import DOMPurify, { type Config } from 'dompurify'
import { marked, type Token, type TokensList } from 'marked'

const ALLOWED: Config = {
  ALLOWED_TAGS: [
    'p', 'br', 'hr', 'strong', 'em', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'a', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6',
    'table', 'thead', 'tbody', 'tr', 'th', 'td',
  ],
  ALLOWED_ATTR: ['href', 'class', 'start', 'align'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ADD_URI_SAFE_ATTR: ['start', 'align'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
}

// Text longer than this is shown as it is: making markup of it would hold up the page.
const LONGEST = 200_000

const escape = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)

const renderer = new marked.Renderer()
// Markup of a model is text. An image would be fetched from wherever the model says, so it becomes a link.
renderer.html = ({ text }) => escape(text)
renderer.checkbox = ({ checked }) => (checked ? '☑ ' : '☐ ')
renderer.image = ({ href, text }) => `<a href="${escape(href)}">${escape(text || href)}</a>`

let hasHook = false
function hook(): void {
  if (hasHook) return
  hasHook = true
  DOMPurify.addHook('afterSanitizeAttributes', (node) => {
    if (node.nodeName === 'A') {
      node.setAttribute('rel', 'noopener noreferrer nofollow')
      node.setAttribute('target', '_blank')
    }
    const kept = node.getAttribute('class')
    if (kept !== null && !/^language-[\w+#-]+$/.test(kept)) node.removeAttribute('class')
  })
}

/** Clean markup of one piece of Markdown. */
export function render(text: string): string {
  if (text.length > LONGEST) return `<pre><code>${escape(text)}</code></pre>`
  return purify(marked.parse(text, { async: false, gfm: true, renderer }))
}

function purify(markup: string): string {
  hook()
  return DOMPurify.sanitize(markup, ALLOWED)
}

/** The same in pieces, so that a text that grows at its end redraws only its last piece. */
export function renderBlocks(text: string): string[] {
  if (text.length > LONGEST) return [render(text)]
  const tokens = marked.lexer(text, { gfm: true })
  return tokens.filter((token) => token.type !== 'space').map((token) => purify(marked.parser(listOf(token, tokens), { gfm: true, renderer })))
}

function listOf(token: Token, all: TokensList): TokensList {
  return Object.assign([token], { links: all.links })
}
