import { type ClusterState, type NodeSnapshot, parseClusterName, type RowsState, Table } from '#model'
import { aNamespace, aNode, facts, T0 } from '../../state/test/fleet-words.ts'

/** One pod with what it uses, in a test's world. */
export interface PodWords {
  readonly namespace: string
  readonly name: string
  /** absent: the pod is measured, but its object is not known */
  readonly node?: string
  readonly cpuMillicores?: number | null
  readonly memoryUsed?: number | null
  readonly diskUsed?: number | null
  /** its object is there, and no usage of it, as of one that has finished */
  readonly unmeasured?: true
}

/** What the metrics API says of one node. */
export interface UsageWords {
  readonly cpuText?: string | null
  readonly memoryText?: string | null
  readonly diskCapacity?: number | null
  readonly diskUsed?: number | null
}

export interface MonitoredWords {
  readonly name?: string
  readonly nodes?: readonly NodeSnapshot[]
  readonly usage?: Readonly<Record<string, UsageWords>>
  readonly pods?: readonly PodWords[]
  /** labels by name; default: those of the pods, without labels */
  readonly namespaces?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly at?: number
  readonly outcome?: RowsState['outcome']
  readonly labels?: Readonly<Record<string, string>>
}

export function rowsState(source: string, rows: Table, at = T0, outcome: RowsState['outcome'] = 'complete'): RowsState {
  return {
    ...{ source, hash: 'hash', durationMs: 1, outcome, code: '', message: '', attemptedAt: at, rows },
    freshness: { observedAt: at, receivedAt: at, source: 'pull' },
    ...{ aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] },
  }
}

const table = <T extends object>(fields: readonly (keyof T & string)[], rows: Readonly<Record<string, T>>): Table =>
  Table.of(
    fields,
    Object.entries(rows).map(([id, values]) => {
      const [namespace = '', name = ''] = id.includes('/') ? id.split('/') : ['', id]
      return { namespace, name, labels: {}, values: { ...values } as Record<string, number | string | null> }
    }),
  )

/** A cluster as state has it, with usage. */
export function monitored(words: MonitoredWords = {}): ClusterState {
  const { nodes = [aNode('n1')], usage = {}, pods = [], at = T0, outcome } = words
  const namespaces = words.namespaces ?? Object.fromEntries(pods.map(({ namespace }) => [namespace, {}]))
  const part = <T extends { readonly name: string }>(items: readonly T[]) => ({
    ...{ outcome: 'complete' as const, code: '', message: '', attemptedAt: at },
    freshness: { observedAt: at, receivedAt: at, source: 'pull' as const },
    items: new Map(items.map((item) => [item.name, item])),
  })
  const podUsage = Object.fromEntries(
    pods
      .filter(({ unmeasured }) => unmeasured !== true)
      .map(({ namespace, name, node: _, ...used }) => [
        `${namespace}/${name}`,
        { cpuMillicores: 10, memoryUsed: 2 ** 20, diskUsed: 4096, ...used, cpuUsed: 0.01 },
      ]),
  )
  const nodeUsage = Object.fromEntries(
    Object.entries(usage).map(([name, used]) => [
      name,
      { cpuText: '250000000n', memoryText: '4Gi', diskCapacity: 1000, diskUsed: 250, ...used },
    ]),
  )
  const placed = Object.fromEntries(
    pods.flatMap(({ namespace, name, node }) => (node === undefined ? [] : [[`${namespace}/${name}`, { node }]])),
  )
  return {
    name: parseClusterName(words.name ?? 'west'),
    connection: facts({ labels: words.labels ?? {} }),
    status: { health: 'healthy', message: '', reasons: [], checkedAt: at, lastSyncAt: at },
    ...{ sequence: 1, origin: '', agent: null, source: 'pull' as const, heartbeats: [], events: [], version: 1 },
    parts: {
      node: part(nodes),
      namespace: part(Object.entries(namespaces).map(([name, labels]) => ({ ...aNamespace(name), labels }))),
    },
    tables: new Map(
      [
        rowsState('pods', table(['node'], placed), at),
        rowsState('node-usage', table(['cpuText', 'memoryText', 'diskCapacity', 'diskUsed'], nodeUsage), at, outcome),
        rowsState('pod-usage', table(['cpuUsed', 'cpuMillicores', 'memoryUsed', 'diskUsed'], podUsage), at, outcome),
      ].map((state) => [state.source, state]),
    ),
  }
}
