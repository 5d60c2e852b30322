import { expect, it } from 'vitest'
import { countFits, fits, waitingCalls, type PastCall } from './preview'

const call = (path: string | null, tool = 'write_file', verdict: string | null = 'ask'): PastCall => ({ tool, agent_id: 'a1', path, verdict })

it('takes a folder with all below it, and not its neighbours', () => {
  const wanted = { tool: 'write_file', agent: '', when: { folders: ['/drafts/'] } }
  expect(['/drafts/a.md', '/drafts/deep/b.md', '/drafts2/c.md', '/e.md', null].map((path) => fits(wanted, call(path)))).toEqual([true, true, false, false, false])
})

it('reads patterns: one star stays in its folder, two do not, and dots are dots', () => {
  const one = { tool: '*', agent: '', when: { folders: ['/notes/*.md'] } }
  expect(['/notes/a.md', '/notes/deep/a.md', '/notes/axmd'].map((path) => fits(one, call(path)))).toEqual([true, false, false])
  expect(fits({ ...one, when: { folders: ['/notes/**.md'] } }, call('/notes/deep/a.md'))).toBe(true)
})

it('counts calls of the tool and the agent by how they came out', () => {
  const calls = [call('/a'), call('/b', 'write_file', 'allow'), call('/c', 'read_file', 'deny'), call('/d', 'write_file', null)]
  expect(countFits({ tool: 'write_file', agent: 'a1', when: {} }, calls)).toEqual({ all: 2, allow: 1, ask: 1, deny: 0 })
  expect(countFits({ tool: '*', agent: 'a2', when: {} }, calls).all).toBe(0)
})

it('counts a call that waits, by its line', () => {
  const waiting = waitingCalls([
    { kind: 'call', tool_name: 'write_file', agent_id: 'a1', summary: 'write_file /drafts/a.md +5 −11' },
    { kind: 'budget', tool_name: 'budget', agent_id: 'a1', summary: 'The money is used up' },
  ])
  expect(waiting.map((one) => fits({ tool: 'write_file', agent: 'a1', when: { folders: ['/drafts/*.md'] } }, one))).toEqual([true])
})
