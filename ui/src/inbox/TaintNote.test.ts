// @vitest-environment jsdom
import { expect, it } from 'vitest'
import { createApp } from 'vue'
import type { Approval } from '../api/types'
import TaintNote from './TaintNote.vue'

function said(approval: Partial<Approval>): string {
  const box = document.createElement('div')
  createApp(TaintNote, { approval: approval as Approval }).mount(box)
  return box.textContent?.replace(/\s+/g, ' ').trim() ?? ''
}

it('names what was read from outside, and lets nothing hide in the names', () => {
  const sources = ['read_file /a\u202Egpj.md', 'read_file /a\u202Egpj.md', 'fetch_web_page https://exa\u200bmple.org/', 'c', 'd']
  expect(said({ labels: ['untrusted'], sources })).toBe(
    'Drafted after reading 4 things from outside. Check that it is what you asked for. read_file /a\\u{202e}gpj.mdfetch_web_page https://exa\\u{200b}mple.org/cand 1 more',
  )
  expect(said({ labels: ['private'], sources })).toBe('')
})
