import type { PolicyDocument } from '#access'
import {
  type ClusterOperatorSnapshot,
  type DeploymentSnapshot,
  type NamespaceSnapshot,
  type NodeSnapshot,
  type OperatorSnapshot,
  type Part,
  type PodCounts,
  parseClusterName,
  type SampleGroup,
} from '#model'
import { allow, but, within } from './policies.ts'
import { aRow, aSource, GivenCatalog, seenBy } from './sources.ts'
import { aNode, aWorld, complete, failed, proxy, start, type World, type WorldConfig } from './world.ts'

// A fleet of which Ann sees a part. Everything she does not see is called canary, counts 7919, and may be there or not.

const canaryCount = 7919
export const canary = /canary|7919/i

/** Ann sees a part of `west`, all of `plain`, and nothing else; Bob all of `plain`; Cid `west` without measurements. */
export const policies: readonly PolicyDocument[] = [
  allow('ann-west', {
    users: ['ann'],
    clusters: ['west'],
    resources: [
      but('nodes', 'canary*'),
      but('namespaces', 'canary*'),
      but('operators', 'canary*', 'Canary*'),
      within('pods', 'shop*'),
      but('alerts', 'canary*'),
      but('events', 'canary*'),
      but('pvc', 'canary*'),
    ],
  }),
  allow('ann-plain', { users: ['ann', 'bob'], clusters: ['plain'] }),
  allow('cid', { clusters: ['west', 'plain'], metrics: false, resources: [{ type: 'pvc', visibility: 'all' }] }),
]

const pvc = aSource('pvc')
const secret = aSource('canary-type')

/** Claims, some of which are hidden from Ann; and a type of which only administrators know. */
function collect(world: World, { there, well }: Hidden): void {
  const shown = [
    aRow('shop', 'cart', { size: 10, phase: 'Bound' }),
    aRow('tools', 'cache', { size: 20, phase: 'Bound' }),
  ]
  const hidden = [
    aRow('canary-ns', 'canary', { size: canaryCount, phase: well ? 'Canary' : 'Lost' }, { canary: 'yes' }),
    aRow('shop', 'canary-claim', { size: canaryCount, phase: 'Canary' }),
  ]
  const error = { outcome: 'forbidden', code: 'forbidden', message: 'no canary' } as const
  const errors = [{ ...error, namespace: 'shop' }, ...(there ? [{ ...error, namespace: 'canary-ns' }] : [])]
  const changes = { errors, errorCount: errors.length }
  world.collected('west', seenBy(pvc, there ? [...shown, ...hidden] : shown, changes))
  world.collected('plain', seenBy(pvc, shown))
  if (!there) return
  for (const cluster of ['west', 'plain', 'canary-cluster']) world.collected(cluster, seenBy(secret, hidden))
  world.collected('canary-cluster', seenBy(pvc, hidden))
}

export const pods = (running: number, pending = 0): PodCounts => ({
  total: running + pending,
  running,
  pending,
  failed: 0,
  succeeded: 0,
  unknown: 0,
})

export const namespace = (name: string, phase = 'Active'): NamespaceSnapshot => ({
  name,
  phase,
  createdAt: start,
  labels: {},
})

export const deployment = (namespace: string, name: string, ready = 1): DeploymentSnapshot => ({
  name: `${namespace}/${name}`,
  namespace,
  replicas: 1,
  ready,
  available: ready,
  updated: 1,
})

export const operator = (
  namespace: string,
  csv: string,
  changes: Partial<OperatorSnapshot> = {},
): OperatorSnapshot => ({
  name: `${namespace}/${csv}`,
  csv,
  displayName: csv,
  version: '1.0.0',
  provider: 'us',
  status: 'Succeeded',
  namespace,
  installModes: ['OwnNamespace'],
  installMode: 'OwnNamespace',
  clusterWide: false,
  availableInNamespaces: [namespace],
  createdAt: start,
  updatedAt: start,
  ...changes,
})

export const clusterOperator = (
  name: string,
  changes: Partial<ClusterOperatorSnapshot> = {},
): ClusterOperatorSnapshot => ({
  name,
  version: '4.15.0',
  available: true,
  progressing: false,
  degraded: false,
  upgradeable: true,
  message: '',
  reason: '',
  lastTransitionAt: start,
  conditions: [],
  versions: [],
  relatedObjects: [],
  ...changes,
})

/** What is not shown to Ann: nothing, or something in one shape or another. */
export interface Hidden {
  readonly there: boolean
  /** everything hidden is well */
  readonly well: boolean
}

function nodes({ there, well }: Hidden): NodeSnapshot[] {
  const shown = [
    aNode('node-a', {
      used: { cpuCores: 1.5, memoryBytes: 2e9 },
      // Pods of other namespaces run there as well.
      pods: pods(there ? canaryCount : 3),
      requested: { cpuCores: there ? canaryCount : 1, memoryBytes: 3e9 },
    }),
    aNode('node-b', { ready: 'notReady', roles: ['infra'], pods: pods(2, 1) }),
  ]
  const capacity = { cpuCores: canaryCount, memoryBytes: canaryCount * 1e9, storageBytes: null, pods: canaryCount }
  const hidden = aNode('canary-node', {
    ready: well ? 'ready' : 'notReady',
    roles: ['control-plane', 'canary-role'],
    capacity,
    allocatable: capacity,
    requested: { cpuCores: canaryCount, memoryBytes: canaryCount },
    used: { cpuCores: canaryCount, memoryBytes: canaryCount },
    pods: pods(canaryCount),
    labels: { canary: 'yes' },
    internalIp: '10.79.19.1',
  })
  return there ? [...shown, hidden] : shown
}

function west(hidden: Hidden): readonly Part[] {
  const { there, well } = hidden
  const maybe = <T>(item: T): T[] => (there ? [item] : [])
  const byNamespace = {
    shop: pods(4),
    'shop-db': pods(1, 1),
    tools: pods(there ? canaryCount : 2),
    ...(there && { 'canary-ns': pods(canaryCount) }),
  }
  return [
    complete('cluster', [
      {
        name: 'cluster',
        apiUrl: 'https://west.example:6443',
        distribution: 'openshift',
        version: '4.15.0',
        platform: 'OpenShift',
        channel: 'stable-4.15',
        clusterId: 'the-id',
        image: null,
        updateVersion: null,
        versionState: 'Completed',
        versionStartedAt: null,
        versionCompletedAt: null,
        consoleUrl: null,
        conditions: [
          {
            type: 'Available',
            status: there && !well ? 'False' : 'True',
            reason: '',
            message: there ? 'Cluster operator canary-co is not available' : '',
            lastTransitionAt: start,
          },
        ],
      },
    ]),
    complete('node', nodes(hidden)),
    complete('namespace', [
      namespace('shop'),
      namespace('shop-db'),
      namespace('tools'),
      ...maybe(namespace('canary-ns', well ? 'Active' : 'Terminating')),
    ]),
    complete('deployment', [
      deployment('shop', 'web'),
      deployment('tools', 'ci', 0),
      ...maybe(deployment('canary-ns', 'canary', well ? 1 : 0)),
    ]),
    complete('podSummary', [
      {
        name: 'pods',
        counts: Object.values(byNamespace).reduce(
          (sum, { running, pending }) => pods(sum.running + running, sum.pending + pending),
          pods(0),
        ),
        unscheduled: there ? canaryCount : 0,
        byNamespace,
      },
    ]),
    complete('operator', [
      operator('shop', 'shop-operator.v1', { availableInNamespaces: ['shop', ...maybe('canary-ns')] }),
      ...maybe(operator('canary-ns', 'canary-operator.v1', { status: well ? 'Succeeded' : 'Failed' })),
    ]),
    complete('clusterOperator', [
      clusterOperator('dns', {
        relatedObjects: [
          { group: '', resource: 'namespaces', namespace: '', name: 'openshift-dns' },
          ...maybe({ group: 'apps', resource: 'daemonsets', namespace: 'canary-ns', name: 'dns' }),
        ],
      }),
      ...maybe(clusterOperator('canary-co', { degraded: !well, message: 'canary', available: well })),
    ]),
  ]
}

const alert = (name: string, labels: Readonly<Record<string, string>> = {}) => ({
  name,
  severity: 'warning',
  cluster: 'west',
  ...labels,
})

/** The same history twice over: rounds in which what is hidden comes, breaks, and is well again or not. */
export async function aHiddenWorld(hidden: Hidden, config: WorldConfig = {}): Promise<World> {
  const catalog = hidden.there ? new GivenCatalog(secret, pvc) : new GivenCatalog(pvc)
  const world = await aWorld({ identity: proxy, policies, ...config }, { catalog })
  collect(world, hidden)
  for (const cluster of ['west', 'plain', ...(hidden.there ? ['canary-cluster'] : [])]) await world.connect(cluster)
  await world.batch('plain', [
    complete('node', [aNode('p1'), aNode('p2', { ready: 'notReady' })]),
    complete('namespace', [namespace('shop')]),
  ])
  if (hidden.there) {
    world.told.alerts = [
      alert('canary-alert'),
      alert('disk', { namespace: 'canary-ns' }),
      alert('cpu', { node: 'canary-node' }),
      alert('slow', { namespace: 'shop' }),
    ]
    await world.batch('canary-cluster', [complete('node', [aNode('canary-node-2')])])
  } else world.told.alerts = [alert('slow', { namespace: 'shop' })]
  await world.batch('west', west({ ...hidden, well: true }))
  world.clock.at += 30_000
  await world.batch('west', west(hidden))
  world.clock.at += 30_000
  // A part whose fault tells a name.
  await world.batch('west', [...west(hidden).filter(({ type }) => type !== 'deployment'), fault(hidden)])
  await record(world, hidden)
  return world
}

const fault = ({ there }: Hidden): Part => {
  const part = failed('deployment', 'forbidden')
  return there ? ({ ...part, message: 'cannot list deployments in canary-ns' } as Part) : part
}

async function record({ clock, history }: World, { there }: Hidden): Promise<void> {
  const keys = ['node-a', 'node-b', ...(there ? ['canary-node'] : [])]
  const column = (metric: string, value: number) => ({
    metric: `clusterpulse_node_${metric}`,
    values: Float64Array.from(keys, (key) => (key.startsWith('canary') ? canaryCount : value)),
  })
  const groups: readonly SampleGroup[] = [
    {
      scope: 'node',
      keys,
      columns: [column('cpu_used', 1), column('pods_total', canaryCount), column('cpu_requested', canaryCount)],
    },
    {
      scope: 'cluster',
      keys: [''],
      columns: [{ metric: 'clusterpulse_cluster_pods_total', values: Float64Array.of(canaryCount) }],
    },
    {
      scope: 'custom',
      keys: [pvc.id, secret.id],
      columns: [
        { metric: 'clusterpulse_custom_resource_total', values: Float64Array.of(canaryCount, canaryCount) },
        { metric: 'clusterpulse_custom_resource_count', values: Float64Array.of(canaryCount, canaryCount) },
      ],
    },
  ]
  const at = clock.at - 60_000
  await history.append([
    { kind: 'samples', samples: { cluster: parseClusterName('west'), at, source: 'pull', repaired: false, groups } },
  ])
}
