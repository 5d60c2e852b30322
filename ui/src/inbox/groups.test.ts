import { expect, it } from 'vitest'
import type { Approval } from '../api/types'
import { areAlike, decidable, groupsOf, rowsOf, sameCall, whereOf } from './groups'

const item = (id: string, tool: string, rest: string, agent = 'a', kind: Approval['kind'] = 'call'): Approval => ({ id, kind, agent_id: agent, tool_name: tool, summary: `${tool} ${rest}` }) as Approval
const request = (id: string, summary: string): Approval => ({ id, kind: 'call', agent_id: 'a', tool_name: 'http_request', summary }) as Approval
const ALL = [item('1', 'write_file', '/my notes/a.md +5 −1'), item('2', 'delete_file', '/old.md'), item('3', 'write_file', '/my notes/b.md +1 −0'), item('4', 'write_file', '/my notes/c.md', 'b')]

it('reads off the line of a call where it acts', () => {
  expect(ALL.map(whereOf)).toEqual(['in /my notes', 'in /', 'in /my notes', 'in /my notes'])
  expect(whereOf(request('5', 'POST https://example.org:8443/a?b'))).toBe('with POST at example.org:8443')
  expect(whereOf(item('6', 'kv_set', 'colour (4 bytes)'))).toBe('')
})

it('puts calls of one agent with one tool in one folder together, where the first stood', () => {
  const ids = (by: 'alike' | 'agent' | 'none'): string[][] => groupsOf(ALL, by).map((group) => group.items.map((one) => one.id))
  expect(ids('alike')).toEqual([['1', '3'], ['2'], ['4']])
  expect(ids('agent')).toEqual([['1', '2', '3'], ['4']])
  expect(ids('none')).toEqual([['1'], ['2'], ['3'], ['4']])
})

it('puts requests to one host together, and no others', () => {
  const all = [request('1', 'POST https://a.example/x'), request('2', 'POST https://b.example/x'), request('3', 'POST https://a.example/y'), request('4', 'DELETE https://a.example/y')]
  expect(groupsOf(all, 'alike').map((group) => group.items.map((one) => one.id))).toEqual([['1', '3'], ['2'], ['4']])
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
  expect(sameCall([ALL[0], ALL[2], ALL[3]] as Approval[])).toEqual({ tool: 'write_file', where: 'in /my notes' })
  expect(sameCall(ALL)).toBeNull()
  expect(sameCall([])).toBeNull()
})

it('lets one yes answer only calls of one tool in one place', () => {
  const at = (id: string, place: Approval['place'], tool = 'http_request'): Approval => ({ id, kind: 'call', tool_name: tool, place }) as Approval
  const post = { hosts: ['a.example'], arguments: { method: 'POST' } }
  expect(areAlike([at('1', { directly_in: ['/a'] }), at('2', { directly_in: ['/a'] })])).toBe(true)
  expect(areAlike([at('1', { directly_in: ['/a'] }), at('2', { directly_in: ['/b'] })])).toBe(false)
  expect(areAlike([at('1', post), at('2', { ...post })])).toBe(true)
  expect(areAlike([at('1', post), at('2', post, 'fetch_web_page')])).toBe(false)
  expect(areAlike([at('1', post), at('2', { hosts: ['b.example'], arguments: { method: 'POST' } })])).toBe(false)
  // A yes to exactly these arguments says nothing about others, and a call without a place has none in common.
  expect(areAlike([at('1', { exactly: 'ab' }, 'kv_set'), at('2', { exactly: 'cd' }, 'kv_set')])).toBe(false)
  expect(areAlike([at('1', null), at('2', null)])).toBe(false)
  expect(areAlike([at('1', null)])).toBe(true)
  expect(areAlike([])).toBe(false)
})

it('takes nothing for alike that is in two workspaces', () => {
  const at = (id: string, workspace_id: string): Approval => ({ ...item(id, 'write_file', '/a'), workspace_id, place: { directly_in: ['/a'] } })
  expect([areAlike([at('1', 'w'), at('2', 'w')]), areAlike([at('1', 'w'), at('2', 'v')])]).toEqual([true, false])
})

it('lets somebody select only calls that are theirs to decide', () => {
  const mine = { ...item('1', 'write_file', '/a'), may_decide: true }
  const others = [item('2', 'write_file', '/a'), { ...item('3', 'write_file', '/a'), may_decide: false }, { ...item('4', 'send', '/a', 'a', 'in_doubt'), may_decide: true }]
  expect(decidable([mine, ...others])).toEqual([mine])
})
