import { invariant } from '#model'

/** A JSON Schema as TypeBox writes it: the part of it that snapshots are made of. */
export interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
  /** an object that may be null keeps the columns it would have if it were always there */
  readonly flat?: boolean
}

/** What values of a column look like. `json`: anything else, carried as its JSON. */
export type Shape = { readonly nullable: boolean } & (
  | { readonly kind: 'boolean' }
  | { readonly kind: 'number'; readonly isInteger: boolean }
  /** `words`: the only ones there are, where they are listed */
  | { readonly kind: 'text'; readonly words: readonly string[] | undefined }
  | { readonly kind: 'list'; readonly items: Shape }
  | { readonly kind: 'record'; readonly values: Shape }
  /** `flat`: its parts are columns of the row's table, null all together */
  | { readonly kind: 'object'; readonly properties: readonly Property[]; readonly flat?: true }
  | { readonly kind: 'json' }
)

export interface Property {
  readonly name: string
  readonly optional: boolean
  readonly shape: Shape
}

export function shapeOf(schema: Schema, nullable = false): Shape {
  if (schema.anyOf) {
    const shape = unionShape(schema.anyOf, nullable)
    return schema.flat && shape.kind === 'object' ? { ...shape, flat: true } : shape
  }
  if (typeof schema.const === 'string') return { kind: 'text', words: [schema.const], nullable }
  switch (schema.type) {
    case 'boolean':
      return { kind: 'boolean', nullable }
    case 'number':
    case 'integer':
      return { kind: 'number', isInteger: schema.type === 'integer', nullable }
    case 'string':
      return { kind: 'text', words: undefined, nullable }
    case 'array':
      return schema.items ? { kind: 'list', items: shapeOf(schema.items), nullable } : { kind: 'json', nullable }
    case 'object':
      return objectShape(schema, nullable)
    default:
      return { kind: 'json', nullable }
  }
}

function unionShape(all: readonly Schema[], nullable: boolean): Shape {
  const some = all.filter(({ type }) => type !== 'null')
  const orNull = nullable || some.length < all.length
  const [only] = some
  if (only && some.length === 1) return shapeOf(only, orNull)
  const words = some.map((one) => one.const).filter((word) => typeof word === 'string')
  return words.length === some.length ? { kind: 'text', words, nullable: orNull } : { kind: 'json', nullable: orNull }
}

function objectShape({ properties, required = [], patternProperties }: Schema, nullable: boolean): Shape {
  const [values] = Object.values(patternProperties ?? {})
  if (values && !properties) return { kind: 'record', values: shapeOf(values), nullable }
  if (!properties) return { kind: 'json', nullable }
  const shaped = Object.entries(properties).map(([name, schema]) => {
    // One that every object has would seem to be there where it is not; `__proto__` cannot be in a literal.
    invariant(!(name in {}), 'a property of a snapshot has a name of its own')
    return { name, optional: !required.includes(name), shape: shapeOf(schema) }
  })
  return { kind: 'object', properties: shaped, nullable }
}
