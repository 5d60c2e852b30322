// The editor for texts. Loaded only when one is edited.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { markdown } from '@codemirror/lang-markdown'
import { yaml } from '@codemirror/lang-yaml'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

export interface Editing {
  host: HTMLElement
  path: string
  text: string
  label: string
  isReadOnly: boolean
  onChange: (text: string) => void
  onSave: () => void
}
export interface Editor {
  /** Puts another text in, when it is another one. */
  set(text: string): void
  focus(): void
  end(): void
}

const LANGUAGES: [RegExp, () => Extension][] = [
  [/\.(md|markdown)$/i, markdown],
  [/\.json$/i, json],
  [/\.ya?ml$/i, yaml],
]
const PURPLE = 'light-dark(#7b3fa0, #d3a4f0)'
const BLUE = 'light-dark(#1f5fa8, #8bbcf2)'
const COLOURS = HighlightStyle.define([
  { tag: tags.heading, fontWeight: '650', color: 'var(--accent-ink)' },
  { tag: tags.strong, fontWeight: '650' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: [tags.comment, tags.quote, tags.processingInstruction, tags.contentSeparator], color: 'var(--ink-quiet)' },
  { tag: [tags.string, tags.monospace], color: 'var(--good)' },
  { tag: [tags.keyword, tags.bool, tags.null], color: PURPLE },
  { tag: [tags.number, tags.propertyName, tags.link, tags.url], color: BLUE },
])
const LOOKS = EditorView.theme({
  '&': { minHeight: '60vh', color: 'var(--ink)', backgroundColor: 'var(--surface)', fontSize: 'var(--size-s)' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6' },
  // The numbers keep to their lines by the padding of the content alone.
  '.cm-content': { minHeight: '60vh', paddingBlock: '0.5rem', caretColor: 'var(--ink)' },
  '.cm-gutter': { minHeight: '60vh' },
  '.cm-lineNumbers .cm-gutterElement': { minWidth: '2.25rem', paddingInline: '0.5rem' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--ink-quiet)', borderRight: 'none' },
  '.cm-activeLine': { backgroundColor: 'var(--hover)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-soft) !important' },
})

// Left to the browser, a text typed over a selection comes with a style of its own, which the content policy refuses aloud.
const TYPED_OVER = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== 'insertText' || !event.data || view.state.selection.main.empty || view.composing || view.state.readOnly) return false
    event.preventDefault()
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

export function edit({ host, path, text, label, isReadOnly, onChange, onSave }: Editing): Editor {
  // Inside a root of its own its styles need no exception from the content policy.
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const language = LANGUAGES.find(([form]) => form.test(path))?.[1]
  const save = (): boolean => {
    onSave()
    return true
  }
  const extensions: Extension[] = [
    lineNumbers(),
    history(),
    drawSelection(),
    highlightActiveLine(),
    EditorView.lineWrapping,
    // Tab is left to the page: whoever uses the keyboard must be able to leave.
    keymap.of([{ key: 'Mod-s', run: save, preventDefault: true }, ...defaultKeymap, ...historyKeymap]),
    TYPED_OVER,
    LOOKS,
    syntaxHighlighting(COLOURS),
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
    EditorState.readOnly.of(isReadOnly),
    EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
    ...(language ? [language()] : []),
  ]
  const view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: root, root })
  return {
    set(next) {
      if (view.state.doc.toString() !== next) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } })
    },
    focus: () => view.focus(),
    end: () => view.destroy(),
  }
}
