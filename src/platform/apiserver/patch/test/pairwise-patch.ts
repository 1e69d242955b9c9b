import { equalJson, isMap, type Json, own, setOwn } from '../../schema/json.ts'
import type { Schema } from '../../types.ts'
import { PatchError } from '../error.ts'

const MAX_DEPTH = 200
const DIRECTIVE = '$patch'
const RETAIN_KEYS = '$retainKeys'
const ORDER = '$setElementOrder/'
const DELETE_PRIMITIVES = '$deleteFromPrimitiveList/'

/** The rules with every item compared with every other: too slow to serve, and simple enough to be believed. */
export function applyPairwise(doc: unknown, patch: unknown, schema: Schema | undefined): unknown {
  if (!isMap(patch)) throw new PatchError(400, 'a strategic merge patch is an object')
  return mergeMap(isMap(doc) ? doc : {}, patch, schema, 0)
}

const strategiesOf = (schema: Schema | undefined): readonly string[] =>
  schema?.['x-kubernetes-patch-strategy']?.split(',') ?? []

const fieldSchema = (schema: Schema | undefined, key: string): Schema | undefined => {
  const properties = schema?.properties
  if (properties && Object.hasOwn(properties, key)) return properties[key]
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

function mergeMap(original: Json, patch: Json, schema: Schema | undefined, depth: number): Json {
  if (depth > MAX_DEPTH) throw new PatchError(413, `the patch is nested deeper than ${MAX_DEPTH} levels`)
  const directive = own(patch, DIRECTIVE)
  if (directive === 'replace') return (whole({ ...patch, [DIRECTIVE]: undefined }) ?? {}) as Json
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge')
    throw new PatchError(400, `unknown directive $patch: ${JSON.stringify(directive)}`)
  const result: Json = { ...original }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue
    const merged = value === null ? undefined : mergeField(result, value, fieldSchema(schema, key), patch, key, depth)
    if (merged === undefined) delete result[key]
    else setOwn(result, key, merged)
  }
  deletePrimitives(result, patch)
  orderLists(result, original, patch, schema)
  retainKeys(result, patch)
  return result
}

/** @returns undefined where nothing is to stand there */
function mergeField(
  result: Json,
  value: unknown,
  schema: Schema | undefined,
  patch: Json,
  key: string,
  depth: number,
): unknown {
  const live = own(result, key)
  const strategies = strategiesOf(schema)
  if (isMap(value))
    return isMap(live) && !strategies.includes('replace') ? mergeMap(live, value, schema, depth + 1) : whole(value)
  if (!Array.isArray(value)) return value
  const mergeKey = schema?.['x-kubernetes-patch-merge-key']
  if (mergeKey !== undefined) checkOrder(value, own(patch, ORDER + key), mergeKey, key)
  if (!strategies.includes('merge') || !Array.isArray(live)) return whole(value)
  const idOf = (item: unknown) => (mergeKey !== undefined && isMap(item) ? own(item, mergeKey) : item)
  const merged =
    mergeKey === undefined
      ? withoutRepeats([...live, ...value])
      : mergeItems(live, value, mergeKey, schema?.items, key, depth)
  return ordered(merged, value.map(idOf), live.map(idOf), idOf)
}

const withoutRepeats = (list: readonly unknown[]): unknown[] =>
  list.filter((item, at) => list.findIndex(same(item)) === at)

const same = (item: unknown) => (other: unknown) => equalJson(item, other)

function mergeItems(
  old: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string,
  items: Schema | undefined,
  field: string,
  depth: number,
): unknown[] {
  if (patch.some((item) => isMap(item) && item[DIRECTIVE] === 'replace'))
    return whole(patch.filter((item) => !(isMap(item) && item[DIRECTIVE] === 'replace'))) as unknown[]
  let result: unknown[] = [...old]
  for (const item of patch) {
    if (!isMap(item)) throw new PatchError(422, `${field}: an item to merge must be an object`)
    const id = own(item, mergeKey)
    if (id === undefined)
      throw new PatchError(
        422,
        `map: ${JSON.stringify(item).slice(0, 200)} does not contain declared merge key: ${mergeKey}`,
      )
    const isIt = (other: unknown) => isMap(other) && equalJson(own(other, mergeKey), id)
    if (item[DIRECTIVE] === 'merge')
      throw new PatchError(400, `${field}: merging lists cannot yet be specified in the patch`)
    if (item[DIRECTIVE] === 'delete') {
      result = result.filter((other) => !isIt(other))
      continue
    }
    const at = result.findIndex(isIt)
    const merged = mergeMap(at < 0 ? {} : (result[at] as Json), item, items, depth + 1)
    if (at < 0) result.push(merged)
    else result[at] = merged
  }
  return result
}

function deletePrimitives(result: Json, patch: Json): void {
  for (const [key, gone] of Object.entries(patch)) {
    if (!key.startsWith(DELETE_PRIMITIVES)) continue
    if (!Array.isArray(gone)) throw new PatchError(400, `${key} must be a list`)
    const field = key.slice(DELETE_PRIMITIVES.length)
    const list = own(result, field)
    if (Array.isArray(list))
      setOwn(
        result,
        field,
        list.filter((item) => !gone.some(same(item))),
      )
  }
}

function orderLists(result: Json, original: Json, patch: Json, schema: Schema | undefined): void {
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(ORDER)) continue
    if (!Array.isArray(order)) throw new PatchError(400, `${key} must be a list`)
    const field = key.slice(ORDER.length)
    const list = own(result, field)
    if (!Array.isArray(list)) continue
    const mergeKey = fieldSchema(schema, field)?.['x-kubernetes-patch-merge-key']
    const idOf = (item: unknown) => (mergeKey !== undefined && isMap(item) ? own(item, mergeKey) : item)
    const live = own(original, field)
    setOwn(result, field, ordered(list, order.map(idOf), Array.isArray(live) ? live.map(idOf) : [], idOf))
  }
}

/**
 * The items named in `order` come in that order. The others, which only the server knows, keep their order among
 * themselves and stand before the first named item that followed them on the server.
 */
function ordered(
  list: readonly unknown[],
  order: readonly unknown[],
  live: readonly unknown[],
  idOf: (item: unknown) => unknown,
): unknown[] {
  const place = (ids: readonly unknown[], item: unknown) => ids.findIndex(same(idOf(item)))
  const named = list.filter((item) => place(order, item) >= 0).sort((a, b) => place(order, a) - place(order, b))
  const others = list.filter((item) => place(order, item) < 0)
  const result: unknown[] = []
  while (named.length > 0 && others.length > 0) {
    const at = place(live, named[0])
    const takesOther = at >= 0 && place(live, others[0]) < at
    result.push(takesOther ? others.shift() : named.shift())
  }
  return [...result, ...named, ...others]
}

/** The items of a patch must stand in the order the patch asks for. */
function checkOrder(items: readonly unknown[], order: unknown, mergeKey: string, field: string): void {
  if (!Array.isArray(order) || order.length === 0) return
  const idOf = (item: unknown) => (isMap(item) ? own(item, mergeKey) : item)
  let next = 0
  for (const item of items) {
    if (isMap(item) && item[DIRECTIVE] !== undefined) continue
    const at = order.findIndex((named, index) => index >= next && equalJson(idOf(named), idOf(item)))
    if (at < 0) throw new PatchError(400, `${field}: the order of the patch doesn't match $setElementOrder/${field}`)
    next = at + 1
  }
}

function retainKeys(result: Json, patch: Json): void {
  const kept = own(patch, RETAIN_KEYS)
  if (kept === undefined) return
  if (!Array.isArray(kept)) throw new PatchError(400, `${RETAIN_KEYS} must be a list`)
  const names = new Set(kept)
  for (const [key, value] of Object.entries(patch))
    if (!key.startsWith('$') && value !== null && !names.has(key))
      throw new PatchError(400, `${RETAIN_KEYS} does not name ${key}, which the patch sets`)
  for (const key of Object.keys(result)) if (!names.has(key)) delete result[key]
}

/**
 * What is put where nothing stood: nulls and directives are no data, and what a directive speaks of is not there.
 * @returns undefined where nothing is left to put
 */
function whole(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(whole).filter((item) => item !== undefined)
  if (!isMap(value)) return value
  if (own(value, DIRECTIVE) !== undefined) return undefined
  const result: Json = {}
  for (const [key, item] of Object.entries(value)) {
    if (item === null || isDirective(key)) continue
    const kept = whole(item)
    if (kept !== undefined) setOwn(result, key, kept)
  }
  return result
}

const isDirective = (key: string): boolean =>
  key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(ORDER) || key.startsWith(DELETE_PRIMITIVES)
