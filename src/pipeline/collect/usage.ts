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
const measuredNodes = listOf(nodeMetrics, polled)
const measuredPods = listOf(podMetrics, polled)

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

interface Spec {
  readonly id: SourceId
  readonly fields: readonly string[]
  readonly measured: Read<KubeObject>
  readonly disks: Read<Disks> | undefined
  readonly own: OwnCollector['own']
  readonly rowsOf: (measured: Iterable<KubeObject>, disks: Disks) => Found
}

function collector({ id, fields: names, measured, disks, own, rowsOf }: Spec): OwnCollector {
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

function usageFold(
  names: readonly string[],
  measured: Read<KubeObject>,
  disks: Read<Disks> | undefined,
  rowsOf: Spec['rowsOf'],
): Fold {
  const usage = new Measured()
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

/** Objects of the metrics API, by name: none changes its namespace. */
class Measured implements Taker<KubeObject> {
  isServed = true
  readonly #all = new Map<string, KubeObject>()

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<KubeObject> {
    return this.#all.values()
  }

  reset(): void {
    this.#all.clear()
    this.isServed = true
  }

  changed(before: KubeObject | undefined, after: KubeObject | undefined): void {
    if (before) this.#all.delete(idOf(before))
    if (after) this.#all.set(idOf(after), after)
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

const idOf = ({ metadata }: KubeObject): string => tableRowId(text(metadata?.namespace), text(metadata?.name))

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

interface Fault {
  readonly namespace: string
  readonly name: string
  readonly quantity: unknown
}

const MAX_QUANTITY = 40

const unreadable = ({ namespace, name, quantity }: Fault): RowsError => ({
  namespace,
  outcome: 'absent',
  code: 'quantity_unreadable',
  message: `${tableRowId(namespace, name)} is left out: ${JSON.stringify(quantity ?? null).slice(0, MAX_QUANTITY)} is no quantity`,
})

const NO_LABELS: TableRow['labels'] = Object.freeze({})
/** A slash would make two rows one; no API server gives such a name. */
const isName = (name: string): boolean => name !== '' && !name.includes('/')

/** Nodes that are measured, and those of which a kubelet told its disk. */
function nodeRows(measured: Iterable<KubeObject>, { nodes }: Disks): Found {
  const rows = new Map<string, TableRow>()
  const faults: Fault[] = []
  const put = (name: string, values: TableRow['values']) => {
    const disk = nodes.get(name)
    const diskValues = { diskCapacity: disk?.capacityBytes ?? null, diskUsed: disk?.usedBytes ?? null }
    rows.set(name, { namespace: '', name, labels: NO_LABELS, values: { ...values, ...diskValues } })
  }
  for (const name of nodes.keys()) if (isName(name)) put(name, NOT_MEASURED)
  for (const { metadata, usage } of measured) {
    const name = text(metadata?.name)
    if (!isName(name)) continue
    const { cpu, memory } = fields(usage)
    const used = amountOf(cpu, memory)
    if ('fault' in used) faults.push({ namespace: '', name, quantity: used.fault })
    else {
      const { cpuUsed, memoryUsed } = used
      put(name, { cpuText: text(cpu), memoryText: text(memory), cpuUsed, memoryUsed })
    }
  }
  return { rows: [...rows.values()], faults }
}

const NOT_MEASURED = { cpuText: null, memoryText: null, cpuUsed: null, memoryUsed: null }

/** Pods that are measured: their containers together. A pod without containers has said nothing. */
function podRows(measured: Iterable<KubeObject>, { pods }: Disks): Found {
  const rows: TableRow[] = []
  const faults: Fault[] = []
  for (const { metadata, containers } of measured) {
    const [namespace, name] = [text(metadata?.namespace), text(metadata?.name)]
    if (!isName(name) || namespace.includes('/')) continue
    const sums = { cpuUsed: 0, cpuMillicores: 0, memoryUsed: 0 }
    let fault: { readonly quantity: unknown } | undefined
    for (const container of items(containers)) {
      const { cpu, memory } = fields(container.usage)
      const used = amountOf(cpu, memory)
      if ('fault' in used) {
        fault = { quantity: used.fault }
        break
      }
      sums.cpuUsed += used.cpuUsed
      sums.cpuMillicores += used.cpuMillicores
      sums.memoryUsed += used.memoryUsed
    }
    if (fault) faults.push({ namespace, name, ...fault })
    else if (items(containers).length > 0)
      rows.push({
        namespace,
        name,
        labels: NO_LABELS,
        values: { ...sums, diskUsed: pods.get(tableRowId(namespace, name)) ?? null },
      })
  }
  return { rows, faults }
}

interface Amount {
  readonly cpuUsed: number
  readonly cpuMillicores: number
  readonly memoryUsed: number
}

/** Nobody uses less than nothing. */
function amountOf(cpu: unknown, memory: unknown): Amount | { readonly fault: unknown } {
  const [cpuUsed, cpuMillicores, memoryUsed] = [
    parseQuantity(text(cpu)),
    parseMillicores(text(cpu)),
    parseBytes(text(memory)),
  ]
  if (cpuUsed === undefined || cpuMillicores === undefined || cpuUsed < 0) return { fault: cpu }
  if (memoryUsed === undefined || memoryUsed < 0) return { fault: memory }
  return { cpuUsed, cpuMillicores, memoryUsed }
}
