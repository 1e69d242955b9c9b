import { NODE_USAGE } from '#collect'
import type { NodeSnapshot } from '#model'
import { targetOf } from './define.ts'
import { defineSnapshotKind } from './define-snapshot-kind.ts'
import { snapshotCreatedAt } from './read.ts'

const readyWord = { ready: 'Ready', notReady: 'NotReady', unknown: 'Unknown' } as const

/** Nodes with the sums of their pods. */
export const nodes = defineSnapshotKind({
  type: 'node',
  name: 'nodes',
  singular: 'node',
  shortNames: ['no'],
  title: 'Nodes',
  target: targetOf('v1', 'Node', 'nodes', 'Cluster'),
  labels: ({ labels }) => labels,
  countBy: 'status',
  measured: {
    source: NODE_USAGE,
    columns: {
      cpuUsed: { label: 'CPU used', unit: 'cores', isExtra: true },
      memoryUsed: { label: 'Memory used', unit: 'bytes', isExtra: true },
      diskUsed: { label: 'Disk used', unit: 'bytes', isExtra: true, amount: { of: 'Disk', what: 'used' } },
      diskCapacity: { label: 'Disk capacity', unit: 'bytes', isExtra: true, amount: { of: 'Disk', what: 'capacity' } },
    },
  },
  sort: 'status',
  columns: {
    status: {
      label: 'Status',
      kind: 'string',
      health: {
        Ready: 'healthy',
        NotReady: 'unhealthy',
        'NotReady,SchedulingDisabled': 'unhealthy',
        Unknown: 'unknown',
      },
      read: ({ ready, unschedulable }) => `${readyWord[ready]}${unschedulable ? ',SchedulingDisabled' : ''}`,
    },
    role: { label: 'Roles', kind: 'any', read: ({ roles }) => roles },
    cpu: {
      label: 'CPU',
      kind: 'number',
      unit: 'percent',
      isRestricted: true,
      amount: { of: 'CPU', what: 'share' },
      read: (node) => load(node, 'cpuCores'),
    },
    memory: {
      label: 'Memory',
      kind: 'number',
      unit: 'percent',
      isRestricted: true,
      amount: { of: 'Memory', what: 'share' },
      read: (node) => load(node, 'memoryBytes'),
    },
    pods: {
      label: 'Pods',
      kind: 'number',
      isRestricted: true,
      amount: { of: 'Pods', what: 'used' },
      read: ({ pods }) => pods?.total ?? null,
    },
    version: {
      label: 'Kubelet',
      kind: 'string',
      isVersion: true,
      absence: 'unknown',
      read: ({ kubeletVersion }) => kubeletVersion || null,
    },
    cordoned: { label: 'Cordoned', kind: 'boolean', isExtra: true, read: ({ unschedulable }) => unschedulable },
    pressure: {
      label: 'Pressure',
      kind: 'any',
      read: ({ conditions }) =>
        conditions.filter(({ type, status }) => type !== 'Ready' && status === 'True').map(({ type }) => type),
    },
    createdAt: snapshotCreatedAt,
    ...amounts('cpu', 'CPU', 'cores', 'cpuCores'),
    ...amounts('memory', 'Memory', 'bytes', 'memoryBytes'),
    storageAllocatable: {
      ...{ label: 'Storage allocatable', kind: 'number', unit: 'bytes', isExtra: true },
      amount: { of: 'Storage', what: 'allocatable' },
      read: ({ allocatable }) => allocatable.storageBytes,
    },
    storageCapacity: {
      ...{ label: 'Storage capacity', kind: 'number', unit: 'bytes', isExtra: true },
      amount: { of: 'Storage', what: 'capacity' },
      read: ({ capacity }) => capacity.storageBytes,
    },
    podsAllocatable: {
      ...{ label: 'Pods allocatable', kind: 'number', isExtra: true },
      amount: { of: 'Pods', what: 'allocatable' },
      read: ({ allocatable }) => allocatable.pods,
    },
    podsCapacity: {
      ...{ label: 'Pods capacity', kind: 'number', isExtra: true },
      amount: { of: 'Pods', what: 'capacity' },
      read: ({ capacity }) => capacity.pods,
    },
    podPhases: { label: 'Pods by phase', kind: 'any', isExtra: true, read: ({ pods }) => pods },
    conditions: { label: 'Conditions', kind: 'any', isExtra: true, read: ({ conditions }) => conditions },
    taints: { label: 'Taints', kind: 'any', isExtra: true, read: ({ taints }) => taints },
    arch: text('Architecture', 'architecture'),
    os: text('OS', 'osImage'),
    kernel: text('Kernel', 'kernelVersion'),
    runtime: text('Runtime', 'containerRuntime'),
    hostname: text('Hostname', 'hostname'),
    ip: text('Internal address', 'internalIp'),
    externalIp: { ...text('External address', 'externalIp'), absence: 'none' },
    images: {
      label: 'Images',
      kind: 'number',
      isExtra: true,
      absence: 'unknown',
      read: ({ imagesCount }) => imagesCount,
    },
    volumes: {
      label: 'Volumes attached',
      kind: 'number',
      isExtra: true,
      absence: 'unknown',
      read: ({ volumesAttached }) => volumesAttached,
    },
    annotations: { label: 'Annotations', kind: 'any', isExtra: true, read: ({ annotations }) => annotations },
  },
})

type Amount = 'cpuCores' | 'memoryBytes'

/** Of what may be given to pods: what is used, else what was asked for. */
function load({ used, requested, allocatable, capacity }: NodeSnapshot, what: Amount): number | null {
  const amount = used?.[what] ?? requested?.[what] ?? null
  const limit = allocatable[what] ?? capacity[what]
  return amount === null || limit === null || limit <= 0 ? null : (amount / limit) * 100
}

function amounts(name: string, label: string, unit: 'cores' | 'bytes', what: Amount) {
  const column = (
    part: 'Used' | 'Requested' | 'Allocatable' | 'Capacity',
    read: (node: NodeSnapshot) => number | null,
  ) => {
    const what = part.toLowerCase() as Lowercase<typeof part>
    return [
      `${name}${part}`,
      {
        ...{ label: `${label} ${what}`, kind: 'number', unit, isExtra: true, isRestricted: true },
        ...{ amount: { of: label, what }, read },
      },
    ] as const
  }
  return Object.fromEntries([
    column('Used', ({ used }) => used?.[what] ?? null),
    column('Requested', ({ requested }) => requested?.[what] ?? null),
    column('Allocatable', ({ allocatable }) => allocatable[what]),
    column('Capacity', ({ capacity }) => capacity[what]),
  ]) as Record<string, ReturnType<typeof column>[1]> & object
}

type TextField = { [K in keyof NodeSnapshot]: NodeSnapshot[K] extends string ? K : never }[keyof NodeSnapshot]

function text(label: string, field: TextField) {
  return {
    label,
    kind: 'string',
    isExtra: true,
    absence: 'unknown',
    read: (node: NodeSnapshot) => node[field] || null,
  } as const
}
