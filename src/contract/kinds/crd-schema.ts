/** A schema as a CustomResourceDefinition may hold it ("structural"): plain JSON. */
export interface StructuralSchema {
  type?: string
  description?: string
  format?: string
  default?: unknown
  nullable?: true
  enum?: unknown[]
  properties?: Record<string, StructuralSchema>
  additionalProperties?: StructuralSchema
  required?: string[]
  anyOf?: StructuralSchema[]
  items?: StructuralSchema
  pattern?: string
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: true
  exclusiveMaximum?: true
  multipleOf?: number
  [extension: `x-kubernetes-${string}`]: unknown
}

type Node = Readonly<Record<string, unknown>>

/** Keys that mean nothing to an API server and may go: identity of the schema, and our own sentence for a person. */
const DROPPED = new Set(['$id', '$schema', 'title', 'examples', 'faultMessage'])
const STRING = ['minLength', 'maxLength', 'pattern', 'format']
const NUMBER = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'format']
const BY_TYPE: Readonly<Record<string, readonly string[]>> = {
  string: STRING,
  number: NUMBER,
  integer: NUMBER,
  boolean: [],
  array: ['items', 'minItems', 'maxItems'],
  object: ['properties', 'required', 'patternProperties', 'additionalProperties', 'minProperties', 'maxProperties'],
}
/** TypeBox writes a record of any keys with one of these. */
const ANY_KEY = new Set(['^.*$', '^(.*)$'])
const NOT_IN_RE2 = /\(\?[=!<]|\\[1-9]|\(\?P?=/

/** The schema says something that no CustomResourceDefinition can say. `at` is the place, such as `.spec.labels`. */
class NotStructural extends Error {
  override readonly name = 'NotStructural'
  constructor(at: string, why: string) {
    super(`${at || '.'}: ${why}`)
  }
}

/**
 * Turns a JSON schema made with TypeBox into the structural form that CustomResourceDefinitions demand: references inlined
 * by refusal, every node typed, constants and unions of constants as `enum`, "or null" as `nullable`, records as
 * `additionalProperties`, open values as `x-kubernetes-preserve-unknown-fields`.
 * @throws Error naming the place for anything it cannot say without changing the meaning
 * @see Kubernetes documentation, "Specifying a structural schema"
 */
export function toStructural(schema: unknown, at = ''): StructuralSchema {
  const node = asNode(schema, at)
  for (const key of ['$ref', '$defs', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'prefixItems', 'uniqueItems']) {
    if (node[key] !== undefined) throw new NotStructural(at, `"${key}" has no structural form here`)
  }
  const plain = withoutCombinators(node, at)
  const { annotations, rest } = split(plain)
  const isOpen = plain['x-kubernetes-int-or-string'] === true
  return { ...annotations, ...(isOpen ? {} : typed(rest, at)) }
}

function asNode(schema: unknown, at: string): Node {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new NotStructural(at, `a schema must be an object, not ${JSON.stringify(schema)}`)
  }
  return schema as Node
}

/** Replaces `anyOf` and `const` by what structural schemas have for them. */
function withoutCombinators(node: Node, at: string): Node {
  if (node.const !== undefined) {
    const { const: value, ...rest } = node
    return { ...rest, type: typeOfValue(value, at), enum: [value] }
  }
  if (node.anyOf === undefined) return node
  const { anyOf, ...outer } = node
  const branches = (anyOf as readonly unknown[]).map((branch) => asNode(branch, at))
  const others = branches.filter((branch) => branch.type !== 'null')
  const nullable = others.length < branches.length ? { nullable: true } : {}
  if (others.length === 1) return { ...withoutCombinators(others[0] ?? {}, at), ...outer, ...nullable }
  if (others.every((branch) => branch.const !== undefined)) {
    const values = others.map((branch) => branch.const)
    const types = new Set(values.map((value) => typeOfValue(value, at)))
    if (types.size > 1) throw new NotStructural(at, 'a union of constants must be of one type')
    // A nullable enum must list null as well, or the API server refuses null in spite of `nullable`.
    return { ...outer, type: [...types][0], enum: 'nullable' in nullable ? [...values, null] : values, ...nullable }
  }
  const types = others.map((branch) => branch.type)
  const bare = others.every((branch) => keysOf(branch).length === 1)
  if (bare && types.length === 2 && types.includes('integer') && types.includes('string')) {
    return { ...outer, ...nullable, 'x-kubernetes-int-or-string': true }
  }
  throw new NotStructural(at, 'a union needs branches that are constants, "or null", or integer-or-string')
}

function typeOfValue(value: unknown, at: string): string {
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  throw new NotStructural(at, `${JSON.stringify(value)} cannot be a constant`)
}

/** TypeBox marks its own notes with a tilde; they are not part of the schema. */
const keysOf = (node: Node) => Object.keys(node).filter((key) => !key.startsWith('~') && node[key] !== undefined)

function split(node: Node): { annotations: StructuralSchema; rest: Node } {
  const annotations: Record<string, unknown> = {}
  const rest: Record<string, unknown> = {}
  for (const key of keysOf(node)) {
    if (DROPPED.has(key)) continue
    const isNote = key === 'description' || key === 'default' || key === 'nullable' || key.startsWith('x-kubernetes-')
    if (isNote) annotations[key] = node[key]
    else rest[key] = node[key]
  }
  return { annotations, rest }
}

function typed(node: Node, at: string): StructuralSchema {
  const { type, enum: values, ...rest } = node
  if (type === undefined) {
    if (keysOf(rest).length > 0 || values !== undefined) throw new NotStructural(at, 'every node needs a type')
    return { 'x-kubernetes-preserve-unknown-fields': true }
  }
  const allowed = typeof type === 'string' ? BY_TYPE[type] : undefined
  if (!allowed) throw new NotStructural(at, `type ${JSON.stringify(type)} has no structural form`)
  const unknown = keysOf(rest).filter((key) => !allowed.includes(key))
  if (unknown.length > 0) throw new NotStructural(at, `"${unknown.join('", "')}" on type ${type} is not understood`)
  const base = { type: type as string, ...(values !== undefined && { enum: [...(values as unknown[])] }) }
  if (type === 'object') return { ...base, ...objectOf(rest, at) }
  if (type === 'array') return { ...base, ...arrayOf(rest, at) }
  if (type === 'string') return { ...base, ...stringOf(rest, at) }
  return { ...base, ...numberOf(rest) }
}

function objectOf(node: Node, at: string): StructuralSchema {
  const { properties, patternProperties, additionalProperties, required, ...sizes } = node
  const fields = Object.entries((properties ?? {}) as Record<string, unknown>)
  const result: StructuralSchema = { ...(sizes as StructuralSchema) }
  if (fields.length > 0) {
    result.properties = Object.fromEntries(fields.map(([name, field]) => [name, toStructural(field, `${at}.${name}`)]))
  }
  if (Array.isArray(required) && required.length > 0) result.required = [...(required as string[])]
  const values = valuesOf(patternProperties, additionalProperties, at)
  if (values === undefined) return result
  if (values === true) return { ...result, 'x-kubernetes-preserve-unknown-fields': true }
  if (fields.length > 0) throw new NotStructural(at, 'an object has named properties or free keys, not both')
  return { ...result, additionalProperties: toStructural(values, `${at}.*`) }
}

/** The schema of free keys; true: anything; undefined: there are none (an API server prunes them). */
function valuesOf(patterns: unknown, additional: unknown, at: string): unknown {
  if (patterns === undefined) {
    if (additional === false) throw new NotStructural(at, 'unknown fields are pruned by the API server, never refused')
    return additional
  }
  const [entry, ...more] = Object.entries(patterns as Record<string, unknown>)
  if (!entry || more.length > 0 || !ANY_KEY.has(entry[0])) throw new NotStructural(at, 'keys cannot be restricted')
  return entry[1]
}

function arrayOf(node: Node, at: string): StructuralSchema {
  const { items, ...sizes } = node
  if (items === undefined || Array.isArray(items)) throw new NotStructural(at, 'a list needs one schema for its items')
  return { items: toStructural(items, `${at}[]`), ...(sizes as StructuralSchema) }
}

function stringOf(node: Node, at: string): StructuralSchema {
  if (typeof node.pattern === 'string' && NOT_IN_RE2.test(node.pattern)) {
    throw new NotStructural(at, `pattern ${node.pattern} uses what RE2 does not have`)
  }
  return { ...(node as StructuralSchema) }
}

/** JSON Schema writes an exclusive bound as a number, the dialect of Kubernetes as a flag beside the bound. */
function numberOf(node: Node): StructuralSchema {
  const { exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = node as Record<string, number>
  const result: StructuralSchema = { ...(rest as StructuralSchema) }
  if (above !== undefined && !(rest.minimum !== undefined && rest.minimum > above)) {
    result.minimum = above
    result.exclusiveMinimum = true
  }
  if (below !== undefined && !(rest.maximum !== undefined && rest.maximum < below)) {
    result.maximum = below
    result.exclusiveMaximum = true
  }
  return result
}
