import { type Collector, fed, foldOf, isForbidden, type OwnCollector, type Read, saidOf, type Taker } from '#collect'
import type { KubeObject } from '#kube'
import { ROWS_ERRORS_KEPT, type RowsError, Table } from '#model'
import { ChunkSums } from '../chunk-sums.ts'
import type { ResourceDescriptor, ResourceTarget, RowBuilder } from '../types.ts'
import { declaredResource, nameOf, servedAs } from './served-as.ts'

/**
 * A kind of row whose lists are read with the rounds of a cluster, and shared with whoever names the same reads.
 * @param reads one for each of its targets, in their order
 */
export function rowCollector(kind: ResourceDescriptor, reads: readonly Read<KubeObject>[]): Collector {
  const { collection } = kind
  const collector = collectorOf(kind, reads, false)
  const rows = { ...collector.rows, ifRefused: ownCollector(kind) }
  return { ...collector, rows, everyMs: () => collection.intervalMs }
}

/** A kind of row that is read by itself, in the namespaces it names and by its own times. */
export function ownCollector(kind: ResourceDescriptor): OwnCollector {
  const { intervalMs, timeoutMs } = kind.collection
  const reads = kind.targets.map((target) => ownRead(kind, target))
  return { ...collectorOf(kind, reads, true), own: { intervalMs, timeoutMs } }
}

function ownRead(kind: ResourceDescriptor, target: ResourceTarget): Read<KubeObject> {
  const { exactNamespaces, wantsAllNamespaces, wantsNamespace, labelSelector, collection } = kind
  const { batchSize, maxResources, retryAttempts, parallelism, watch } = collection
  return {
    resource: declaredResource(target),
    servedAs: (kube, signal) => servedAs(kube, target, signal),
    verbs: watch ? ['get', 'list', 'watch'] : ['get', 'list'],
    ...(labelSelector !== undefined && { labelSelector }),
    // One more than is kept tells whether something is left out.
    pageSize: wantsAllNamespaces || exactNamespaces ? Math.min(batchSize, maxResources + 1) : batchSize,
    namespaces: { exact: exactNamespaces, isAll: wantsAllNamespaces, wants: wantsNamespace, parallelism },
    attempts: retryAttempts,
    isIsolated: true,
  }
}

/** @param isPatient a list that is refused leaves those of other targets; of the only one, or of all, nothing is left */
function collectorOf(
  kind: ResourceDescriptor,
  reads: readonly Read<KubeObject>[],
  isPatient: boolean,
): Omit<OwnCollector, 'own'> {
  const { id, hash, targets, collection } = kind
  return {
    name: id,
    types: [],
    rows: { id, hash },
    reads,
    critical: false,
    open({ now }) {
      const budget = { left: collection.maxResources }
      const lists = targets.map((target) => new RowList(() => kind.collect(now, target), budget, isPatient))
      const all = new AllRows(kind, lists)
      const feds = lists.flatMap((list, i) => (reads[i] ? [fed(reads[i], list)] : []))
      const { take } = foldOf(feds, () => ({}))
      return {
        take,
        parts: () => partsOf(kind, lists, all),
        get size() {
          return lists.reduce((sum, list) => sum + list.size, 0)
        },
      }
    },
  }
}

/** All rows there are now, with everything that is computed from them. A list that is not served has none. */
function partsOf({ targets }: ResourceDescriptor, lists: readonly RowList[], all: AllRows) {
  const served = lists.filter(({ isServed }) => isServed)
  if (served.length === 0) return { absent: `the cluster does not serve ${targets.map(nameOf).join(', nor ')}` }
  const [first] = served
  if (first && served.every(({ refusal }) => refusal)) throw first.refusal
  const errors = served.flatMap((list) => list.errors()).sort((a, b) => (a.namespace < b.namespace ? -1 : 1))
  const rows = all.rows()
  return {
    rows: {
      rows,
      aggregations: all.aggregations(rows),
      truncated: served.some(({ isFull, leftOut }) => isFull || leftOut > 0),
      errors: errors.slice(0, ROWS_ERRORS_KEPT),
      errorCount: errors.length,
      reports: served.flatMap((list) => list.reports()),
    },
  }
}

/** Rows of all targets in one table, and what is computed of it: what did not change since it was asked for last is not looked at. */
class AllRows {
  readonly #lists: readonly RowList[]
  readonly #seen: Table[]
  #rows: Table = Table.empty
  readonly #sums: ChunkSums

  constructor(kind: ResourceDescriptor, lists: readonly RowList[]) {
    this.#lists = lists
    this.#seen = lists.map(() => Table.empty)
    this.#sums = new ChunkSums(kind)
  }

  rows(): Table {
    const [first] = this.#lists
    if (first && this.#lists.length === 1) return first.rows()
    for (const [i, list] of this.#lists.entries()) {
      const [before, rows] = [this.#seen[i] ?? Table.empty, list.isServed ? list.rows() : Table.empty]
      if (rows === before) continue
      const { put, removed } = rows.diff(before)
      this.#rows = this.#rows.size === 0 ? put : this.#rows.patch(put, removed)
      this.#seen[i] = rows
    }
    return this.#rows
  }

  aggregations = (rows: Table) => this.#sums.of(rows)
}

/** Rows of one target. */
class RowList implements Taker<KubeObject> {
  isServed = true
  /** there are more objects than there may be rows */
  isFull = false
  /** why it could not be read at all */
  refusal: unknown
  readonly #begin: () => RowBuilder
  readonly #budget: { left: number }
  readonly #isPatient: boolean
  #builder: RowBuilder
  /** names that came of each namespace that is a list of its own */
  readonly #namespaces = new Map<string, string[]>()
  readonly #errors = new Map<string, RowsError>()

  /** @param budget rows there may be, of all lists together */
  constructor(begin: () => RowBuilder, budget: { left: number }, isPatient: boolean) {
    this.#begin = begin
    this.#budget = budget
    this.#isPatient = isPatient
    this.#builder = begin()
  }

  get size(): number {
    return this.#builder.size
  }

  get leftOut(): number {
    return this.#builder.leftOut ?? 0
  }

  reset(namespace?: string): void {
    if (namespace !== undefined) {
      this.#resetNamespace(namespace)
      return
    }
    this.#budget.left += this.#builder.size
    this.#builder = this.#begin()
    this.#namespaces.clear()
    this.#errors.clear()
    this.isServed = true
    this.isFull = false
    this.refusal = undefined
  }

  changed(before: KubeObject | undefined, after: KubeObject | undefined): void {
    if (before) this.#counted(() => this.#builder.remove(...placeOf(before)))
    if (!after) return
    if (this.#budget.left <= 0) {
      this.isFull = true
      return
    }
    this.#counted(() => this.#builder.add(after))
    const [namespace, name] = placeOf(after)
    if (!before) this.#namespaces.get(namespace)?.push(name)
  }

  absent(): void {
    this.reset()
    this.isServed = false
  }

  failed(error: unknown, namespace?: string): void {
    if (namespace !== undefined) this.#resetNamespace(namespace)
    else if (this.#isPatient && isForbidden(error)) {
      this.reset()
      this.refusal = error
    } else throw error
    this.#errors.set(namespace ?? '', { namespace: namespace ?? '', ...saidOf(error) })
  }

  rows = () => this.#builder.rows()
  reports = () => this.#builder.reports()
  errors = () => [...this.#errors.values()]

  #resetNamespace(namespace: string): void {
    const names = this.#namespaces.get(namespace) ?? []
    this.#counted(() => {
      for (const name of names) this.#builder.remove(namespace, name)
    })
    this.#namespaces.set(namespace, [])
    this.#errors.delete(namespace)
  }

  /** What it adds is taken from the budget; what it removes goes back. */
  #counted(change: () => void): void {
    const { size } = this.#builder
    change()
    this.#budget.left -= this.#builder.size - size
  }
}

const placeOf = ({ metadata }: KubeObject) => [metadata?.namespace ?? '', metadata?.name] as const
