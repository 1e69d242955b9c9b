import { expect, it } from 'vitest'
import { clusterTotals, unfinishedPods } from './totals.ts'

it('pods that are completed are none of those that ought to run', () => {
  expect(unfinishedPods({ total: 62, succeeded: 6 })).toBe(56)
})

const counts = { total: 3, running: 2, pending: 1, failed: 0, succeeded: 0, unknown: 0 }

it('pods that nobody could count are absent, also where there are no nodes', () => {
  expect(clusterTotals({ nodes: [], podSummary: null }).pods).toBeNull()
  expect(clusterTotals({ nodes: null, podSummary: null }).pods).toBeNull()
  expect(clusterTotals({ nodes: [], podSummary: { counts } as never }).pods).toEqual(counts)
})
