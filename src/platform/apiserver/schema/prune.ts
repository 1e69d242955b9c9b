import type { Schema } from '../types.ts'
import { objectMeta } from './components.ts'
import { isMap, type Json, setOwn } from './json.ts'
import { childPath } from './validate.ts'

/**
 * Drops the fields an object's schema does not know.
 * @returns the value without them (the same value where there are none), and their paths in order
 */
export function prune<T>(schema: Schema, value: T): { value: T; unknown: string[] } {
  const unknown: string[] = []
  const pruned = pruneResource(schema, value, '', unknown)
  return { value: pruned as T, unknown: unknown.sort() }
}

const PARTS_OF_EVERY_OBJECT: readonly string[] = ['apiVersion', 'kind', 'metadata']

/** An object with a kind of its own: its identity and metadata are known without being in the schema. */
function pruneResource(schema: Schema, value: unknown, path: string, unknown: string[]): unknown {
  if (!isMap(value)) return value
  const pruned = pruneMap(schema, value, path, unknown, PARTS_OF_EVERY_OBJECT)
  if (!isMap(value.metadata)) return pruned
  const metadata = pruneValue(objectMeta, value.metadata, childPath(path, 'metadata'), unknown)
  return metadata === pruned.metadata ? pruned : { ...pruned, metadata }
}

const NOTHING: Schema = { type: 'object' }

function pruneValue(schema: Schema, value: unknown, path: string, unknown: string[]): unknown {
  if (Array.isArray(value)) {
    // A list where none may stand: its items hold nothing that is known.
    const items = schema.items ?? (schema.type && !schema['x-kubernetes-preserve-unknown-fields'] ? NOTHING : undefined)
    if (!items) return value
    const pruned = value.map((item, at) => pruneValue(items, item, `${path}[${at}]`, unknown))
    return pruned.some((item, at) => item !== value[at]) ? pruned : value
  }
  if (!isMap(value)) return value
  if (schema['x-kubernetes-embedded-resource']) return pruneResource(schema, value, path, unknown)
  return pruneMap(schema, value, path, unknown, [])
}

function pruneMap(schema: Schema, value: Json, path: string, unknown: string[], kept: readonly string[]): Json {
  const { properties, additionalProperties } = schema
  const keepsAll = schema['x-kubernetes-preserve-unknown-fields'] === true || additionalProperties === true
  if (!properties && !additionalProperties && (keepsAll || !schema.type)) return value
  const result: Json = {}
  let changed = false
  for (const [name, item] of Object.entries(value)) {
    const known = properties && Object.hasOwn(properties, name) ? properties[name] : undefined
    const property = known ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    if (!property && !keepsAll && !kept.includes(name)) {
      unknown.push(childPath(path, name))
      changed = true
      continue
    }
    const pruned = property && !kept.includes(name) ? pruneValue(property, item, childPath(path, name), unknown) : item
    if (pruned !== item) changed = true
    setOwn(result, name, pruned)
  }
  return changed ? result : value
}
