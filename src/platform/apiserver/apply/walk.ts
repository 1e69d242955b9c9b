import { equalJson, isMap, type Json, own, setOwn } from '../schema/json.ts'
import { EMPTY, type FieldSet, FieldSetBuilder, isEmptySet } from './field-set.ts'
import { childType, itemStep, type Step, structureOf, type ValueType } from './value-type.ts'

const isBare = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (Array.isArray(value) && value.length === 0) ||
  (isMap(value) && Object.keys(value).length === 0)

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const mapOf = (value: unknown): Json => (isMap(value) ? value : {})
const isLeaf = (type: ValueType, value: unknown): boolean => {
  const structure = structureOf(type, value)
  return structure.kind === 'leaf' || structure.atomic
}

/** The paths a value says something about: what its applier owns. */
export function fieldsOf(value: unknown, type: ValueType): FieldSet {
  const builder = new FieldSetBuilder()
  collect(value, type, [], builder)
  return builder.result
}

function collect(value: unknown, type: ValueType, path: Step[], into: FieldSetBuilder): void {
  if (isLeaf(type, value)) {
    into.add(path)
    return
  }
  if (Array.isArray(value))
    value.forEach((item, index) => {
      const step = itemStep(type, item, index)
      collect(item, childType(type, step).type, [...path, step], into)
      into.add([...path, step])
    })
  for (const [name, item] of Object.entries(mapOf(value))) {
    const step = `f:${name}`
    const child = childType(type, step)
    collect(item, child.type, [...path, step], into)
    if (!child.named || item === null || (isMap(item) && isBare(item))) into.add([...path, step])
  }
}

export interface Comparison {
  readonly removed: FieldSet
  readonly modified: FieldSet
  readonly added: FieldSet
}

/** What became of each path between two objects. */
export function compare(before: unknown, after: unknown, type: ValueType): Comparison {
  const comparison = {
    removed: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    added: new FieldSetBuilder(),
  }
  difference(before, after, type, [], comparison)
  const { removed, modified, added } = comparison
  return { removed: removed.result, modified: modified.result, added: added.result }
}

type Builders = { readonly [name in keyof Comparison]: FieldSetBuilder }

function difference(before: unknown, after: unknown, type: ValueType, path: Step[], into: Builders): void {
  // Most writes change one branch: the others are passed over at a look, which is far cheaper than walking them.
  if (before === after || (path.length < 4 && equalJson(before, after))) return
  if (before === undefined) into.added.add(path)
  else if (after === undefined) into.removed.add(path)
  const present = after === undefined ? before : after
  const structure = structureOf(type, present ?? before)
  const other = structureOf(type, before === undefined ? present : before)
  if (before !== undefined && after !== undefined && before !== null && structure.kind !== other.kind) {
    // Another sort of value stands here now: all that was below is gone, all that is below is new.
    into.modified.add(path)
    below(before, undefined, type, path, into)
    below(undefined, after, type, path, into)
    return
  }
  if (structure.kind === 'leaf' || structure.atomic || (isBare(before) && isBare(after))) {
    if (before !== undefined && after !== undefined && !equalJson(before, after)) into.modified.add(path)
    return
  }
  below(before, after, type, path, into)
}

function below(before: unknown, after: unknown, type: ValueType, path: Step[], into: Builders): void {
  const some = after ?? before
  if (isLeaf(type, some)) return
  if (Array.isArray(some)) {
    items(listOf(before), listOf(after), type, path, into)
    return
  }
  const [old, now] = [mapOf(before), mapOf(after)]
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
    const step = `f:${name}`
    difference(own(old, name), own(now, name), childType(type, step).type, [...path, step], into)
  }
}

function grouped(list: readonly unknown[], type: ValueType): Map<Step, unknown[]> {
  const groups = new Map<Step, unknown[]>()
  list.forEach((item, index) => {
    const step = itemStep(type, item, index)
    const group = groups.get(step)
    if (group) group.push(item)
    else groups.set(step, [item])
  })
  return groups
}

/** Items that repeat (stored before the list was one without repeats) are owned together, by their common step. */
function items(
  before: readonly unknown[],
  after: readonly unknown[],
  type: ValueType,
  path: Step[],
  into: Builders,
): void {
  const [old, now] = [grouped(before, type), grouped(after, type)]
  for (const step of new Set([...old.keys(), ...now.keys()])) {
    const [left, right] = [old.get(step) ?? [], now.get(step) ?? []]
    const at = [...path, step]
    const itemType = childType(type, step).type
    if (left.length <= 1 && right.length <= 1) difference(left[0], right[0], itemType, at, into)
    else if (left.length > 1 && right.length > 1) {
      if (!equalJson(left, right)) into.modified.add(at)
    } else if (left.length > 1) {
      if (right.length > 0) difference(undefined, right[0], itemType, at, into)
      into.removed.add(at)
    } else {
      if (left.length > 0) difference(left[0], undefined, itemType, at, into)
      into.added.add(at)
    }
  }
}

/** The live value with what the configuration says; undefined where nothing is left to say. */
export function merge(live: unknown, config: unknown, type: ValueType): unknown {
  if (config === undefined) return live
  if (live === undefined && isLeaf(type, config)) return config
  const structure = structureOf(type, config ?? live)
  if (structure.kind === 'leaf' || structure.atomic || (isBare(live) && isBare(config))) return config
  if (structure.kind === 'list') return mergeLists(listOf(live), listOf(config), type)
  const [old, wanted] = [mapOf(live), mapOf(config)]
  const result: Json = {}
  for (const name of new Set([...Object.keys(old), ...Object.keys(wanted)])) {
    const merged = merge(own(old, name), own(wanted, name), childType(type, `f:${name}`).type)
    if (merged !== undefined) setOwn(result, name, merged)
  }
  return result
}

/**
 * The configured items in their order; what only the live list has stays before the item it stood before.
 * An item that stands in another order in the configuration goes where the configuration says.
 */
function mergeLists(live: readonly unknown[], config: readonly unknown[], type: ValueType): unknown[] {
  const wanted = config.map((item, index) => ({ step: itemStep(type, item, index), item }))
  const old = live.map((item, index) => ({ step: itemStep(type, item, index), item }))
  const oldByStep = new Map<Step, unknown>()
  // Of repeated items none is the one to merge with.
  for (const { step, item } of old) oldByStep.set(step, oldByStep.has(step) ? undefined : item)
  const wantedAt = new Map(wanted.map(({ step }, at) => [step, at]))
  const result: unknown[] = []
  let next = 0
  const placeUpTo = (end: number) => {
    for (; next < end; next++) {
      const { step, item } = wanted[next] as (typeof wanted)[number]
      result.push(merge(oldByStep.get(step), item, childType(type, step).type))
    }
  }
  for (const { step, item } of old) {
    const at = wantedAt.get(step)
    if (at === undefined) result.push(item)
    else if (at >= next && !wanted.slice(next, at).some((earlier) => oldByStep.has(earlier.step))) placeUpTo(at + 1)
  }
  placeUpTo(wanted.length)
  return result
}

/** The value without the paths of the set. What is left without content becomes null, as "nothing is said". */
export function removePaths(value: unknown, gone: FieldSet, type: ValueType): unknown {
  if (isEmptySet(gone)) return value
  const structure = structureOf(type, value)
  if (structure.kind === 'leaf') return value
  if (structure.atomic || isBare(value)) return null
  if (Array.isArray(value)) {
    const kept = value
      .map((item, index) => ({ step: itemStep(type, item, index), item }))
      .filter(({ step }) => !gone.members.has(step))
      .map(({ step, item }) => removePaths(item, gone.children.get(step) ?? EMPTY, childType(type, step).type))
    return kept.length > 0 ? kept : null
  }
  const kept: Json = {}
  for (const [name, item] of Object.entries(mapOf(value))) {
    const step = `f:${name}`
    if (!gone.members.has(step))
      setOwn(kept, name, removePaths(item, gone.children.get(step) ?? EMPTY, childType(type, step).type))
  }
  return Object.keys(kept).length > 0 ? kept : null
}

/** @returns the path of an item that a list owned item by item has twice, if there is one */
export function firstRepeat(value: unknown, type: ValueType, path: readonly Step[]): readonly Step[] | undefined {
  if (isLeaf(type, value)) return undefined
  const seen = new Set<Step>()
  const steps: (readonly [Step, unknown])[] = Array.isArray(value)
    ? value.map((item, index) => [itemStep(type, item, index), item] as const)
    : Object.entries(mapOf(value)).map(([name, item]) => [`f:${name}`, item] as const)
  for (const [step, item] of steps) {
    if (seen.has(step)) return [...path, step]
    seen.add(step)
    const found = firstRepeat(item, childType(type, step).type, [...path, step])
    if (found) return found
  }
  return undefined
}
