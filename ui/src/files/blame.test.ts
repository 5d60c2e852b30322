import { expect, it } from 'vitest'
import { blame, blocksOf } from './blame'

const versions = [
  { text: '# To do\n- milk\n- bread\n', by: null },
  { text: '# To do\n- milk\n- bread\n- eggs\n', by: 'dana' },
  { text: '# To do\n- oat milk\n- bread\n- eggs\n', by: 'guide' },
]

it('names for each line whoever wrote it last', () => {
  expect(blame(versions).map((line) => [line.text, line.by])).toEqual([
    ['# To do', null],
    ['- oat milk', 'guide'],
    ['- bread', null],
    ['- eggs', 'dana'],
  ])
})

it('knows a file that was begun by somebody', () => {
  expect(blame([{ text: '', by: null }, { text: 'one\ntwo', by: 'dana' }]).map((line) => line.by)).toEqual(['dana', 'dana'])
})

it('puts neighbours of one hand together and counts lines on', () => {
  const blocks = blocksOf(blame(versions))
  expect(blocks.map((block) => [block.from, block.lines.length])).toEqual([[1, 1], [2, 1], [3, 1], [4, 1]])
  expect(blocksOf([{ text: 'a', by: 'x' }, { text: 'b', by: 'x' }])).toHaveLength(1)
})
