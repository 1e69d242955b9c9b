import type { KollectProfileSpec } from '#kinds'
import { parsePath } from '#path'
import { isFields } from './scrub.ts'

type Fields = Readonly<Record<string, unknown>>
type Keys = readonly (string | number)[]

type EmbedSpec = NonNullable<KollectProfileSpec['export']>

const PARTS: Readonly<Record<string, readonly string[]>> = {
  MetadataOnly: ['metadata'],
  SpecOnly: ['spec'],
  StatusOnly: ['status'],
  SpecAndStatus: ['spec', 'status'],
}
const IDENTITY: readonly Keys[] = [
  ['metadata', 'name'],
  ['metadata', 'namespace'],
  ['metadata', 'uid'],
]
/** What changes without meaning, and what repeats the object. */
const DEFAULTS: readonly Keys[] = [
  ['metadata', 'managedFields'],
  ['metadata', 'resourceVersion'],
  ['metadata', 'generation'],
  ['metadata', 'annotations', 'kubectl.kubernetes.io/last-applied-configuration'],
  ['metadata', 'annotations', 'argocd.argoproj.io/tracking-id'],
]

/** What is taken out of an object that is embedded whole. The object itself is not changed. */
export interface Prune {
  /** parts and fields that are left out always: before secrets are looked for, since it saves work */
  readonly known: (object: Fields) => Fields
  /** what a profile names: after, since without the name of its entry a secret could not be told */
  readonly named: (object: Fields) => Fields
}

/** Compiles it. Pointers and paths that lead nowhere, wildcards and filters remove nothing. */
export function compilePrune({ include = 'SpecAndStatus', dedupeIdentity = true, prune = {} }: EmbedSpec): Prune {
  const { defaults = true, jsonPointers = [], jsonPaths = [] } = prune
  const parts = PARTS[include]
  const known = [...(dedupeIdentity ? IDENTITY : []), ...(defaults ? DEFAULTS : [])]
  const named = [...jsonPointers.flatMap(keysOfPointer), ...jsonPaths.flatMap(keysOfPath)]
  const without = (object: Fields, all: readonly Keys[]) =>
    all.reduce<Fields>((left, keys) => removed(left, keys, 0) as Fields, object)
  return {
    known: (object) => {
      const kept = parts ? Object.fromEntries(Object.entries(object).filter(([key]) => isKept(key, parts))) : object
      return without(kept, known)
    },
    named: (object) => without(object, named),
  }
}

const isKept = (key: string, parts: readonly string[]): boolean =>
  key === 'apiVersion' || key === 'kind' || parts.includes(key)

/** @returns undefined where it is well-formed; else what is wrong */
export function faultOfPointer(pointer: string): string | undefined {
  if (!pointer.startsWith('/')) return 'a pointer begins with "/", such as /metadata/annotations'
  return /~(?![01])/.test(pointer) ? '"~" is written ~0, and "/" inside a key ~1' : undefined
}

function keysOfPointer(pointer: string): readonly Keys[] {
  if (faultOfPointer(pointer) !== undefined) return []
  return [
    pointer
      .slice(1)
      .split('/')
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~')),
  ]
}

function keysOfPath(text: string): readonly Keys[] {
  const { path } = parsePath(text)
  if (!path?.isSingle || path.segments.length === 0) return []
  const keys = path.segments.map((segment) =>
    segment.kind === 'key' ? segment.key : segment.kind === 'index' ? segment.index : '',
  )
  return [keys]
}

function removed(value: unknown, keys: Keys, at: number): unknown {
  const key = keys[at]
  if (key === undefined || typeof value !== 'object' || value === null) return value
  const isLast = at === keys.length - 1
  if (Array.isArray(value)) {
    const index = typeof key === 'number' ? key : /^(?:0|[1-9]\d{0,8})$/.test(key) ? Number(key) : -1
    if (index < 0 || index >= value.length) return value
    const after: unknown = isLast ? null : removed(value[index], keys, at + 1)
    return after === value[index] ? value : value.map((one: unknown, i) => (i === index ? after : one))
  }
  if (typeof key === 'number' || !isFields(value) || !Object.hasOwn(value, key)) return value
  if (isLast) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
  const after = removed(value[key], keys, at + 1)
  if (after === value[key]) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, name === key ? after : one]))
}
