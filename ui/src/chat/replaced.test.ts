import { expect, it } from 'vitest'
import type { Run } from '../api/types'
import { replacedBy } from './replaced'

const run = (id: string, superseded_by: string | null): Run => ({ id, superseded_by }) as Run

it('finds what was said before, through every edit', () => {
  const runs = [run('third', null), run('second', 'third'), run('other', null), run('first', 'second')]
  expect(replacedBy('third', runs).map((one) => one.id)).toEqual(['second', 'first'])
  expect(replacedBy('other', runs)).toEqual([])
})
