import type { FieldFault, Schema } from '../types.ts'
import { equalJson, isMap } from './json.ts'
import { compilePattern } from './pattern.ts'
import { prune } from './prune.ts'
import { childPath, shown, validateValue } from './validate.ts'

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const MAX_DEPTH = 100

/**
 * Why a schema cannot stand in a CustomResourceDefinition; empty where it can. Paths start at the schema itself, whose own
 * path is ''.
 * @see Kubernetes documentation, "Specifying a structural schema"
 */
export function checkStructural(schema: Schema): FieldFault[] {
  const faults: FieldFault[] = []
  if (!isMap(schema as unknown)) return [required('', 'schemas are required')]
  const misshapen = shapeFaults(schema, '', 0)
  if (misshapen.length > 0) return misshapen
  const { type } = schema
  if (!type) faults.push(required('type', 'must not be empty at the root'))
  else if (type !== 'object') faults.push(wrong('type', type, 'must be object at the root'))
  if (schema.nullable) faults.push(forbidden('nullable', 'nullable cannot be true at the root'))
  checkNode(schema, '', '', faults, 0)
  checkRootMetadata(schema, faults)
  return faults
}

type Shape = 'string' | 'number' | 'boolean' | 'strings' | 'list' | 'schema' | 'schemas' | 'schemaMap' | 'schemaOrFlag'

const SHAPES: Readonly<Record<string, Shape>> = {
  type: 'string',
  format: 'string',
  description: 'string',
  title: 'string',
  pattern: 'string',
  nullable: 'boolean',
  uniqueItems: 'boolean',
  exclusiveMinimum: 'boolean',
  exclusiveMaximum: 'boolean',
  minimum: 'number',
  maximum: 'number',
  multipleOf: 'number',
  minLength: 'number',
  maxLength: 'number',
  minItems: 'number',
  maxItems: 'number',
  minProperties: 'number',
  maxProperties: 'number',
  required: 'strings',
  enum: 'list',
  items: 'schema',
  not: 'schema',
  allOf: 'schemas',
  anyOf: 'schemas',
  oneOf: 'schemas',
  properties: 'schemaMap',
  additionalProperties: 'schemaOrFlag',
  'x-kubernetes-preserve-unknown-fields': 'boolean',
  'x-kubernetes-int-or-string': 'boolean',
  'x-kubernetes-embedded-resource': 'boolean',
  'x-kubernetes-list-type': 'string',
  'x-kubernetes-map-type': 'string',
  'x-kubernetes-list-map-keys': 'strings',
}

/** Keywords of the wrong type: what comes after relies on their being right. */
function shapeFaults(schema: unknown, path: string, depth: number): FieldFault[] {
  if (!isMap(schema)) return [wrong(path, schema, 'must be a schema')]
  if (depth > MAX_DEPTH) return [forbidden(path, `schemas may not be nested deeper than ${MAX_DEPTH} levels`)]
  const below = (value: unknown, name: string) => shapeFaults(value, childPath(path, name), depth + 1)
  return Object.entries(schema).flatMap(([name, value]): FieldFault[] => {
    const shape = Object.hasOwn(SHAPES, name) ? SHAPES[name] : undefined
    if (shape === undefined || value === undefined) return []
    const misfit = [wrong(childPath(path, name), value, `must be of type ${shape}`)]
    if (shape === 'schema') return name === 'items' && Array.isArray(value) ? [] : below(value, name)
    if (shape === 'schemaOrFlag') return typeof value === 'boolean' ? [] : below(value, name)
    if (shape === 'schemaMap')
      return isMap(value) ? Object.entries(value).flatMap(([key, item]) => below(item, `${name}[${key}]`)) : misfit
    if (shape === 'schemas')
      return Array.isArray(value) ? value.flatMap((item, at) => below(item, `${name}[${at}]`)) : misfit
    if (shape === 'list') return Array.isArray(value) ? [] : misfit
    if (shape === 'strings')
      return Array.isArray(value) && value.every((item) => typeof item === 'string') ? [] : misfit
    return typeof value === shape ? [] : misfit
  })
}

const required = (path: string, why: string): FieldFault => ({
  reason: 'FieldValueRequired',
  path,
  message: `Required value: ${why}`,
})
const forbidden = (path: string, why: string): FieldFault => ({
  reason: 'FieldValueForbidden',
  path,
  message: `Forbidden: ${why}`,
})
const wrong = (path: string, value: unknown, why: string): FieldFault => ({
  reason: 'FieldValueInvalid',
  path,
  message: `Invalid value: ${shown(value)}: ${why}`,
})
const notSupported = (path: string, value: unknown, allowed: readonly string[]): FieldFault => ({
  reason: 'FieldValueNotSupported',
  path,
  message: `Unsupported value: ${shown(value)}: supported values: ${allowed.map(shown).join(', ')}`,
})

/** `where` completes "must not be empty for specified …"; '' is the root. */
function checkNode(schema: Schema, path: string, where: string, faults: FieldFault[], depth: number): void {
  if (!isMap(schema as unknown)) return void faults.push(wrong(path, schema, 'must be a schema'))
  if (depth > MAX_DEPTH)
    return void faults.push(forbidden(path, `schemas may not be nested deeper than ${MAX_DEPTH} levels`))
  const at = (name: string) => childPath(path, name)
  checkForbidden(schema, at, faults)
  // What a reference would bring is not known: nothing else can be said of this place.
  if (schema.$ref !== undefined) return
  checkTypeOf(schema, at, where, faults)
  checkExtensions(schema, at, faults)
  checkDefault(schema, at, faults)
  if (schema.pattern !== undefined) {
    const pattern = compilePattern(schema.pattern)
    if (pattern instanceof Error)
      faults.push(
        wrong(at('pattern'), schema.pattern, `must be a valid regular expression, but isn't: ${pattern.message}`),
      )
  }
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    checkNode(property, at(`properties[${name}]`), 'object fields', faults, depth + 1)
  if (typeof schema.additionalProperties === 'object')
    checkNode(schema.additionalProperties, at('additionalProperties'), 'object fields', faults, depth + 1)
  if (schema.items && !Array.isArray(schema.items))
    checkNode(schema.items, at('items'), 'array items', faults, depth + 1)
  for (const [where, branch] of branches(schema, at)) checkBranch(branch, where, faults, depth + 1)
}

function checkForbidden(schema: Schema, at: (name: string) => string, faults: FieldFault[]): void {
  for (const name of ['$ref', 'id', 'definitions', 'dependencies', 'patternProperties', 'additionalItems'])
    if (Object.hasOwn(schema, name)) faults.push(forbidden(at(name), `${name} is not supported`))
  if (schema.uniqueItems)
    faults.push(
      forbidden(at('uniqueItems'), 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'),
    )
  if (schema.properties && schema.additionalProperties)
    faults.push(forbidden(at('additionalProperties'), 'additionalProperties and properties are mutual exclusive'))
  if (Array.isArray(schema.items)) faults.push(forbidden(at('items'), 'items must be a schema object and not an array'))
}

function checkTypeOf(schema: Schema, at: (name: string) => string, where: string, faults: FieldFault[]): void {
  const { type } = schema
  const open = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields']
  if (!type) {
    if (where && !open) faults.push(required(at('type'), `must not be empty for specified ${where}`))
  } else if (!TYPES.includes(type)) faults.push(notSupported(at('type'), type, TYPES))
  if (type === 'array' && !schema.items) faults.push(required(at('items'), 'must be specified'))
}

function checkExtensions(schema: Schema, at: (name: string) => string, faults: FieldFault[]): void {
  const { type } = schema
  if (schema['x-kubernetes-preserve-unknown-fields'] === false)
    faults.push(wrong(at('x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'))
  if (schema['x-kubernetes-embedded-resource']) {
    if (!schema.properties && !schema['x-kubernetes-preserve-unknown-fields'])
      faults.push(
        required(
          at('properties'),
          'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
        ),
      )
    if (type !== 'object')
      faults.push(wrong(at('type'), type ?? '', 'must be object if x-kubernetes-embedded-resource is true'))
  }
  const mapType = schema['x-kubernetes-map-type']
  if (mapType !== undefined && !['atomic', 'granular'].includes(mapType))
    faults.push(notSupported(at('x-kubernetes-map-type'), mapType, ['atomic', 'granular']))
  if (mapType !== undefined && type !== 'object')
    faults.push(wrong(at('type'), type ?? '', 'must be object if x-kubernetes-map-type is specified'))
  checkListType(schema, at, faults)
}

function checkListType(schema: Schema, at: (name: string) => string, faults: FieldFault[]): void {
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys']
  if (listType === undefined) {
    if (keys)
      faults.push(wrong(at('x-kubernetes-list-type'), '', 'must be map if x-kubernetes-list-map-keys is non-empty'))
    return
  }
  if (!['atomic', 'set', 'map'].includes(listType))
    faults.push(notSupported(at('x-kubernetes-list-type'), listType, ['atomic', 'set', 'map']))
  if (schema.type !== 'array')
    faults.push(wrong(at('type'), schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'))
  const items = Array.isArray(schema.items) ? undefined : schema.items
  if (listType === 'map') checkMapKeys(items, keys, at, faults)
  if (listType === 'set') checkSetItems(items, at, faults)
}

function checkMapKeys(
  items: Schema | undefined,
  keys: readonly string[] | undefined,
  at: (name: string) => string,
  faults: FieldFault[],
): void {
  if (!keys?.length)
    faults.push(required(at('x-kubernetes-list-map-keys'), 'must not be empty if x-kubernetes-list-type is map'))
  if (!items) return
  if (items.type !== 'object')
    faults.push(
      wrong(at('items.type'), items.type ?? '', "must be object if parent array's x-kubernetes-list-type is map"),
    )
  else if (keys?.some((key) => !items.properties || !Object.hasOwn(items.properties, key)))
    faults.push(wrong(at('x-kubernetes-list-map-keys'), keys, 'entries must all be names of item properties'))
  else
    for (const key of keys ?? [])
      if (items.properties?.[key]?.default === undefined && !items.required?.includes(key))
        faults.push(
          required(
            at(`items.properties[${key}].default`),
            'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
          ),
        )
}

function checkSetItems(items: Schema | undefined, at: (name: string) => string, faults: FieldFault[]): void {
  if (items?.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic')
    faults.push(
      wrong(
        at('items.x-kubernetes-map-type'),
        items['x-kubernetes-map-type'] ?? null,
        'must be atomic as item of a list with x-kubernetes-list-type=set',
      ),
    )
  if (items?.type === 'array' && items['x-kubernetes-list-type'] !== 'atomic')
    faults.push(
      wrong(
        at('items.x-kubernetes-list-type'),
        items['x-kubernetes-list-type'] ?? null,
        'must be atomic as item of a list with x-kubernetes-list-type=set',
      ),
    )
}

function checkDefault(schema: Schema, at: (name: string) => string, faults: FieldFault[]): void {
  const { default: value } = schema
  if (value === undefined) return
  const wrapped: Schema = { type: 'object', properties: { value: schema } }
  if (prune(wrapped, { value }).unknown.length > 0)
    faults.push(wrong(at('default'), value, 'must not have unknown fields'))
  // Kubernetes prints no field name here: the default stands for itself.
  for (const fault of validateValue(schema, value)) faults.push({ ...fault, path: at('default') })
}

function branches(schema: Schema, at: (name: string) => string): [path: string, branch: Schema][] {
  const lists = (['allOf', 'anyOf', 'oneOf'] as const).flatMap((name) =>
    (schema[name] ?? []).map((branch, index): [string, Schema] => [at(`${name}[${index}]`), branch]),
  )
  // The two ways to say "integer or string" beside the extension are the only types a branch may name.
  const isIntOrString = (branch: Schema) =>
    equalJson(branch, { type: 'integer' }) || equalJson(branch, { type: 'string' })
  const kept = schema['x-kubernetes-int-or-string'] ? lists.filter(([, branch]) => !isIntOrString(branch)) : lists
  return schema.not ? [...kept, [at('not'), schema.not]] : kept
}

/** Within allOf, anyOf, oneOf and not a schema may only restrict. */
function checkBranch(schema: Schema, path: string, faults: FieldFault[], depth: number): void {
  if (!isMap(schema as unknown)) return void faults.push(wrong(path, schema, 'must be a schema'))
  if (depth > MAX_DEPTH)
    return void faults.push(forbidden(path, `schemas may not be nested deeper than ${MAX_DEPTH} levels`))
  const at = (name: string) => childPath(path, name)
  checkForbidden(schema, at, faults)
  if (schema.default !== undefined) faults.push(forbidden(at('default'), 'must be undefined to be structural'))
  for (const name of ['description', 'type', 'title'] as const)
    if ((schema as Record<string, unknown>)[name]) faults.push(forbidden(at(name), 'must be empty to be structural'))
  if (schema.nullable) faults.push(forbidden(at('nullable'), 'must be false to be structural'))
  if (schema.additionalProperties !== undefined)
    faults.push(forbidden(at('additionalProperties'), 'must be undefined to be structural'))
  for (const name of Object.keys(schema))
    if (name.startsWith('x-kubernetes-') && name !== 'x-kubernetes-validations')
      faults.push(forbidden(at(name), 'must be empty to be structural'))
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    checkBranch(property, at(`properties[${name}]`), faults, depth + 1)
  if (schema.items && !Array.isArray(schema.items)) checkBranch(schema.items, at('items'), faults, depth + 1)
  for (const [where, branch] of branches(schema, at)) checkBranch(branch, where, faults, depth + 1)
}

function checkRootMetadata(schema: Schema, faults: FieldFault[]): void {
  const metadata = schema.properties?.metadata
  if (!isMap(metadata)) return
  const properties = Object.keys((metadata as Schema).properties ?? {})
  const allowed = ['type', 'properties', 'description', 'required']
  const more =
    properties.some((name) => name !== 'name' && name !== 'generateName') ||
    Object.keys(metadata).some((name) => !allowed.includes(name))
  if (more)
    faults.push(
      forbidden(
        'properties[metadata]',
        'must not specify anything other than name and generateName, but metadata is implicitly specified',
      ),
    )
}
