import { expect, it } from 'vitest'
import type { Approval } from '../api/types'
import { folderOf, groupsOf, rowsOf, sameCall } from './groups'

const item = (id: string, tool: string, rest: string, agent = 'a', kind: Approval['kind'] = 'call'): Approval => ({ id, kind, agent_id: agent, tool_name: tool, summary: `${tool} ${rest}` }) as Approval
const ALL = [item('1', 'write_file', '/my notes/a.md +5 −1'), item('2', 'delete_file', '/old.md'), item('3', 'write_file', '/my notes/b.md +1 −0'), item('4', 'write_file', '/my notes/c.md', 'b')]

it('reads the folder off the line of a call', () => {
  expect(ALL.map(folderOf)).toEqual(['/my notes', '/', '/my notes', '/my notes'])
  expect(folderOf(item('5', 'fetch_url', 'https://example.org/a'))).toBeNull()
})

it('puts calls of one agent with one tool in one folder together, where the first stood', () => {
  const ids = (by: 'alike' | 'agent' | 'none'): string[][] => groupsOf(ALL, by).map((group) => group.items.map((one) => one.id))
  expect(ids('alike')).toEqual([['1', '3'], ['2'], ['4']])
  expect(ids('agent')).toEqual([['1', '2', '3'], ['4']])
  expect(ids('none')).toEqual([['1'], ['2'], ['3'], ['4']])
})

it('never puts doubts together', () => {
  const doubts = [item('1', 'send', '/a', 'a', 'in_doubt'), item('2', 'send', '/a', 'a', 'in_doubt')]
  expect(groupsOf(doubts, 'agent')).toHaveLength(2)
})

it('shows the items of a group only when it is open, and one alone without a group', () => {
  const groups = groupsOf(ALL, 'alike')
  const lines = (opened: string[]): string[] => rowsOf(groups, new Set(opened)).map((row) => (row.group ? 'group' : row.item.id))
  expect(lines([])).toEqual(['group', '2', '4'])
  expect(lines([groups[0]?.key ?? ''])).toEqual(['group', '1', '3', '2', '4'])
})

it('knows what a selection has in common', () => {
  expect(sameCall([ALL[0], ALL[2], ALL[3]] as Approval[])).toEqual({ tool: 'write_file', folder: '/my notes' })
  expect(sameCall(ALL)).toBeNull()
  expect(sameCall([])).toBeNull()
})
