import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import { clusterCollector, consoleUrl, memberClusterCollector, openShiftVersion } from './cluster.ts'
import { productOf } from './cluster-claims.ts'
import { clusterOperatorCollector, clusterOperatorSnapshot } from './cluster-operators.ts'
import { deploymentCollector } from './deployments.ts'
import { namespaceCollector } from './namespaces.ts'
import { csvFacts, operatorCollector } from './operators.ts'
import { collectOnce } from './testing/collect-once.ts'
import { type FakeCluster, fakeCluster, kubeError } from './testing/fake-cluster.ts'
import type { Collector } from './types.ts'

const collect = (collector: Collector, objects: NonNullable<FakeCluster['objects']>) =>
  collectOnce(collector, fakeCluster({ objects }))

/** Shape of OpenShift 4.17 objects, trimmed. */
const clusterVersion: KubeObject = {
  metadata: { name: 'version' },
  spec: { channel: 'stable-4.17', clusterID: '0b6a' },
  status: {
    desired: { version: '4.17.9', image: 'quay.example/release@sha256:1' },
    availableUpdates: [{ version: '4.17.12' }, { version: '4.17.10' }],
    history: [{ state: 'Partial', startedTime: '2026-01-01T00:00:00Z', completionTime: null }, { state: 'Completed' }],
    conditions: [{ type: 'Available', status: 'True', lastTransitionTime: 'yesterday' }],
  },
}
const route = (host: string, tls: boolean): KubeObject => ({
  metadata: { name: 'console', namespace: 'openshift-console' },
  spec: { host, ...(tls && { tls: {} }) },
})

describe('clusterCollector', () => {
  it('reads version and platform of a plain cluster, and guesses no console', async () => {
    expect(await collect(clusterCollector, {})).toMatchObject({
      cluster: [
        {
          distribution: 'kubernetes',
          version: 'v1.33.1',
          platform: 'linux/amd64',
          consoleUrl: null,
          apiUrl: 'https://api.west.example.com:6443',
        },
      ],
    })
  })

  const claim = (name: string, value: string, labels = {}): KubeObject => ({
    metadata: { name, labels },
    spec: { value },
  })
  const kubeSystem: KubeObject = { metadata: { name: 'kube-system', uid: 'uid-1' } }
  const claimsOf = async (objects: NonNullable<FakeCluster['objects']>) => {
    const { cluster } = (await collect(memberClusterCollector({ 'rights.clusterpulse.io': 'observe' }), objects)) as {
      readonly cluster: readonly { readonly claims?: Readonly<Record<string, string>> }[]
    }
    return cluster[0]?.claims
  }

  it('reads what a member claims, and adds what nobody needs to claim', async () => {
    const clusterclaims = [
      claim('zone', 'a'),
      claim('empty', ''),
      claim('secret-of-home', 'x', { 'open-cluster-management.io/spoke-only': '' }),
      claim('rights.clusterpulse.io', 'full'),
      claim('product.open-cluster-management.io', 'Mine'),
    ]
    expect(await claimsOf({ clusterclaims, namespaces: [kubeSystem] })).toEqual({
      'id.k8s.io': 'uid-1',
      'kubeversion.open-cluster-management.io': 'v1.33.1',
      'product.open-cluster-management.io': 'Mine',
      'rights.clusterpulse.io': 'observe',
      zone: 'a',
    })
    expect(await claimsOf({ clusterversions: [clusterVersion], namespaces: [kubeSystem] })).toMatchObject({
      'id.k8s.io': '0b6a',
    })
  })

  it('tells claims that may not be read from none, and a cluster without the kind is as good as others', async () => {
    expect(await claimsOf({ clusterclaims: kubeError('forbidden') })).toBeUndefined()
    expect(await claimsOf({ namespaces: kubeError('forbidden') })).toEqual({
      'kubeversion.open-cluster-management.io': 'v1.33.1',
      'rights.clusterpulse.io': 'observe',
    })
  })

  it.each([
    ['v1.30.1-eks-a5df82a', 'EKS'],
    ['v1.29.3-gke.1093000', 'GKE'],
    ['v1.33.1+k3s1', 'K3s'],
    ['v1.33.1', undefined],
  ])('knows the distribution by the version %s', (version, product) => expect(productOf(version)).toBe(product))

  it('reads an OpenShift cluster', async () => {
    const objects = { clusterversions: [clusterVersion], routes: [route('console.west', true)] }
    expect(await collect(clusterCollector, objects)).toEqual({
      cluster: [
        {
          name: 'cluster',
          apiUrl: 'https://api.west.example.com:6443',
          distribution: 'openshift',
          version: '4.17.9',
          platform: 'OpenShift',
          channel: 'stable-4.17',
          clusterId: '0b6a',
          image: 'quay.example/release@sha256:1',
          updateVersion: '4.17.12',
          versionState: 'Partial',
          versionStartedAt: Date.UTC(2026, 0, 1),
          versionCompletedAt: null,
          consoleUrl: 'https://console.west',
          conditions: [{ type: 'Available', status: 'True', reason: '', message: '', lastTransitionAt: null }],
        },
      ],
    })
  })

  it('still tells the distribution where the ClusterVersion may not be read', async () => {
    const result = await collect(clusterCollector, { clusterversions: kubeError('forbidden') })
    expect(result).toMatchObject({ cluster: [{ distribution: 'openshift', version: 'v1.33.1', channel: null }] })
  })

  it('fails where the cluster does not answer, instead of calling it plain', async () => {
    await expect(collect(clusterCollector, { clusterversions: kubeError('unreachable') })).rejects.toMatchObject({
      reason: 'unreachable',
    })
  })

  it.each([
    ['its route', route('c.example', true), 'https://x', 'https://c.example'],
    ['its route without TLS', route('c.example', false), 'https://x', 'http://c.example'],
    [
      'the pattern of installers',
      undefined,
      'https://api.west.example.com:6443',
      'https://console-openshift-console.apps.west.example.com',
    ],
    ['nothing where the address follows no pattern', undefined, 'https://10.0.0.1:6443', null],
    // What a member calls its host must not become another address, nor anything but a host.
    ['no route that names a user', route('console.west@evil.example', true), 'https://x', null],
    ['no route that names a path', route('evil.example/#', true), 'https://x', null],
    ['no route that is markup', route('"><script>', true), 'https://x', null],
  ])('finds the console by %s', (_, object, endpoint, url) => expect(consoleUrl(object, endpoint)).toBe(url))

  it('reads a ClusterVersion without anything in it', () => {
    expect(openShiftVersion({ metadata: { name: 'version' } })).toMatchObject({
      version: null,
      updateVersion: null,
      conditions: [],
    })
  })
})

const condition = (type: string, status: string, message = '', reason = '', at = '2026-01-01T00:00:00Z') => ({
  type,
  status,
  message,
  reason,
  lastTransitionTime: at,
})
const anOperator = (conditions: object[], versions: object[] = []): KubeObject => ({
  metadata: { name: 'dns' },
  status: { conditions, versions },
})

describe('clusterOperatorSnapshot', () => {
  it.each<[string, object[], object]>([
    [
      'healthy without message',
      [condition('Available', 'True', 'fine'), condition('Degraded', 'False', 'fine')],
      { available: true, degraded: false, message: '', reason: '' },
    ],
    [
      'unavailable with its reason',
      [condition('Available', 'False', 'gone', 'Gone')],
      { available: false, message: 'gone', reason: 'Gone' },
    ],
    [
      'degraded over unavailable, coming later',
      [condition('Available', 'False', 'gone', 'G'), condition('Degraded', 'True', 'bad', 'B')],
      { message: 'bad', reason: 'B' },
    ],
    [
      'unavailable over degraded, coming later',
      [condition('Degraded', 'True', 'bad', 'B'), condition('Available', 'False', 'gone', 'G')],
      { message: 'gone', reason: 'G' },
    ],
    [
      'progress where nothing is wrong, without its reason',
      [condition('Available', 'True'), condition('Progressing', 'True', 'going', 'P')],
      { progressing: true, message: 'going', reason: '' },
    ],
    [
      'no progress message over a trouble before',
      [condition('Degraded', 'True', 'bad', 'B'), condition('Progressing', 'True', 'going')],
      { message: 'bad' },
    ],
    [
      'trouble without message as a flag only',
      [condition('Degraded', 'True')],
      { degraded: true, message: '', reason: '' },
    ],
    ['upgradeable', [condition('Upgradeable', 'True')], { upgradeable: true }],
    [
      'Unknown as not available',
      [condition('Available', 'Unknown', 'who knows')],
      { available: false, message: 'who knows' },
    ],
  ])('says %s', (_, conditions, expected) =>
    expect(clusterOperatorSnapshot(anOperator(conditions))).toMatchObject(expected),
  )

  it.each<[string, object[], string]>([
    [
      'called operator',
      [
        { name: 'coredns', version: '1' },
        { name: 'operator', version: '2' },
      ],
      '2',
    ],
    [
      'called like the object, the last such',
      [
        { name: 'operator', version: '2' },
        { name: 'dns', version: '3' },
      ],
      '3',
    ],
    [
      'that comes first, else',
      [
        { name: 'a', version: '1' },
        { name: 'b', version: '2' },
      ],
      '1',
    ],
    ['that is none', [], ''],
  ])('takes the version %s', (_, versions, version) =>
    expect(clusterOperatorSnapshot(anOperator([], versions)).version).toBe(version),
  )

  it('keeps the latest transition, and none where none is told', () => {
    const two = [
      condition('A', 'True', '', '', '2026-01-01T00:00:00Z'),
      condition('B', 'True', '', '', '2026-02-01T00:00:00Z'),
      condition('C', 'True', '', '', 'soon'),
    ]
    expect(clusterOperatorSnapshot(anOperator(two)).lastTransitionAt).toBe(Date.UTC(2026, 1, 1))
    expect(clusterOperatorSnapshot({ metadata: { name: 'new' } })).toMatchObject({
      name: 'new',
      available: false,
      lastTransitionAt: null,
      conditions: [],
    })
  })
})

describe('clusterOperatorCollector', () => {
  it('is absent on other clusters, which is not the same as none', async () => {
    expect(await collect(clusterOperatorCollector, {})).toHaveProperty('absent')
    expect(await collect(clusterOperatorCollector, { clusteroperators: [] })).toEqual({ clusterOperator: [] })
  })

  it('sorts by name', async () => {
    const objects = { clusteroperators: ['b', 'c', 'a'].map((name) => ({ metadata: { name } })) }
    expect(await collect(clusterOperatorCollector, objects)).toMatchObject({
      clusterOperator: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
    })
  })
})

const aSubscription = (name: string, installedCSV: string, env: object[] = []): KubeObject => ({
  metadata: { name, namespace: 'ops' },
  spec: { config: { env } },
  status: { installedCSV },
})
const aCsv = (
  name: string,
  over: { modes?: string[]; targets?: string; phase?: string; namespace?: string; spec?: null } = {},
): KubeObject => ({
  metadata: {
    name,
    namespace: over.namespace ?? 'ops',
    creationTimestamp: '2026-01-01T00:00:00Z',
    annotations: over.targets === undefined ? {} : { 'olm.targetNamespaces': over.targets },
  },
  ...(over.spec !== null && {
    spec: {
      displayName: 'Pipes',
      version: '1.2.3',
      provider: { name: 'Acme' },
      installModes: [
        { type: 'OwnNamespace', supported: true },
        { type: 'AllNamespaces', supported: (over.modes ?? []).includes('AllNamespaces') },
      ],
    },
  }),
  status: { phase: over.phase, lastUpdateTime: '2026-02-01T00:00:00Z' },
})
const operatorsOf = async (subscriptions: KubeObject[], clusterserviceversions: KubeObject[]) =>
  ((await collect(operatorCollector, { subscriptions, clusterserviceversions })) as { operator: object[] }).operator

describe('operatorCollector', () => {
  it('joins subscriptions with what they installed', async () => {
    expect(
      await operatorsOf(
        [aSubscription('pipes', 'pipes.v1.2.3')],
        [aCsv('pipes.v1.2.3', { phase: 'Succeeded' }), aCsv('other.v1')],
      ),
    ).toEqual([
      {
        name: 'ops/pipes.v1.2.3',
        csv: 'pipes.v1.2.3',
        displayName: 'Pipes',
        version: '1.2.3',
        provider: 'Acme',
        status: 'Succeeded',
        namespace: 'ops',
        installModes: ['OwnNamespace'],
        installMode: 'SingleNamespace',
        clusterWide: false,
        availableInNamespaces: ['ops'],
        createdAt: Date.UTC(2026, 0, 1),
        updatedAt: Date.UTC(2026, 1, 1),
      },
    ])
  })

  it.each<[string, object[], { modes?: string[]; targets?: string }, string[]]>([
    ['everywhere', [], { modes: ['AllNamespaces'], targets: 'a' }, ['*']],
    ['where the subscriber says', [{ name: 'WATCH_NAMESPACE', value: 'x, y' }], { targets: 'a' }, ['x', 'y']],
    ['where OLM noted', [], { targets: '"a,b"' }, ['a', 'b']],
    ['where it is installed, where OLM noted nothing', [], { targets: '' }, ['ops']],
    ['where it is installed, where OLM noted nothing in quotes', [], { targets: '""' }, ['ops']],
    [
      'where it is installed, where all is empty',
      [{ name: 'WATCH_NAMESPACE', value: ' , ' }],
      { targets: ' ' },
      ['ops'],
    ],
    [
      'where OLM noted, where the subscriber says nothing',
      [{ name: 'WATCH_NAMESPACE', value: '' }],
      { targets: 'a' },
      ['a'],
    ],
    ['where it is installed', [], {}, ['ops']],
  ])('works %s', async (_, env, csv, availableInNamespaces) => {
    expect(await operatorsOf([aSubscription('p', 'p.v1', env)], [aCsv('p.v1', csv)])).toMatchObject([
      { availableInNamespaces },
    ])
  })

  it('leaves out what is not installed, not there, elsewhere, or describes nothing', async () => {
    const subscriptions = [
      aSubscription('a', ''),
      aSubscription('b', 'b.v1'),
      aSubscription('c', 'c.v1'),
      aSubscription('d', 'd.v1'),
    ]
    expect(
      await operatorsOf(subscriptions, [aCsv('c.v1', { namespace: 'copied' }), aCsv('d.v1', { spec: null })]),
    ).toEqual([])
  })

  it('names a version two subscriptions installed once', async () => {
    expect(await operatorsOf([aSubscription('a', 'p.v1'), aSubscription('b', 'p.v1')], [aCsv('p.v1')])).toHaveLength(1)
  })

  it('keeps absent, none and forbidden apart', async () => {
    expect(await collect(operatorCollector, {})).toHaveProperty('absent')
    expect(await collect(operatorCollector, { subscriptions: [] })).toEqual({ operator: [] })
    await expect(collect(operatorCollector, { subscriptions: kubeError('forbidden') })).rejects.toMatchObject({
      reason: 'forbidden',
    })
    const csvsForbidden = {
      subscriptions: [aSubscription('a', 'a.v1')],
      clusterserviceversions: kubeError('forbidden'),
    }
    await expect(collect(operatorCollector, csvsForbidden)).rejects.toMatchObject({ reason: 'forbidden' })
  })

  it('calls a version without phase Unknown', () => expect(csvFacts(aCsv('p.v1')).operator?.status).toBe('Unknown'))
})

describe('namespaces and deployments', () => {
  it('are read with their numbers, absent ones as zero', async () => {
    const deployments = [{ metadata: { name: 'web', namespace: 'shop' }, spec: {}, status: { readyReplicas: 1 } }]
    const namespaces = [{ metadata: { name: 'shop', labels: { team: 'a' } }, status: { phase: 'Terminating' } }]
    expect(await collect(deploymentCollector, { deployments })).toEqual({
      deployment: [{ name: 'shop/web', namespace: 'shop', replicas: 1, ready: 1, available: 0, updated: 0 }],
    })
    expect(await collect(namespaceCollector, { namespaces })).toEqual({
      namespace: [{ name: 'shop', phase: 'Terminating', createdAt: null, labels: { team: 'a' } }],
    })
  })
})
