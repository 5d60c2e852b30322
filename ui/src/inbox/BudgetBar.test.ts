// @vitest-environment jsdom
import { expect, it } from 'vitest'
import { createApp } from 'vue'
import type { Approval } from '../api/types'
import BudgetBar from './BudgetBar.vue'

function buttons(approval: Partial<Approval>): { labels: string[]; text: string; press: (label: string) => unknown[] } {
  const box = document.createElement('div')
  const decided: unknown[] = []
  createApp(BudgetBar, { approval: { kind: 'budget', ...approval } as Approval, busy: false, onDecide: (one: unknown) => decided.push(one) }).mount(box)
  const all = [...box.querySelectorAll('button')]
  const press = (label: string): unknown[] => {
    all.find((one) => one.textContent === label)?.click()
    return decided
  }
  return { labels: all.map((one) => one.textContent ?? ''), text: box.textContent ?? '', press }
}

it('says what a yes adds where money is used up', () => {
  const { labels } = buttons({ raise_usd: 0.25 })
  expect(labels).toEqual(['+$0.25 and continue', 'Another amount…', 'Stop the run'])
})

it('speaks of no amount where the price of a model is not known', () => {
  const { labels, text, press } = buttons({ unpriced_model: 'own/x' })
  expect(labels).toEqual(['Ask it anyway', 'Stop the run'])
  expect(text).toContain('What own/x costs is not counted in this run')
  expect(text).not.toContain('$')
  expect(press('Ask it anyway')).toEqual([{ decision: 'approve' }])
})
