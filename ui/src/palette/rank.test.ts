import { expect, it } from 'vitest'
import { rank } from './rank'

const labels = (wanted: string): string[] => rank(['Runs', 'New chat', 'Chat', 'Rules', 'The cheetah'].map((label) => ({ label })), wanted).map((one) => one.label)

it('puts the beginning of a label before the beginning of a word, and that before letters in order', () => {
  expect(labels('ch')).toEqual(['Chat', 'New chat', 'The cheetah'])
  expect(labels('rs')).toEqual(['Runs', 'Rules'])
})

it('leaves out what does not fit and shows all for nothing', () => {
  expect(labels('xyz')).toEqual([])
  expect(labels(' ')).toHaveLength(5)
})
