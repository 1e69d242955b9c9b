import type { Schema } from '../types.ts'
import { componentOf, objectMeta } from './components.ts'
import { isMap, type Json, setOwn } from './json.ts'

/**
 * Fills in what the schema says is meant where nothing is said. A null in a field that cannot be null counts as nothing
 * and goes. Neither the value nor the schema is changed; what needs no change is shared.
 */
export function applyDefaults<T>(schema: Schema, value: T): T {
  const filled = fill(schema, value)
  if (!isMap(filled)) return filled as T
  const said = schema.properties?.metadata
  const metadata = filled.metadata
  if (!isMap(metadata) || (said && componentOf(said) === componentOf(objectMeta))) return filled as T
  const clean = fill(objectMeta, metadata)
  return (clean === metadata ? filled : { ...filled, metadata: clean }) as T
}

/** Builds a copy only once something differs. */
class Copy {
  #copy: Json | undefined
  readonly #source: Json

  constructor(source: Json) {
    this.#source = source
  }

  set(name: string, value: unknown): void {
    this.#copy ??= { ...this.#source }
    setOwn(this.#copy, name, value)
  }

  remove(name: string): void {
    this.#copy ??= { ...this.#source }
    delete this.#copy[name]
  }

  get result(): Json {
    return this.#copy ?? this.#source
  }
}

function fill(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema
    if (!items) return value
    const filled = value.map((item) => fill(items, item))
    return filled.some((item, at) => item !== value[at]) ? filled : value
  }
  return isMap(value) ? fillMap(schema, value) : value
}

function fillMap(schema: Schema, value: Json): Json {
  const { properties = {}, additionalProperties } = schema
  const copy = new Copy(value)
  for (const [name, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    const property = known ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    if (!property) continue
    if (item === null && property.nullable !== true) {
      if (property.default === undefined) copy.remove(name)
      else copy.set(name, fill(property, structuredClone(property.default)))
      continue
    }
    const filled = fill(property, item)
    if (filled !== item) copy.set(name, filled)
  }
  for (const [name, property] of Object.entries(properties))
    if (property.default !== undefined && value[name] === undefined)
      copy.set(name, fill(property, structuredClone(property.default)))
  if (componentOf(schema) === componentOf(objectMeta))
    for (const [name, item] of Object.entries(copy.result)) if (isEmpty(item)) copy.remove(name)
  return copy.result
}

/** Metadata does not tell "none" from "an empty list"; neither does any other reader of it. */
const isEmpty = (value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : isMap(value) && Object.keys(value).length === 0
