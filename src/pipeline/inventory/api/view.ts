import { randomUUID } from 'node:crypto'
import type { KollectTargetStatus } from '#kinds'
import { Listeners } from '#runtime'
import type { BindingView } from '../bindings/view.ts'
import { type Composition, compose } from '../compose.ts'
import type { InventoryInformers } from '../objects.ts'
import { clusterInventory } from '../reconcile/inventory-kinds.ts'
import type { TargetKey } from '../rows.ts'
import { compareKeys, type PackedRow, type RowStore, targetText } from '../store/index.ts'
import { type Filter, isOfOther, type RowFilter, rowFilter } from './filter.ts'

type Objects<K extends 'inventories' | 'clusterInventories'> = ReturnType<InventoryInformers[K]['list']>[number]

/** A target as far as an answer needs it. */
interface SeenTarget {
  readonly key: TargetKey
  readonly rows: readonly PackedRow[]
  readonly isComplete: boolean
  /** when its rows were all there was, ms since 1970; undefined: never since this process started */
  readonly asOf: number | undefined
}

/** A target that keeps an answer from being complete. */
export interface AwaitedTarget {
  readonly key: TargetKey
  readonly asOf: number | undefined
}

/** The rows of one moment. */
export interface RowsNow {
  readonly filter: RowFilter
  /** of the store, at that moment */
  readonly sequence: number
  readonly now: number
  readonly waitsFor: readonly AwaitedTarget[]
  /** the oldest of its targets; undefined: one was never read */
  readonly asOf: number | undefined
  /** all that match, in canonical order */
  rows(): Iterable<PackedRow>
  /** all whose keys match, whatever they say */
  rowsOfKeys(): Iterable<PackedRow>
}

/** An inventory of either kind, with how its bindings stand. */
export interface SeenInventory {
  readonly object: Objects<'inventories'> | Objects<'clusterInventories'>
  /** undefined: it does not run (yet) */
  readonly bindings: readonly BindingView[] | undefined
}

export interface InventoryViewOptions {
  readonly store: RowStore
  readonly informers: InventoryInformers
  /** how the bindings of an inventory stand; undefined: it does not run */
  readonly bindings: (namespace: string, name: string) => readonly BindingView[] | undefined
  readonly now: () => number
}

/** As many namespaces as a status names. */
const MAX_NAMED = 1000

/** What the API reads: rows in memory, and objects as the informers hold them. Changes nothing. */
export class InventoryView {
  /** names this process: places in its rows mean nothing to the next one */
  readonly epoch = randomUUID().slice(0, 8)
  /** rows or completeness changed: told after a quiet moment, and at least once a second */
  readonly changes = new Listeners()
  readonly #options: InventoryViewOptions

  constructor(options: InventoryViewOptions) {
    this.#options = options
  }

  /** The inventories, or the roll-up, that are asked for by their name; undefined: none is. */
  named({ namespace, inventory, clusterInventory }: Filter): readonly SeenInventory[] | undefined {
    const { informers, bindings } = this.#options
    if (inventory === undefined && clusterInventory === undefined) return undefined
    const found =
      clusterInventory === undefined
        ? informers.inventories
            .list()
            .filter(
              ({ metadata }) =>
                metadata.name === inventory && (namespace === undefined || metadata.namespace === namespace),
            )
        : informers.clusterInventories.list().filter(({ metadata }) => metadata.name === clusterInventory)
    return found.map((object) => ({
      object,
      bindings: bindings(object.metadata.namespace ?? '', object.metadata.name),
    }))
  }

  allInventories(): readonly Objects<'inventories'>[] {
    return this.#options.informers.inventories.list()
  }

  allClusterInventories(): readonly Objects<'clusterInventories'>[] {
    return this.#options.informers.clusterInventories.list()
  }

  allTargets(): ReturnType<InventoryInformers['targets']['list']> {
    return this.#options.informers.targets.list()
  }

  /** The rows that match, as they are now. What comes later changes nothing of them. */
  read(filter: Filter): RowsNow {
    const { store, now } = this.#options
    const named = this.named(filter)
    if (filter.clusterInventory !== undefined) return this.#rollUp(filter, named?.[0])
    const namespaces = named && new Set(named.map(({ object }) => object.metadata.namespace ?? ''))
    const rowsOf = rowFilter(filter, namespaces)
    const targets = this.#targets(filter, namespaces)
    const awaited = targets.filter(({ isComplete }) => !isComplete)
    const at = now()
    function* rowsOfKeys(): Generator<PackedRow> {
      for (const { rows } of targets) for (const row of rows) if (rowsOf.hasKey(row)) yield row
    }
    return {
      filter: rowsOf,
      sequence: store.sequence,
      now: at,
      waitsFor: awaited,
      asOf: earliest(at, awaited),
      rowsOfKeys,
      *rows() {
        for (const row of rowsOfKeys()) if (rowsOf.hasContent(row)) yield row
      },
    }
  }

  /** The rows of a roll-up, as its sinks get them. */
  #rollUp(filter: Filter, seen: SeenInventory | undefined): RowsNow {
    const { store, informers, now } = this.#options
    const at = now()
    const rowsOf = rowFilter(filter)
    const chosen = seen && clusterInventory.composition(seen.object, informers, at)
    const composition = !chosen || 'message' in chosen ? NOTHING : chosen
    const snapshot = compose(store, composition)
    const waitsFor = snapshot.waitsFor.map((key) => {
      const state = store.state(key)
      return { key, asOf: state.kind === 'rows' ? state.completeUntil : undefined }
    })
    function* rowsOfKeys(): Generator<PackedRow> {
      for (const row of snapshot.packed()) if (rowsOf.hasKey(row)) yield row
    }
    return {
      filter: rowsOf,
      sequence: snapshot.sequence,
      now: at,
      waitsFor,
      asOf: earliest(at, waitsFor),
      rowsOfKeys,
      *rows() {
        for (const row of rowsOfKeys()) if (rowsOf.hasContent(row)) yield row
      },
    }
  }

  /** What left after this sequence; undefined: that is not known any more. */
  departedSince(sequence: number) {
    return this.#options.store.departedSince(sequence)
  }

  /** Every target that may have such rows, in canonical order. */
  #targets(filter: Filter, inventoryNamespaces: ReadonlySet<string> | undefined): readonly SeenTarget[] {
    const { store, now } = this.#options
    const at = now()
    const seen: SeenTarget[] = []
    for (const { key, status } of this.#declared().values()) {
      if (filter.target !== undefined && key.name !== filter.target) continue
      if (inventoryNamespaces && !inventoryNamespaces.has(key.namespace)) continue
      if (filter.isOwn && isOfOther(key.namespace, filter.namespace)) continue
      const state = store.state(key)
      if (state.kind === 'dropped') continue
      const rows = state.kind === 'rows' ? state.rows : []
      const isConcerned = inventoryNamespaces !== undefined || mayReach(filter.namespace, key, status)
      const isComplete = !isConcerned || (state.kind === 'rows' && state.isComplete)
      const asOf = isComplete ? at : state.kind === 'rows' ? state.completeUntil : undefined
      seen.push({ key, rows, isComplete, asOf })
    }
    return seen.sort((a, b) => compareKeys(placeOf(a.key), placeOf(b.key)))
  }

  /** Those that are declared, and those whose rows are still there. */
  #declared(): ReadonlyMap<string, { readonly key: TargetKey; readonly status?: KollectTargetStatus | undefined }> {
    const { store, informers } = this.#options
    const all = new Map<string, { readonly key: TargetKey; readonly status?: KollectTargetStatus | undefined }>()
    for (const key of store.targets()) all.set(targetText(key), { key })
    for (const { metadata, status } of [...informers.targets.list(), ...informers.clusterTargets.list()]) {
      const key = { namespace: metadata.namespace ?? '', name: metadata.name }
      all.set(targetText(key), { key, status })
    }
    return all
  }
}

const NOTHING: Composition = { targets: [], onceEach: false }

/** When all of it was complete last, ms since 1970; undefined: a target was never read. */
const earliest = (at: number, awaited: readonly AwaitedTarget[]): number | undefined =>
  awaited.some(({ asOf }) => asOf === undefined) ? undefined : Math.min(at, ...awaited.map(({ asOf }) => asOf ?? at))

const placeOf = ({ namespace, name }: TargetKey) => ({
  ...{ targetNamespace: namespace, targetName: name },
  ...{ namespace: '', name: '', uid: '' },
})

/** Whether a target may have rows of a namespace: while nobody knows, it may. */
function mayReach(namespace: string | undefined, key: TargetKey, status: KollectTargetStatus | undefined): boolean {
  if (namespace === undefined || key.namespace === namespace) return true
  const { effectiveNamespaces } = status ?? {}
  return !effectiveNamespaces || effectiveNamespaces.length >= MAX_NAMED || effectiveNamespaces.includes(namespace)
}
