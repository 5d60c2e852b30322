// From a model's text to markup. The only place that makes HTML from text, and the only sanitiser.
import DOMPurify, { type Config } from 'dompurify'
import { Marked, Renderer, type Token, type TokenizerAndRendererExtension, type TokensList } from 'marked'
import { visible } from './visible'

const ALLOWED: Config = {
  ALLOWED_TAGS: [
    'p', 'br', 'hr', 'strong', 'em', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'a', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6',
    'table', 'thead', 'tbody', 'tr', 'th', 'td', 'small',
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

const renderer = new Renderer()
/** A link that says where it leads: one press of it tells whoever is there all that the address holds (rule N7). */
function linkOf(href: string, text: string, inner: string): string {
  const link = `<a href="${escape(href)}">${inner}</a>`
  return text === href ? link : `${link} <small>(${escape(whereTo(href))})</small>`
}
function whereTo(href: string): string {
  const url = URL.canParse(href) ? new URL(href) : null
  return visible(url?.host || href)
}
// Markup of a model is text. An image would be fetched from wherever the model says, so it becomes a link.
renderer.html = ({ text }) => escape(text)
renderer.checkbox = ({ checked }) => (checked ? '☑ ' : '☐ ')
/** The sign of a task takes the place of its dot. */
renderer.listitem = function ({ task, tokens }) {
  return `<li${task ? ` class="language-${TASK}"` : ''}>${this.parser.parse(tokens)}</li>\n`
}
renderer.image = ({ href, text }) => linkOf(href, text || href, escape(text || href))
renderer.link = function ({ href, text, tokens }) {
  return linkOf(href, text, this.parser.parseInline(tokens))
}

// A formula is code until `maths` has set it. A lone dollar is money: one that opens a formula stands right before it, and
// the one that closes it right after it, and a number alone is a price.
const INLINE = /^(?:\$\$([^$]+?)\$\$|\\\(([^\n]+?)\\\)|\$(?![\s$]|\d[\d.,]*\s)((?:\\.|[^$\n\\])*?[^\s\\$])\$(?!\d))/
const BLOCK = /^(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n|$)/
function maths(name: string, level: 'block' | 'inline', form: RegExp, wrap: (code: string) => string): TokenizerAndRendererExtension {
  return {
    name,
    level,
    start: (text) => text.match(level === 'block' ? /^(?:\$\$|\\\[)/m : /\$|\\\(/)?.index,
    tokenizer(text) {
      const found = form.exec(text)
      if (!found) return undefined
      return { type: name, raw: found[0], text: (found[1] ?? found[2] ?? found[3] ?? '').trim() }
    },
    renderer: (token) => wrap(`<code class="language-${MATHS}">${escape(String(token['text']))}</code>`),
  }
}
/** Marks a task in a list: of classes only those of languages are kept. */
const TASK = 'task'
/** The language of a formula that waits to be set. */
export const MATHS = 'maths'
const extensions = [maths('maths-block', 'block', BLOCK, (code) => `<pre>${code}</pre>`), maths('maths', 'inline', INLINE, (code) => code)]
// An address that merely stands in a text is text: only what is written as a link is one.
const tokenizer = { url: () => undefined, autolink: () => undefined }
const marked = new Marked({ gfm: true, renderer, extensions }, { tokenizer })

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
  return purify(marked.parse(text, { async: false }))
}

function purify(markup: string): string {
  hook()
  return DOMPurify.sanitize(markup, ALLOWED)
}

/** Clean markup of a formula that was set: its signs and their places, no links, no styles. */
export function purifyMaths(markup: string): string {
  hook()
  return DOMPurify.sanitize(markup, { USE_PROFILES: { mathMl: true }, FORBID_ATTR: ['style', 'href', 'xlink:href'], ALLOW_DATA_ATTR: false })
}

/** The same in pieces, so that a text that grows at its end redraws only its last piece. */
export function renderBlocks(text: string): string[] {
  if (text.length > LONGEST) return piecesOf(text).map((piece) => `<pre class="language-plain"><code class="dressed">${escape(piece)}</code></pre>`)
  const tokens = marked.lexer(text)
  return tokens.filter((token) => token.type !== 'space').map((token) => purify(marked.parser(listOf(token, tokens))))
}

/** A text in pieces of about this many characters, cut at ends of lines where there are any. */
const PIECE = 8_000
function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let from = 0; from < text.length; ) {
    const line = text.lastIndexOf('\n', from + PIECE)
    const to = line > from ? line + 1 : Math.min(from + PIECE, text.length)
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}

function listOf(token: Token, all: TokensList): TokensList {
  return Object.assign([token], { links: all.links })
}
