import { isMap, type Json, own, setOwn } from '../schema/json.ts'
import type { Schema } from '../types.ts'
import { PatchError } from './error.ts'
import { idText, KeyedList } from './keyed-list.ts'

const MAX_DEPTH = 200
const DIRECTIVE = '$patch'
const RETAIN_KEYS = '$retainKeys'
const ORDER = '$setElementOrder/'
const DELETE_PRIMITIVES = '$deleteFromPrimitiveList/'

/**
 * Applies a strategic merge patch: as a merge patch, but lists whose schema says `merge` are merged by their key (or as
 * sets), and directives in the patch delete, replace, keep or order. Neither argument is changed.
 * @throws PatchError 400 for directives that make no sense, 422 for items without their merge key
 * @see Kubernetes documentation, "Update API objects in place using kubectl patch"
 */
export function applyStrategicPatch(doc: unknown, patch: unknown, schema: Schema | undefined): unknown {
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

const textsOf = (list: readonly unknown[]): ReadonlySet<string> => new Set(list.map(idText))

function withoutRepeats(list: readonly unknown[]): unknown[] {
  const first = placesOf(list)
  return list.filter((item, at) => first.get(idText(item)) === at)
}

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
  const result = new KeyedList(old, mergeKey)
  for (const item of patch) {
    if (!isMap(item)) throw new PatchError(422, `${field}: an item to merge must be an object`)
    const id = own(item, mergeKey)
    if (id === undefined)
      throw new PatchError(
        422,
        `map: ${JSON.stringify(item).slice(0, 200)} does not contain declared merge key: ${mergeKey}`,
      )
    if (item[DIRECTIVE] === 'merge')
      throw new PatchError(400, `${field}: merging lists cannot yet be specified in the patch`)
    if (item[DIRECTIVE] === 'delete') result.remove(id)
    else result.update(id, (live) => mergeMap(live ?? {}, item, items, depth + 1))
  }
  return result.items()
}

function deletePrimitives(result: Json, patch: Json): void {
  for (const [key, gone] of Object.entries(patch)) {
    if (!key.startsWith(DELETE_PRIMITIVES)) continue
    if (!Array.isArray(gone)) throw new PatchError(400, `${key} must be a list`)
    const field = key.slice(DELETE_PRIMITIVES.length)
    const list = own(result, field)
    if (!Array.isArray(list)) continue
    const texts = textsOf(gone)
    setOwn(
      result,
      field,
      list.filter((item) => !texts.has(idText(item))),
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
  const [inOrder, onServer] = [placesOf(order), placesOf(live)]
  const placed = list.map((item) => {
    const id = idText(idOf(item))
    return { item, place: inOrder.get(id) ?? -1, live: onServer.get(id) ?? -1 }
  })
  const named = placed.filter(({ place }) => place >= 0).sort((a, b) => a.place - b.place)
  const others = placed.filter(({ place }) => place < 0)
  const result: unknown[] = []
  let next = 0
  for (const { item, live: at } of named) {
    for (let other = others[next]; other && other.live < at; other = others[++next]) result.push(other.item)
    result.push(item)
  }
  return [...result, ...others.slice(next).map(({ item }) => item)]
}

/** The first place of each id. */
function placesOf(ids: readonly unknown[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  ids.forEach((id, at) => {
    const text = idText(id)
    if (!places.has(text)) places.set(text, at)
  })
  return places
}

/** The items of a patch must stand in the order the patch asks for. */
function checkOrder(items: readonly unknown[], order: unknown, mergeKey: string, field: string): void {
  if (!Array.isArray(order) || order.length === 0) return
  const idOf = (item: unknown) => (isMap(item) ? own(item, mergeKey) : item)
  const named = order.map((item) => idText(idOf(item)))
  let next = 0
  for (const item of items) {
    if (isMap(item) && item[DIRECTIVE] !== undefined) continue
    const at = named.indexOf(idText(idOf(item)), next)
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
