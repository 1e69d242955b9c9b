import { componentOf, objectMeta } from '../schema/components.ts'
import { isMap, type Json, own, stableText } from '../schema/json.ts'
import type { Schema } from '../types.ts'

/**
 * One step of a path, as FieldsV1 writes it: `f:name` a field, `k:{…}` a list item by its keys, `v:…` one by its value,
 * `i:0` one by its place.
 */
export type Step = string

/** What is known of a place in an object; undefined: nothing, so that values speak for themselves. */
export type ValueType = Schema | undefined

/** How a value is owned: as one thing, item by item, or field by field. */
export type Structure =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'list'; readonly atomic: boolean }
  | { readonly kind: 'map'; readonly atomic: boolean }

const LEAF: Structure = { kind: 'leaf' }

/** A value's own shape wins where the schema says another: such a value is not valid, but may be stored already. */
export function structureOf(type: ValueType, value: unknown): Structure {
  if (Array.isArray(value)) {
    const listType = type?.['x-kubernetes-list-type']
    return { kind: 'list', atomic: listType !== 'set' && listType !== 'map' }
  }
  if (isMap(value)) return { kind: 'map', atomic: type?.['x-kubernetes-map-type'] === 'atomic' }
  if (value !== null || !type) return LEAF
  // Of a null only the schema can say what it stands for.
  if (type.type === 'array') return structureOf(type, [])
  return type.type === 'object' ? structureOf(type, {}) : LEAF
}

const resources = new WeakMap<Schema, Schema>()

/** A schema with what every object has: identity, and metadata as ObjectMeta. */
export function resourceType(schema: Schema): Schema {
  const said = schema.properties?.metadata
  if (said && componentOf(said) === componentOf(objectMeta)) return schema
  let complete = resources.get(schema)
  if (!complete) {
    const properties = {
      ...schema.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: objectMeta,
    }
    complete = { ...schema, properties }
    // The copy stands for an object already: its mark would only lead here again.
    delete complete['x-kubernetes-embedded-resource']
    resources.set(schema, complete)
  }
  return complete
}

const open = (type: ValueType): ValueType => (type?.['x-kubernetes-embedded-resource'] ? resourceType(type) : type)

/** @returns the type one step down, and whether that step is a field declared by name */
export function childType(type: ValueType, step: Step): { readonly type: ValueType; readonly named: boolean } {
  if (!type) return { type: undefined, named: false }
  if (!step.startsWith('f:')) return { type: open(type.items), named: false }
  const name = step.slice(2)
  const { properties, additionalProperties } = type
  if (properties && Object.hasOwn(properties, name)) return { type: open(properties[name]), named: true }
  return { type: typeof additionalProperties === 'object' ? open(additionalProperties) : undefined, named: false }
}

/** What tells an item of a list from its siblings. */
export function itemStep(type: ValueType, item: unknown, index: number): Step {
  if (type?.['x-kubernetes-list-type'] === 'set') return `v:${stableText(item)}`
  const keys = type?.['x-kubernetes-list-map-keys']
  if (!keys || !isMap(item)) return `i:${index}`
  const id: Json = {}
  for (const key of keys) id[key] = own(item, key) ?? type?.items?.properties?.[key]?.default ?? null
  return `k:${stableText(id)}`
}
