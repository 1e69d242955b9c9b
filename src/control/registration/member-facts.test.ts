import { describe, expect, it } from 'vitest'
import { memberFacts } from './member-facts.ts'
import { aCluster, aNode, parts } from './testing/fleet.ts'

const factsOf = (...told: Parameters<typeof parts>) => memberFacts({ ...aCluster('east'), parts: parts(...told) })

describe('what a member says of itself', () => {
  it('sums over nodes; those that take no pods count for the capacity alone', () =>
    expect(factsOf([aNode('a'), aNode('b', { unschedulable: true })])).toMatchObject({
      version: { kubernetes: 'v1.33.1' },
      capacity: { cpu: '16', memory: '67108864Ki', 'ephemeral-storage': '209715200Ki', pods: '220' },
      allocatable: { cpu: '7500m', memory: '31457280Ki', pods: '110' },
    }))

  it('leaves out an amount that one node does not tell, as a sum without it would be wrong', () => {
    const untold = aNode('b', { capacity: { cpuCores: 8, memoryBytes: null, storageBytes: null, pods: 110 } })
    expect(factsOf([aNode('a'), untold]).capacity).toEqual({ cpu: '16', pods: '220' })
  })

  it('says nothing of nodes that could not be read this time', () =>
    expect(factsOf([aNode('a')], {}, 'unreachable')).not.toHaveProperty('capacity'))

  it('has no nodes where there are none, which is not the same', () =>
    expect(factsOf([]).capacity).toEqual({ cpu: '0', memory: '0', 'ephemeral-storage': '0', pods: '0' }))

  it('gives the version an API server has, with its v, and claims by their reserved names', () => {
    expect(factsOf([], { version: '1.31.0', clusterId: 'uid-1' })).toMatchObject({
      version: { kubernetes: 'v1.31.0' },
      clusterClaims: [
        { name: 'id.k8s.io', value: 'uid-1' },
        { name: 'kubeversion.open-cluster-management.io', value: '1.31.0' },
      ],
    })
    const openshift = factsOf([], { distribution: 'openshift', version: '4.16.3' })
    expect(openshift).not.toHaveProperty('version')
    expect(openshift.clusterClaims).toEqual([
      { name: 'product.open-cluster-management.io', value: 'OpenShift' },
      { name: 'version.openshift.io', value: '4.16.3' },
    ])
  })
})
