import { isMap, type Json, setOwn, stableText } from '../schema/json.ts'
import { childType, type Step, type ValueType } from './value-type.ts'

/** A set of paths as a tree. A path is in the set where its last step is a member. Sets are never changed once built. */
export interface FieldSet {
  readonly members: ReadonlySet<Step>
  readonly children: ReadonlyMap<Step, FieldSet>
}

export const EMPTY: FieldSet = { members: new Set(), children: new Map() }

const isEmpty = ({ members, children }: FieldSet): boolean => members.size === 0 && children.size === 0

export { isEmpty as isEmptySet }

/** Collects paths one by one. */
export class FieldSetBuilder {
  readonly #members = new Set<Step>()
  readonly #children = new Map<Step, FieldSetBuilder>()

  add(path: readonly Step[], at = 0): void {
    const step = path[at]
    if (step === undefined) return
    if (at === path.length - 1) {
      this.#members.add(step)
      return
    }
    let child = this.#children.get(step)
    if (!child) {
      child = new FieldSetBuilder()
      this.#children.set(step, child)
    }
    child.add(path, at + 1)
  }

  get result(): FieldSet {
    return {
      members: this.#members,
      children: new Map([...this.#children].map(([step, child]) => [step, child.result])),
    }
  }
}

export const setOfPaths = (...paths: readonly (readonly Step[])[]): FieldSet => {
  const builder = new FieldSetBuilder()
  for (const path of paths) builder.add(path)
  return builder.result
}

const childrenOf = (entries: Iterable<readonly [Step, FieldSet]>): Map<Step, FieldSet> => {
  const children = new Map<Step, FieldSet>()
  for (const [step, child] of entries) if (!isEmpty(child)) children.set(step, child)
  return children
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a)) return b
  if (isEmpty(b)) return a
  const children = new Map(a.children)
  for (const [step, child] of b.children) {
    const known = children.get(step)
    children.set(step, known ? union(known, child) : child)
  }
  return { members: new Set([...a.members, ...b.members]), children }
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return {
    members: new Set([...a.members].filter((step) => b.members.has(step))),
    children: childrenOf(
      [...a.children].map(([step, child]) => [step, intersection(child, b.children.get(step) ?? EMPTY)] as const),
    ),
  }
}

/** Without exactly the paths of `b`; what lies below them stays. Mostly little goes, so what stays is shared. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a
  let members: Set<Step> | undefined
  for (const step of b.members)
    if (a.members.has(step)) {
      members ??= new Set(a.members)
      members.delete(step)
    }
  let children: Map<Step, FieldSet> | undefined
  for (const [step, gone] of b.children) {
    const child = a.children.get(step)
    const left = child && difference(child, gone)
    if (left === child || !left) continue
    children ??= new Map(a.children)
    if (isEmpty(left)) children.delete(step)
    else children.set(step, left)
  }
  return members || children ? { members: members ?? a.members, children: children ?? a.children } : a
}

/** Without the paths of `b` and all that lies below them. */
export function withoutBranches(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a
  return {
    members: new Set([...a.members].filter((step) => !b.members.has(step))),
    children: childrenOf(
      [...a.children]
        .filter(([step]) => !b.members.has(step))
        .map(([step, child]) => [step, withoutBranches(child, b.children.get(step) ?? EMPTY)] as const),
    ),
  }
}

/** Adds every declared field on the way to a path: whoever owns something in it keeps the field itself alive. */
export function withNamedFields(set: FieldSet, type: ValueType): FieldSet {
  const members = new Set(set.members)
  const children = new Map<Step, FieldSet>()
  for (const [step, child] of set.children) {
    const below = childType(type, step)
    if (below.named) members.add(step)
    children.set(step, withNamedFields(child, below.type))
  }
  return { members, children }
}

/** All paths, in the order of their steps. */
export function pathsOf(set: FieldSet): Step[][] {
  const steps = [...new Set([...set.members, ...set.children.keys()])].sort()
  return steps.flatMap((step) => [
    ...(set.members.has(step) ? [[step]] : []),
    ...pathsOf(set.children.get(step) ?? EMPTY).map((rest) => [step, ...rest]),
  ])
}

/** A path as the API prints it: `.spec.containers[name="web"].image`. */
export const printPath = (path: readonly Step[]): string => path.map(printStep).join('')

function printStep(step: Step): string {
  const rest = step.slice(2)
  if (step.startsWith('f:')) return `.${rest}`
  if (step.startsWith('i:')) return `[${rest}]`
  if (step.startsWith('v:')) return `[=${rest}]`
  const keys: unknown = JSON.parse(rest)
  const parts = Object.entries(isMap(keys) ? keys : {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
  return `[${parts.join(',')}]`
}

/**
 * Reads FieldsV1.
 * @returns undefined for what is none
 */
export function fromFieldsV1(fields: unknown): FieldSet | undefined {
  if (!isMap(fields)) return undefined
  const members = new Set<Step>()
  const children = new Map<Step, FieldSet>()
  for (const [key, below] of Object.entries(fields)) {
    if (key === '.') continue
    const step = readStep(key)
    if (step === undefined || !isMap(below)) return undefined
    const names = Object.keys(below)
    if (names.length === 0 || Object.hasOwn(below, '.')) members.add(step)
    if (names.some((name) => name !== '.')) {
      const child = fromFieldsV1(below)
      if (!child) return undefined
      children.set(step, child)
    }
  }
  return { members, children }
}

/** The same item may be written with its keys in another order: they are read in one. */
function readStep(key: string): Step | undefined {
  if (key.startsWith('f:') || /^i:\d+$/.test(key)) return key
  if (!/^[kv]:/.test(key)) return undefined
  try {
    const value: unknown = JSON.parse(key.slice(2))
    return key.startsWith('v:') ? `v:${stableText(value)}` : isMap(value) ? `k:${stableText(value)}` : undefined
  } catch {
    return undefined
  }
}

export function toFieldsV1(set: FieldSet): Json {
  const fields: Json = {}
  const steps = [...new Set([...set.members, ...set.children.keys()])].sort()
  for (const step of steps) {
    const child = set.children.get(step)
    const below = child ? toFieldsV1(child) : {}
    setOwn(fields, step, child && set.members.has(step) ? { '.': {}, ...below } : below)
  }
  return fields
}
