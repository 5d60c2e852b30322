import { expect, it } from 'vitest'
import { failureStep } from './failure'

it('leads from a key that is refused to the keys, and from a missing model to the models', () => {
  expect(failureStep('unauthorized')).toMatchObject({ to: '/settings/models', label: 'See the keys' })
  expect(failureStep('unknown_model')?.label).toBe('See the models')
})

it('says nothing where there is nothing to add', () => {
  expect(failureStep('output_invalid')).toBe(null)
})
