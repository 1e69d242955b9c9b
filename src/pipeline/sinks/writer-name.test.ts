import { expect, it } from 'vitest'
import { areOfOneCluster, replacedBy } from './writer-name.ts'

it.each([
  ['pod-a in cluster 1', 'pod-b in cluster 1', false],
  ['pod-a in cluster 1', 'pod-b in cluster 2', true],
  ['pod-a in namespace 1', 'pod-b in namespace 2', true],
  // An agent that was made one of a tenant, or of the cluster, is no other cluster.
  ['pod-a in cluster 1', 'pod-b in namespace 2', false],
  ['pod-a in cluster 1', 'pod-b at https://10.0.0.1', false],
  ['pod-a in cluster 1', '', false],
])('%s takes %j for another cluster: %s', (own, former, isOther) => {
  expect(replacedBy(own, former) !== undefined).toBe(isOther)
})

it.each([
  ['pod-a in cluster 1', 'pod-b in cluster 1', true],
  ['pod-a in namespace 1', 'pod-b in namespace 1', true],
  ['pod-a in cluster 1', 'pod-a in cluster 2', false],
  ['pod-a in cluster 1', 'pod-a in namespace 1', false],
  ['pod-a at https://10.0.0.1', 'pod-a at https://10.0.0.1', false],
])('%s and %j are surely of one cluster, or of a copy of it: %s', (one, other, isOne) => {
  expect(areOfOneCluster(one, other)).toBe(isOne)
})
