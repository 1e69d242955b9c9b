import { createHash } from 'node:crypto'
import { isKubeError, type KubeObject, nodeMetrics, podMetrics, type Resource } from '#kube'
import {
  parseBytes,
  parseMillicores,
  parseQuantity,
  ROWS_ERRORS_KEPT,
  type RowsError,
  type SourceId,
  seconds,
  Table,
  type TableRow,
  tableRowId,
} from '#model'
import { saidOf } from './collection.ts'
import { fed, foldOf, listOf, type Taker } from './fold.ts'
import { type Disks, type Kubelets, type KubeletWay, kubeletRead, kubeletRight, noDisks } from './kubelets.ts'
import { fields, items, text } from './read.ts'
import type { Collected, Fold, OwnCollector, Read } from './types.ts'

/*
 * What nodes and pods use, in tables of their own: it moves all the time and must touch neither the rows of pods nor those of nodes.
 *
 *   metrics.k8s.io nodes ┐                    metrics.k8s.io pods ┐
 *   kubelets (disks)     ┴→ node-usage        kubelets (disks)    ┴→ pod-usage
 *
 * One quantity that cannot be read costs its node or pod alone. Without the metrics API nothing is told, and the rows before stay.
 */

/** What nodes use: a row per node, in no namespace. */
export const NODE_USAGE: SourceId = 'node-usage'
/** What pods use: a row per pod. */
export const POD_USAGE: SourceId = 'pod-usage'

/** Texts as the metrics API gave them; cores; bytes. null: not measured, of disks not known. */
export const nodeUsageFields = ['cpuText', 'memoryText', 'cpuUsed', 'memoryUsed', 'diskCapacity', 'diskUsed'] as const
/** Cores; thousandths of a core, each container rounded up; bytes, each container rounded up; bytes of its ephemeral storage, null: not known. */
export const podUsageFields = ['cpuUsed', 'cpuMillicores', 'memoryUsed', 'diskUsed'] as const

/** As a plan names them. */
export const usageNames: readonly SourceId[] = [NODE_USAGE, POD_USAGE]

// What is measured cannot be watched.
const polled = { isOptional: true, isIsolated: true, verbs: ['get', 'list'] } as const
// What is taken of an object is all that is kept of it: a large cluster has many, and they come at once.
const measuredAs = <T>({ group, version, plural, kind, namespaced }: Resource, fromJson: (object: KubeObject) => T) =>
  listOf<T>({ group, version, plural, kind, namespaced, fromJson }, polled)
const measuredNodes = measuredAs(nodeMetrics, nodeUsage)
const measuredPods = measuredAs(podMetrics, podUsage)

/** What a member must allow for them. @param way how kubelets are asked; undefined: not at all */
export const usageRights = (
  way: KubeletWay | undefined,
): readonly Pick<Resource, 'group' | 'version' | 'kind' | 'plural'>[] => [
  nodeMetrics,
  podMetrics,
  ...(way ? [kubeletRight(way)] : []),
]

/** What is needed of a usage collector. */
export interface UsageOptions {
  /** time between two collections, ms */
  readonly refreshMs: number
  /** shared by both collectors of a cluster; absent: disks are not known */
  readonly kubelets?: Kubelets
}

/** One collection, the kubelets included, takes no longer. */
const LIMIT_MS = seconds(15)

/** The collectors of what is used on one cluster, read by themselves. */
export function usageCollectors({ refreshMs, kubelets }: UsageOptions): readonly OwnCollector[] {
  const disks = kubelets && kubeletRead(kubelets)
  const own = { intervalMs: refreshMs, timeoutMs: LIMIT_MS }
  return [
    collector({ id: NODE_USAGE, fields: nodeUsageFields, measured: measuredNodes, disks, own, rowsOf: nodeRows }),
    collector({ id: POD_USAGE, fields: podUsageFields, measured: measuredPods, disks, own, rowsOf: podRows }),
  ]
}

interface Spec<T> {
  readonly id: SourceId
  readonly fields: readonly string[]
  readonly measured: Read<T>
  readonly disks: Read<Disks> | undefined
  readonly own: OwnCollector['own']
  readonly rowsOf: (measured: Iterable<T>, disks: Disks) => Found
}

function collector<T extends Key>({ id, fields: names, measured, disks, own, rowsOf }: Spec<T>): OwnCollector {
  return {
    name: id,
    types: [],
    rows: { id, hash: hashOf(id, names) },
    reads: disks ? [measured, disks] : [measured],
    critical: false,
    own,
    open: () => usageFold(names, measured, disks, rowsOf),
  }
}

const hashOf = (id: SourceId, names: readonly string[]): string =>
  createHash('sha256')
    .update(JSON.stringify([id, names]))
    .digest('hex')
    .slice(0, 16)

function usageFold<T extends Key>(
  names: readonly string[],
  measured: Read<T>,
  disks: Read<Disks> | undefined,
  rowsOf: Spec<T>['rowsOf'],
): Fold {
  const usage = new Measured<T>()
  const known = new KnownDisks()
  const { take } = foldOf([fed(measured, usage), ...(disks ? [fed(disks, known)] : [])], () => ({}))
  return {
    take,
    parts: () => (usage.isServed ? collected(names, rowsOf(usage.values(), known.disks), known.disks) : absent),
    get size() {
      return usage.size
    },
  }
}

const absent = { absent: 'the cluster serves no metrics.k8s.io: no metrics server runs there' }

function collected(names: readonly string[], { rows, faults }: Found, disks: Disks): Collected {
  const errors = [...disks.errors, ...faults.map(unreadable)]
  return {
    rows: {
      rows: Table.of(names, rows),
      aggregations: {},
      truncated: false,
      errors: errors.slice(0, ROWS_ERRORS_KEPT),
      errorCount: disks.faultCount + faults.length,
      reports: [],
    },
  }
}

interface Key {
  readonly namespace: string
  readonly name: string
}

/** What is taken of objects of the metrics API, by name: none changes its namespace. */
class Measured<T extends Key> implements Taker<T> {
  isServed = true
  readonly #all = new Map<string, T>()

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<T> {
    return this.#all.values()
  }

  reset(): void {
    this.#all.clear()
    this.isServed = true
  }

  changed(before: T | undefined, after: T | undefined): void {
    if (before) this.#all.delete(tableRowId(before.namespace, before.name))
    if (after) this.#all.set(tableRowId(after.namespace, after.name), after)
  }

  absent(): void {
    this.reset()
    this.isServed = false
  }

  failed(error: unknown): void {
    // An API that is registered and has nobody behind it says it is not found where discovery was asked before.
    if (!isKubeError(error, 'not_found')) throw error
    this.absent()
  }
}

class KnownDisks implements Taker<Disks> {
  disks: Disks = noDisks

  reset(): void {
    this.disks = noDisks
  }

  changed(_: Disks | undefined, after: Disks | undefined): void {
    this.disks = after ?? noDisks
  }

  /** Without disks the rest is worth as much. */
  failed(error: unknown): void {
    this.disks = { ...noDisks, errors: [{ namespace: '', ...saidOf(error) }], faultCount: 1 }
  }
}

interface Found {
  readonly rows: readonly TableRow[]
  /** whose quantities cannot be read, and the first of them */
  readonly faults: readonly Fault[]
}

interface Fault extends Key {
  /** what is no quantity, as JSON */
  readonly fault: string
}

const MAX_QUANTITY = 40

const unreadable = ({ namespace, name, fault }: Fault): RowsError => ({
  namespace,
  outcome: 'absent',
  code: 'quantity_unreadable',
  message: `${tableRowId(namespace, name)} is left out: ${fault} is no quantity`,
})

const NO_LABELS: TableRow['labels'] = Object.freeze({})
/** A slash would make two rows one; no API server gives such a name. */
const isName = (name: string): boolean => name !== '' && !name.includes('/')

interface NodeUsage extends Key {
  readonly cpuText: string
  readonly memoryText: string
  readonly used: Amount | string
}

function nodeUsage({ metadata, usage }: KubeObject): NodeUsage {
  const { cpu, memory } = fields(usage)
  const written = { cpuText: text(cpu), memoryText: text(memory) }
  return { namespace: '', name: text(metadata.name), ...written, used: amountOf(cpu, memory) }
}

/** Nodes that are measured, and those of which a kubelet told its disk. */
function nodeRows(measured: Iterable<NodeUsage>, { nodes }: Disks): Found {
  const rows = new Map<string, TableRow>()
  const faults: Fault[] = []
  const put = (name: string, values: TableRow['values']) => {
    const disk = nodes.get(name)
    const diskValues = { diskCapacity: disk?.capacityBytes ?? null, diskUsed: disk?.usedBytes ?? null }
    rows.set(name, { namespace: '', name, labels: NO_LABELS, values: { ...values, ...diskValues } })
  }
  for (const name of nodes.keys()) if (isName(name)) put(name, NOT_MEASURED)
  for (const { namespace, name, cpuText, memoryText, used } of measured) {
    if (!isName(name)) continue
    if (typeof used === 'string') faults.push({ namespace, name, fault: used })
    else put(name, { cpuText, memoryText, cpuUsed: used.cpuUsed, memoryUsed: used.memoryUsed })
  }
  return { rows: [...rows.values()], faults }
}

const NOT_MEASURED = { cpuText: null, memoryText: null, cpuUsed: null, memoryUsed: null }

interface PodUsage extends Key {
  /** of its containers together; what is no quantity, of the first that has such; null: it has no container, and said nothing */
  readonly used: Amount | string | null
}

function podUsage({ metadata, containers }: KubeObject): PodUsage {
  const key = { namespace: text(metadata.namespace), name: text(metadata.name) }
  const all = items(containers)
  if (all.length === 0) return { ...key, used: null }
  let [cpuUsed, cpuMillicores, memoryUsed] = [0, 0, 0]
  for (const { usage } of all) {
    const { cpu, memory } = fields(usage)
    const used = amountOf(cpu, memory)
    if (typeof used === 'string') return { ...key, used }
    cpuUsed += used.cpuUsed
    cpuMillicores += used.cpuMillicores
    memoryUsed += used.memoryUsed
  }
  return { ...key, used: { cpuUsed, cpuMillicores, memoryUsed } }
}

/** Pods that are measured. */
function podRows(measured: Iterable<PodUsage>, { pods }: Disks): Found {
  const rows: TableRow[] = []
  const faults: Fault[] = []
  for (const { namespace, name, used } of measured) {
    if (!isName(name) || namespace.includes('/') || used === null) continue
    if (typeof used === 'string') faults.push({ namespace, name, fault: used })
    else {
      const values = { ...used, diskUsed: pods.get(tableRowId(namespace, name)) ?? null }
      rows.push({ namespace, name, labels: NO_LABELS, values })
    }
  }
  return { rows, faults }
}

interface Amount {
  readonly cpuUsed: number
  readonly cpuMillicores: number
  readonly memoryUsed: number
}

/** Nobody uses less than nothing. @returns what is no quantity, as JSON, where one is none */
function amountOf(cpu: unknown, memory: unknown): Amount | string {
  const [cpuUsed, cpuMillicores, memoryUsed] = [
    parseQuantity(text(cpu)),
    parseMillicores(text(cpu)),
    parseBytes(text(memory)),
  ]
  if (cpuUsed === undefined || cpuMillicores === undefined || cpuUsed < 0) return faultOf(cpu)
  if (memoryUsed === undefined || memoryUsed < 0) return faultOf(memory)
  return { cpuUsed, cpuMillicores, memoryUsed }
}

const faultOf = (quantity: unknown): string => JSON.stringify(quantity ?? null).slice(0, MAX_QUANTITY)
