import { expect, it } from 'vitest'
import { clusterTotals } from './totals.ts'

const counts = { total: 3, running: 2, pending: 1, failed: 0, succeeded: 0, unknown: 0 }

it('pods that nobody could count are absent, also where there are no nodes', () => {
  expect(clusterTotals({ nodes: [], podSummary: null }).pods).toBeNull()
  expect(clusterTotals({ nodes: null, podSummary: null }).pods).toBeNull()
  expect(clusterTotals({ nodes: [], podSummary: { counts } as never }).pods).toEqual(counts)
})
