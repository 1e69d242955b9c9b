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

  it('says what the cluster claims before what can be guessed, and at most twenty claims beside the reserved ones', () => {
    const custom = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`c${String(n).padStart(2, '0')}`, 'x']))
    const claims = { ...custom, 'id.k8s.io': 'mine', 'kubeversion.open-cluster-management.io': 'v1.33.2' }
    const facts = factsOf([], { claims, clusterId: 'uid-1', distribution: 'openshift', version: '4.16.3' })
    expect(facts.version).toEqual({ kubernetes: 'v1.33.2' })
    expect(facts.clusterClaims?.slice(0, 4)).toEqual([
      { name: 'id.k8s.io', value: 'mine' },
      { name: 'kubeversion.open-cluster-management.io', value: 'v1.33.2' },
      { name: 'product.open-cluster-management.io', value: 'OpenShift' },
      { name: 'version.openshift.io', value: '4.16.3' },
    ])
    expect(facts.clusterClaims?.slice(4).map(({ name }) => name)).toEqual(Object.keys(custom).slice(0, 20))
  })

  it('keeps the claims it has where the agent could not read them, and drops what is claimed no more', () => {
    const stored = [
      { name: 'kubeversion.open-cluster-management.io', value: 'v1.0.0' },
      { name: 'zone', value: 'a' },
    ]
    const state = (over: object) => ({ ...aCluster('east'), parts: parts([], over) })
    expect(memberFacts(state({}), stored).clusterClaims).toEqual([
      { name: 'kubeversion.open-cluster-management.io', value: 'v1.33.1' },
      { name: 'zone', value: 'a' },
    ])
    expect(memberFacts(state({ claims: {} }), stored).clusterClaims).toEqual([
      { name: 'kubeversion.open-cluster-management.io', value: 'v1.33.1' },
    ])
  })

  it.each([
    ['all say the same', ['r1', 'r1'], 'r1'],
    ['they differ', ['r1', 'r2'], undefined],
    ['one says none', ['r1', undefined], undefined],
  ])('is in a region where its nodes are: %s', (_, regions, region) => {
    const nodes = regions.map((one, n) =>
      aNode(`n${n}`, {
        labels: { 'cloud.google.com/gke-nodepool': 'p', ...(one && { 'topology.kubernetes.io/region': one }) },
      }),
    )
    const claims = Object.fromEntries((factsOf(nodes).clusterClaims ?? []).map(({ name, value }) => [name, value]))
    expect(claims['region.open-cluster-management.io']).toBe(region)
    expect(claims['platform.open-cluster-management.io']).toBe('GCP')
  })
})
