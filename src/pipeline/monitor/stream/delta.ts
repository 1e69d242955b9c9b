import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '#runtime'
import type { NodeDocument, PodDocument } from '../documents.ts'

/** A node or a pod. */
export type Item = NodeDocument | PodDocument

/** An item as a difference: its key, and what changed; null removes a key. */
export type Upsert = Readonly<Record<string, unknown>>

/** What leads from one picture to the next. */
export interface Delta {
  readonly upsert: readonly Upsert[]
  /** keys: `name`, or `namespace/name` */
  readonly remove: readonly string[]
}

/** A value that moved less stays unsaid, points of percent; and no longer than so long, ms. */
export interface DeadBand {
  readonly points: number
  readonly maxMs: number
}

interface Sent {
  readonly item: Item
  readonly at: number
}

export const keyOf = (item: { readonly name: string; readonly namespace?: string }): string =>
  item.namespace === undefined ? item.name : `${item.namespace}/${item.name}`

/** What everybody who follows one feed holds: deltas are made against it, and who comes new is given it. */
export class SentPicture {
  readonly #band: DeadBand
  readonly #sent = new Map<string, Sent>()
  #isExact = true

  constructor(band: DeadBand) {
    this.#band = band
  }

  *items(): Generator<Item> {
    for (const { item } of this.#sent.values()) yield item
  }

  /** Whether every value in it is the newest: the same items lead on to the same picture. */
  get isExact(): boolean {
    return this.#isExact
  }

  /** @param items are made before the picture is touched @returns undefined where nothing is worth telling */
  *advance(items: Iterable<Item | undefined>, now: number): Steps<Delta | undefined> {
    const all: Item[] = []
    for (const item of items) {
      if (item) all.push(item)
      yield
    }
    const upsert: Upsert[] = []
    const gone = new Set(this.#sent.keys())
    this.#isExact = true
    for (const item of all) {
      yield
      const key = keyOf(item)
      gone.delete(key)
      const before = this.#sent.get(key)
      if (before && isEqual(before.item, item)) continue
      if (before && this.#isWithin(before, item, now)) {
        this.#isExact = false
        continue
      }
      this.#sent.set(key, { item, at: now })
      upsert.push(before ? differenceOf(before.item, item) : { ...item })
    }
    for (const key of gone) this.#sent.delete(key)
    return upsert.length > 0 || gone.size > 0 ? { upsert, remove: [...gone] } : undefined
  }

  #isWithin({ item: before, at }: Sent, item: Item, now: number): boolean {
    if (now - at >= this.#band.maxMs || this.#band.points <= 0) return false
    return isStillEqual(before, item) && movedPoints(before, item) < this.#band.points
  }
}

const isEqual = (a: Item, b: Item): boolean => a === b || isDeepStrictEqual(a, b)

/** Keys that move all the time; a change of any other is told at once. */
const MOVING: ReadonlySet<string> = new Set([
  ...['cpu_usage', 'memory_usage', 'disk_usage', 'cpu_percent', 'memory_percent', 'disk_percent'],
])

function isStillEqual(a: Item, b: Item): boolean {
  const [left, right] = [entriesOf(a), entriesOf(b)]
  const keys = new Set([...Object.keys(left), ...Object.keys(right)])
  return [...keys].every((key) => MOVING.has(key) || isDeepStrictEqual(left[key], right[key]))
}

function movedPoints(before: Item, after: Item): number {
  const [a, b] = [percentsOf(before), percentsOf(after)]
  return Math.max(...a.map((value, at) => Math.abs(value - (b[at] ?? 0))))
}

function percentsOf(item: Item): readonly number[] {
  if ('cpu_percent' in item) return [item.cpu_percent, item.memory_percent, item.disk_percent]
  // Without a capacity nothing tells how much it moved: then any change is told.
  const percent = (used: number, capacity: number) => (capacity > 0 ? (used / capacity) * 100 : used)
  return [
    percent(item.cpu_usage, item.cpu_capacity),
    percent(item.memory_usage, item.memory_capacity),
    percent(item.disk_usage, item.disk_capacity),
  ]
}

function differenceOf(before: Item, after: Item): Upsert {
  const [was, is] = [entriesOf(before), entriesOf(after)]
  const changed = Object.entries(is).filter(([key, value]) => !isDeepStrictEqual(was[key], value))
  const lost = Object.keys(was).filter((key) => !(key in is))
  const key = 'namespace' in after ? { name: after.name, namespace: after.namespace } : { name: after.name }
  return { ...key, ...Object.fromEntries(changed), ...Object.fromEntries(lost.map((name) => [name, null])) }
}

const entriesOf = (item: Item): Readonly<Record<string, unknown>> => ({ ...item })
