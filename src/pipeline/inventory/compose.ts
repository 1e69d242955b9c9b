import { createHash, type Hash } from 'node:crypto'
import { HOME_OF_CLUSTER_OBJECTS, type Row } from '#extract'
import type { RowKey } from '#sinks'
import type { TargetKey } from './rows.ts'
import { compareKeys, hashOf, type PackedRow, type RowStore, targetText, unpackRow } from './store/index.ts'

/** Which rows an inventory takes. */
export interface Composition {
  /** every target that contributes, whether it is ready or not */
  readonly targets: readonly TargetKey[]
  /** only rows of objects in these namespaces; absent: of all */
  readonly namespaces?: ReadonlySet<string>
  /** chosen by what cannot be followed now: what it does not take may still be of it */
  readonly isDoubtful?: boolean
  /** of an object that several targets chose only the first row, in canonical order */
  readonly onceEach: boolean
}

/** The rows of one namespace in a snapshot. */
export interface Shard {
  readonly namespace: string
  readonly itemCount: number
  readonly targetCount: number
  readonly checksum: string
}

/** Differences between two snapshots of one inventory. */
export interface SnapshotChanges {
  /** unpacked one by one as they are read: a sink that hangs holds none of them */
  readonly put: Iterable<Row>
  readonly removed: readonly RowKey[]
  /** how many rows left that are not to be deleted, as the snapshot is incomplete */
  readonly kept: number
}

/** All rows of an inventory at one moment. What comes later changes nothing of it. */
export interface Snapshot {
  /** of the store */
  readonly sequence: number
  /** what it was composed of: snapshots of other compositions are not compared */
  readonly composition: string
  readonly isComplete: boolean
  /** targets that keep it from being complete */
  readonly waitsFor: readonly TargetKey[]
  /** something is in the way of one of them; else they are being read */
  readonly isHindered: boolean
  /** every list was read to its end since this process started: what keeps it from being complete are single objects, or came later */
  readonly isRead: boolean
  readonly itemCount: number
  /** SHA-256 over the hashes of the rows in canonical order: equal for equal rows, made when it is first asked for */
  readonly checksum: string
  rows(): Iterable<Row>
  /** the same, as they are kept */
  packed(): Iterable<PackedRow>
  /** rows by their namespace */
  shards(): readonly Shard[]
}

/** Composes the rows of an inventory as they are now. Costs nothing by row until something is read. */
export function compose(store: RowStore, composition: Composition): Snapshot {
  const lists: (readonly PackedRow[])[] = []
  const waitsFor: TargetKey[] = []
  let isHindered = composition.isDoubtful === true
  let isRead = true
  for (const key of composition.targets) {
    const state = store.state(key)
    if (state.kind === 'rows') {
      lists.push(state.rows)
      isHindered ||= state.isHindered
    }
    if (state.kind === 'unknown' || (state.kind === 'rows' && !state.isRead)) isRead = false
    const isLacking = state.kind === 'unknown' || (state.kind === 'rows' && !state.isComplete)
    if (isLacking || composition.isDoubtful) waitsFor.push(key)
  }
  return new ComposedSnapshot(store.sequence, composition, lists, { waitsFor, isHindered, isRead })
}

class ComposedSnapshot implements Snapshot {
  readonly sequence: number
  readonly composition: string
  readonly waitsFor: readonly TargetKey[]
  readonly isHindered: boolean
  readonly isRead: boolean
  readonly #of: Composition
  readonly #lists: readonly (readonly PackedRow[])[]
  #summary: { readonly itemCount: number; readonly checksum: string } | undefined
  #itemCount: number | undefined

  constructor(
    sequence: number,
    of: Composition,
    lists: readonly (readonly PackedRow[])[],
    { waitsFor, isHindered, isRead }: Pick<Snapshot, 'waitsFor' | 'isHindered' | 'isRead'>,
  ) {
    this.sequence = sequence
    this.composition = compositionText(of)
    this.waitsFor = waitsFor
    this.isHindered = isHindered
    this.isRead = isRead
    this.#of = of
    this.#lists = lists
  }

  get isComplete(): boolean {
    return this.waitsFor.length === 0
  }

  get itemCount(): number {
    this.#itemCount ??= this.#countRows()
    return this.#itemCount
  }

  get checksum(): string {
    this.#summary ??= this.#summed()
    return this.#summary.checksum
  }

  *rows(): Generator<Row> {
    for (const row of this.packed()) yield unpackRow(row)
  }

  shards(): readonly Shard[] {
    const shards = new Map<string, { hash: Hash; itemCount: number; targets: Set<string> }>()
    for (const row of this.packed()) {
      const home = homeOf(row)
      let shard = shards.get(home)
      if (!shard) {
        shard = { hash: createHash('sha256'), itemCount: 0, targets: new Set() }
        shards.set(home, shard)
      }
      shard.hash.update(hashOf(row), 'binary')
      shard.itemCount++
      shard.targets.add(row.targetName)
    }
    return [...shards.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([namespace, { hash, itemCount, targets }]) => ({
        namespace,
        itemCount,
        targetCount: targets.size,
        checksum: hash.digest('hex'),
      }))
  }

  /** The rows as they are kept, in canonical order. */
  *packed(): Generator<PackedRow> {
    const { namespaces, onceEach } = this.#of
    const seen = new Set<string>()
    for (const row of inOrder(this.#lists)) {
      if (namespaces && !namespaces.has(homeOf(row))) continue
      if (onceEach) {
        const object = `${row.namespace}\n${row.uid}`
        if (seen.has(object)) continue
        seen.add(object)
      }
      yield row
    }
  }

  #countRows(): number {
    const { namespaces, onceEach } = this.#of
    if (!namespaces && !onceEach) return this.#lists.reduce((sum, { length }) => sum + length, 0)
    let count = 0
    for (const _ of this.packed()) count++
    return count
  }

  #summed(): { readonly itemCount: number; readonly checksum: string } {
    const hash = createHash('sha256')
    // Hashes are given in pieces of a few thousand: a call for each row would cost more than the hash.
    let piece: string[] = []
    let itemCount = 0
    for (const row of this.packed()) {
      itemCount++
      if (piece.push(hashOf(row)) < 4096) continue
      hash.update(piece.join(''), 'binary')
      piece = []
    }
    return { itemCount, checksum: hash.update(piece.join(''), 'binary').digest('hex') }
  }
}

/** What a binding gave last: its next export is told by what differs. */
export interface Given {
  /** what the sink holds, of the store */
  readonly sequence: number
  /** up to here everything that left was taken away there; an incomplete snapshot takes nothing away */
  readonly clearedAt: number
  readonly composition: string
}

/**
 * What differs from what was given before.
 * @returns undefined where it is not known: another composition, one row for each object, or too long ago
 */
export function changesSince(
  store: RowStore,
  composition: Composition,
  snapshot: Snapshot,
  given: Given,
): SnapshotChanges | undefined {
  if (given.composition !== snapshot.composition || composition.onceEach) return undefined
  if (!(snapshot instanceof ComposedSnapshot)) return undefined
  const departed = store.departedSince(given.clearedAt)
  if (!departed) return undefined
  const put = {
    *[Symbol.iterator]() {
      for (const row of snapshot.packed()) if (row.sequence > given.sequence) yield unpackRow(row)
    },
  }
  const targets = new Set(composition.targets.map(targetText))
  const { namespaces } = composition
  const removed = departed
    .filter(({ target, key }) => targets.has(target) && (!namespaces || namespaces.has(homeOf(key))))
    .map(({ key }) => key)
  return snapshot.isComplete ? { put, removed, kept: 0 } : { put, removed: [], kept: removed.length }
}

/** The namespace that an object is judged by. */
const homeOf = ({ namespace }: RowKey): string => namespace || HOME_OF_CLUSTER_OBJECTS

/** Equal for what takes the same rows. */
export const compositionText = ({ targets, namespaces, onceEach }: Composition): string =>
  JSON.stringify([targets.map(targetText).sort(), namespaces && [...namespaces].sort(), onceEach])

/** Whether what one takes is all taken by the other as well. */
export function takesAllOf(one: Composition, other: Composition): boolean {
  const targets = new Set(other.targets.map(targetText))
  const { namespaces } = other
  return (
    one.onceEach === other.onceEach &&
    one.targets.every((key) => targets.has(targetText(key))) &&
    (!namespaces || (one.namespaces !== undefined && [...one.namespaces].every((name) => namespaces.has(name))))
  )
}

/** Several lists in order as one. Mostly they follow each other; else they are merged. */
function* inOrder(lists: readonly (readonly PackedRow[])[]): Generator<PackedRow> {
  const all = lists.filter(({ length }) => length > 0)
  all.sort(([a], [b]) => compareKeys(a as PackedRow, b as PackedRow))
  const follows = all.every((list, at) => {
    const next = all[at + 1]?.[0]
    return !next || compareKeys(list.at(-1) as PackedRow, next) < 0
  })
  if (follows) for (const list of all) yield* list
  else yield* mergedRows(all)
}

function* mergedRows(lists: readonly (readonly PackedRow[])[]): Generator<PackedRow> {
  const heads = lists.map((list) => ({ list, at: 0 }))
  for (;;) {
    let first: PackedRow | undefined
    let from: (typeof heads)[number] | undefined
    for (const head of heads) {
      const row = head.list[head.at]
      if (row && (!first || compareKeys(row, first) < 0)) [first, from] = [row, head]
    }
    if (!first || !from) return
    from.at++
    yield first
  }
}
