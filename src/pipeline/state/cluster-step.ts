import {
  type Change,
  type ClusterName,
  type ClusterState,
  type PartState,
  type SnapshotOf,
  type SnapshotType,
  type SourceId,
  sameJson,
  snapshotTypes,
} from '#model'
import { partField } from './stored.ts'
import type { StoredRows } from './stored-rows.ts'

/*
 * What leads from one state of a cluster to the next, as text, for those who have the one: parts of its `meta` that differ, items of
 * snapshots by name, and of rows the very fields of its hash that moved. What is too large is named, and read from the hash.
 */

/** Bytes of a step as text, at most: of what is larger the largest fields are named alone. */
export const MAX_STEP_BYTES = 65_536

type Item = SnapshotOf<SnapshotType>
type Head = Omit<PartState<SnapshotType>, 'items'>
type Meta = Omit<ClusterState, 'parts' | 'tables' | 'heartbeats' | 'events'>

/** Names of items that came or changed, and of those that went. */
interface MovedItems {
  readonly put: readonly string[]
  readonly gone: readonly string[]
  /** those of `put`, or all there are, in their order; absent: they are to be read, or none moved */
  readonly items?: readonly Item[]
  /** `items` are all there are */
  readonly isAll?: true
}

/** `head` null: the part is gone; without `put` its items did not move. */
type MovedPart = Partial<MovedItems> & { readonly head: Head | null }

export interface ClusterStep {
  /** version of the state that it begins at; 0: of none */
  readonly base: number
  readonly meta: Partial<Meta>
  /** of `meta`, without a value now */
  readonly unset: readonly string[]
  /** how many there are now, and those that are new, in the order of the list */
  readonly heartbeats: readonly [length: number, added: ClusterState['heartbeats']]
  readonly events: readonly [length: number, added: ClusterState['events']]
  readonly parts: { readonly [T in SnapshotType]?: MovedPart }
  readonly sources: readonly (readonly [SourceId, 'rows' | 'facts' | 'gone'])[]
  /** fields of rows that are new or differ */
  readonly fields: readonly (readonly [field: string, text: string])[]
  readonly gone: readonly string[]
  /** fields that are to be read from the hash */
  readonly read: readonly string[]
}

/** A step as it travels: the fields of rows stand beside it as they are. */
export interface StepText {
  readonly text: string
  readonly fields: ClusterStep['fields']
}

/**
 * @param moved fields of the hash, as `changedFields` gave them
 * @returns undefined where not even the names have room: all of the cluster is to be read again
 */
export function stepText(
  before: ClusterState | undefined,
  after: ClusterState,
  moved: ReadonlyMap<string, string | undefined>,
): StepText | undefined {
  const step = stepBetween(before, after, moved)
  const whole = textOf(step)
  let bytes = bytesOf(whole)
  if (bytes <= MAX_STEP_BYTES) return whole
  const sizes = new Map(step.fields.map(([field, text]) => [field, Buffer.byteLength(text)]))
  for (const type of snapshotTypes) {
    const items = step.parts[type]?.items
    if (items) sizes.set(partField(type), Buffer.byteLength(JSON.stringify(items)))
  }
  const read = new Set<string>()
  for (const [field, size] of [...sizes].sort(([, a], [, b]) => b - a)) {
    if (bytes <= MAX_STEP_BYTES) break
    read.add(field)
    bytes -= size
  }
  const named = textOf(without(step, read))
  return bytesOf(named) <= MAX_STEP_BYTES ? named : undefined
}

function textOf({ fields, ...step }: ClusterStep): StepText {
  return { text: JSON.stringify(step), fields }
}

const bytesOf = ({ text, fields }: StepText): number =>
  fields.reduce((sum, [field, value]) => sum + field.length + Buffer.byteLength(value), Buffer.byteLength(text))

function without(step: ClusterStep, read: ReadonlySet<string>): ClusterStep {
  const parts = Object.entries(step.parts).map(([type, part]) => {
    const { items: _, isAll: __, ...names } = part
    return [type, read.has(partField(type as SnapshotType)) ? names : part]
  })
  const fields = step.fields.filter(([field]) => !read.has(field))
  return { ...step, parts: Object.fromEntries(parts) as ClusterStep['parts'], fields, read: [...read] }
}

function stepBetween(
  before: ClusterState | undefined,
  after: ClusterState,
  moved: ReadonlyMap<string, string | undefined>,
): ClusterStep {
  const { parts: _, tables: __, heartbeats, events, ...now } = after
  const was: Partial<ClusterState> = before ?? {}
  const differing = Object.entries(now).filter(([key, value]) => !sameJson(was[key as keyof ClusterState], value))
  const ofRows = [...moved].filter(([field]) => /^(custom|rows|step):/.test(field))
  return {
    base: before?.version ?? 0,
    meta: Object.fromEntries(differing) as Partial<Meta>,
    unset: Object.keys(was).filter((key) => !Object.hasOwn(after, key)),
    heartbeats: [heartbeats.length, added(was.heartbeats, heartbeats)],
    events: [events.length, added(was.events?.toReversed(), events.toReversed()).toReversed()],
    parts: partsBetween(before, after),
    sources: sourcesBetween(before, after),
    fields: ofRows.flatMap(([field, text]) => (text === undefined ? [] : [[field, text] as const])),
    gone: ofRows.flatMap(([field, text]) => (text === undefined ? [field] : [])),
    read: [],
  }
}

/** What stands behind the last of `before`; all where that is not there. A list that is carried on keeps its entries' identity. */
function added<T>(before: readonly T[] | undefined, after: readonly T[]): readonly T[] {
  const last = before?.at(-1)
  return last === undefined ? after : after.slice(after.lastIndexOf(last) + 1)
}

function partsBetween(before: ClusterState | undefined, after: ClusterState): ClusterStep['parts'] {
  const parts: { -readonly [T in SnapshotType]?: MovedPart } = {}
  for (const type of snapshotTypes) {
    const [old, part] = [before?.parts[type], after.parts[type]]
    if (old === part) continue
    if (!part) {
      parts[type] = { head: null, gone: [...(old?.items.keys() ?? [])] }
      continue
    }
    const { items, ...head } = part
    parts[type] = { head, ...(items === old?.items ? {} : itemsBetween(old?.items ?? new Map(), items)) }
  }
  return parts
}

type Items = ReadonlyMap<string, Item>

function itemsBetween(old: Items, now: Items): MovedItems {
  const put = [...now.values()].filter((item) => old.get(item.name) !== item)
  const gone = [...old.keys()].filter((name) => !now.has(name))
  const names = { put: put.map(({ name }) => name), gone }
  const order = [...itemsAfter(old, { ...names, items: put }).keys()]
  const isInOrder = [...now.keys()].every((name, i) => name === order[i])
  return isInOrder ? { ...names, items: put } : { ...names, items: [...now.values()], isAll: true }
}

function itemsAfter(old: Items, { gone, items = [], isAll }: Partial<MovedItems>): Items {
  const after = new Map(isAll ? [] : old)
  for (const name of gone ?? []) after.delete(name)
  for (const item of items) after.set(item.name, item)
  return after
}

function sourcesBetween(before: ClusterState | undefined, after: ClusterState): ClusterStep['sources'] {
  const sources: (readonly [SourceId, 'rows' | 'facts' | 'gone'])[] = []
  for (const [source, state] of after.tables) {
    const old = before?.tables.get(source)
    if (old === state) continue
    sources.push([source, (old ? old.rows !== state.rows : state.rows.size > 0) ? 'rows' : 'facts'])
  }
  for (const source of before?.tables.keys() ?? []) if (!after.tables.has(source)) sources.push([source, 'gone'])
  return sources
}

/** @returns undefined where the text is nothing of the sort */
export function parseStep({ text, fields }: StepText): ClusterStep | undefined {
  try {
    const step = JSON.parse(text) as Omit<ClusterStep, 'fields'> | null
    const lists = [step?.unset, step?.heartbeats, step?.events, step?.sources, step?.gone, step?.read]
    const isStep = Number.isSafeInteger(step?.base) && step?.meta && step.parts && lists.every(Array.isArray)
    return step && isStep ? { ...step, fields } : undefined
  } catch {
    return undefined
  }
}

/**
 * The state that a step leads to.
 * @param read what the hash has under the fields that the step names
 * @returns undefined where it does not lead on from `before`
 */
export function stateAfter(
  before: ClusterState | undefined,
  step: ClusterStep,
  { rows, read }: { readonly rows: StoredRows; readonly read: ReadonlyMap<string, string> },
): ClusterState | undefined {
  if ((before?.version ?? 0) !== step.base) return undefined
  try {
    const put = new Map([...step.fields, ...read])
    const tables = rows.after(before?.tables ?? new Map(), { put, gone: new Set(step.gone) })
    const heartbeats = carried(before?.heartbeats ?? [], step.heartbeats)
    const events = carried(before?.events.toReversed() ?? [], [step.events[0], step.events[1].toReversed()])
    if (!tables || !heartbeats || !events) return undefined
    const parts = { ...before?.parts } as { -readonly [T in SnapshotType]?: PartState<SnapshotType> }
    for (const [type, part] of Object.entries(step.parts) as [SnapshotType, MovedPart][]) {
      const old = (before?.parts[type]?.items ?? new Map()) as Items
      const items = part.put ? itemsOf(old, part, read.get(partField(type))) : old
      if (!items) return undefined
      if (part.head) parts[type] = { ...part.head, items }
      else delete parts[type]
    }
    const kept: Record<string, unknown> = { ...before, ...step.meta }
    for (const key of step.unset) delete kept[key]
    // Of `meta` all keys that there are, since `before` has the version that the step begins at, or is nothing.
    return { ...kept, parts, tables, heartbeats, events: events.toReversed() } as unknown as ClusterState
  } catch {
    return undefined // altered on its way
  }
}

function itemsOf(old: Items, moved: MovedPart, text: string | undefined): Items | undefined {
  if (moved.items || moved.put?.length === 0) return itemsAfter(old, moved)
  return text === undefined ? undefined : itemsRead(old, moved, text)
}

/** All items, those that did not move as their older selves. */
function itemsRead(old: Items, { put = [] }: Partial<MovedItems>, text: string): Items {
  const moved = new Set(put)
  const all = JSON.parse(text) as readonly Item[]
  return new Map(all.map((item) => [item.name, moved.has(item.name) ? item : (old.get(item.name) ?? item)]))
}

function carried<T>(before: readonly T[], [length, added]: readonly [number, readonly T[]]): readonly T[] | undefined {
  if (added.length === 0 && before.length === length) return before
  const all = [...before, ...added]
  return all.length < length ? undefined : all.slice(all.length - length)
}

/** What a step tells, the same in every process. @param at hub's clock, ms */
export function changesOf(cluster: ClusterName, step: ClusterStep, at: number): Change[] {
  const changes: Change[] = []
  for (const type of snapshotTypes) {
    const part = step.parts[type]
    for (const name of part?.put ?? []) changes.push({ kind: 'snapshot', cluster, type, name, op: 'put', at })
    for (const name of part?.gone ?? []) changes.push({ kind: 'snapshot', cluster, type, name, op: 'remove', at })
  }
  for (const [source, moved] of step.sources)
    changes.push({
      kind: 'custom',
      cluster,
      source,
      rows: moved !== 'facts',
      op: moved === 'gone' ? 'remove' : 'put',
      at,
    })
  changes.push({ kind: 'cluster', cluster, op: 'put', at })
  for (const event of step.events[1].toReversed()) changes.push({ kind: 'event', cluster, event, at })
  return changes
}
