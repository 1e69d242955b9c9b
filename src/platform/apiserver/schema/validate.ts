import type { FieldFault, Schema } from '../types.ts'
import { componentOf, isNarrow, objectMeta } from './components.ts'
import { fitsFormat } from './formats.ts'
import { equalJson, isMap, type Json, stableText } from './json.ts'
import { compilePattern } from './pattern.ts'

/** More faults than these help nobody. */
const MAX_FAULTS = 100
const MAX_SHOWN = 1000

/**
 * Every way in which a value does not fit its schema, worded as the Kubernetes API words it. The value is taken as a whole
 * object: its metadata is checked against ObjectMeta, whatever the schema says of it.
 */
export function validate(schema: Schema, value: unknown): FieldFault[] {
  const faults: FieldFault[] = []
  check(schema, value, '', faults)
  if (isMap(value)) checkMetadata(schema, value, '', faults)
  return faults.slice(0, MAX_FAULTS)
}

/** The faults of a value that is not an object of its own, such as a default. */
export function validateValue(schema: Schema, value: unknown, path = ''): FieldFault[] {
  const faults: FieldFault[] = []
  check(schema, value, path, faults)
  return faults.slice(0, MAX_FAULTS)
}

export const childPath = (path: string, name: string): string => (path ? `${path}.${name}` : name)

/** A value as a message shows it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null'
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text
}

type Check = (schema: Schema, value: unknown, path: string, faults: FieldFault[]) => void

const invalid = (path: string, value: unknown, sentence: string): FieldFault => ({
  reason: 'FieldValueInvalid',
  path,
  message: `Invalid value: ${shown(value)}: ${path} in body ${sentence}`,
})

function check(schema: Schema, value: unknown, path: string, faults: FieldFault[]): void {
  if (faults.length >= MAX_FAULTS) return
  if (value === null && schema.nullable === true) return
  const before = faults.length
  checkType(schema, value, path, faults)
  const wrongType = faults.length > before
  checkEnum(schema, value, path, faults)
  if (typeof value === 'number') checkNumber(schema, value, path, faults)
  else if (typeof value === 'string' && !wrongType) checkString(schema, value, path, faults)
  else if (Array.isArray(value) && !wrongType) checkList(schema, value, path, faults)
  else if (isMap(value) && !wrongType) checkMap(schema, value, path, faults)
  checkCombined(schema, value, path, faults)
}

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

const checkType: Check = (schema, value, path, faults) => {
  const wanted = schema['x-kubernetes-int-or-string'] ? 'integer,string' : schema.type
  if (!wanted) return
  const found = typeOf(value)
  if (found === wanted || (wanted === 'number' && found === 'integer')) return
  if (wanted === 'integer,string' && (found === 'integer' || found === 'string')) return
  faults.push({
    reason: 'FieldValueTypeInvalid',
    path,
    message: `Invalid value: ${shown(found)}: ${path} in body must be of type ${wanted}: ${shown(found)}`,
  })
}

const checkEnum: Check = (schema, value, path, faults) => {
  const { enum: allowed } = schema
  if (!allowed?.length || allowed.some((one) => equalJson(one, value))) return
  faults.push({
    reason: 'FieldValueNotSupported',
    path,
    message: `Unsupported value: ${shown(value)}: supported values: ${allowed.map(shown).join(', ')}`,
  })
}

function checkNumber(schema: Schema, value: number, path: string, faults: FieldFault[]): void {
  const { minimum, maximum, multipleOf } = schema
  if (multipleOf !== undefined && !isMultiple(value, multipleOf))
    faults.push(invalid(path, value, `should be a multiple of ${multipleOf}`))
  if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum))
    faults.push(invalid(path, value, `should be less than ${schema.exclusiveMaximum ? '' : 'or equal to '}${maximum}`))
  if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum))
    faults.push(
      invalid(path, value, `should be greater than ${schema.exclusiveMinimum ? '' : 'or equal to '}${minimum}`),
    )
  // A CustomResourceDefinition's int32 is not checked by Kubernetes; a built-in field could not hold more.
  if (isNarrow(schema) && (value < -(2 ** 31) || value >= 2 ** 31))
    faults.push(invalid(path, value, 'must be of type int32'))
}

function isMultiple(value: number, of: number): boolean {
  const quotient = value / of
  return Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient))
}

/** Code points, as Kubernetes counts. */
const lengthOf = (text: string): number => {
  let length = 0
  for (const _ of text) length++
  return length
}

function checkString(schema: Schema, value: string, path: string, faults: FieldFault[]): void {
  const { minLength, maxLength, pattern, format } = schema
  if (maxLength !== undefined && value.length > maxLength && lengthOf(value) > maxLength)
    faults.push({ reason: 'FieldValueTooLong', path, message: `Too long: may not be more than ${maxLength} bytes` })
  else if (minLength !== undefined && lengthOf(value) < minLength)
    faults.push(invalid(path, value, `should be at least ${minLength} chars long`))
  else if (pattern !== undefined) {
    const expression = compilePattern(pattern)
    if (!(expression instanceof Error) && !expression.test(value))
      faults.push(invalid(path, value, `should match '${pattern}'`))
  }
  const isNoBytes = value === '' && isNarrow(schema)
  if (format !== undefined && !isNoBytes && !fitsFormat(format, value))
    faults.push({
      reason: 'FieldValueTypeInvalid',
      path,
      message: `Invalid value: ${shown(value)}: ${path} in body must be of type ${format}: ${shown(value)}`,
    })
}

const tooMany = (path: string, count: number, most: number): FieldFault => ({
  reason: 'FieldValueTooMany',
  path,
  message: `Too many: ${count}: must have at most ${most} items`,
})

function checkList(schema: Schema, value: readonly unknown[], path: string, faults: FieldFault[]): void {
  const { minItems, maxItems, items } = schema
  if (maxItems !== undefined && value.length > maxItems) faults.push(tooMany(path, value.length, maxItems))
  if (minItems !== undefined && value.length < minItems)
    faults.push(invalid(path, value.length, `should have at least ${minItems} items`))
  if (items) value.forEach((item, at) => void check(items, item, `${path}[${at}]`, faults))
  checkDuplicates(schema, value, path, faults)
}

function checkDuplicates(schema: Schema, value: readonly unknown[], path: string, faults: FieldFault[]): void {
  const type = schema['x-kubernetes-list-type']
  if (type !== 'set' && type !== 'map') return
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const foreign = type === 'map' ? value.findIndex((item) => !isMap(item)) : -1
  if (foreign >= 0) {
    const message = `Invalid value: ${shown(value[foreign])}: must be an object for an array of list-type map`
    faults.push({ reason: 'FieldValueInvalid', path: `${path}[${foreign}]`, message })
    return
  }
  const seen = new Map<string, number>()
  value.forEach((item, at) => {
    const id = type === 'set' ? item : isMap(item) ? Object.fromEntries(keys.map((key) => [key, item[key]])) : item
    const text = stableText(id)
    const count = (seen.get(text) ?? 0) + 1
    seen.set(text, count)
    // Told once, however often it repeats.
    if (count === 2)
      faults.push({ reason: 'FieldValueDuplicate', path: `${path}[${at}]`, message: `Duplicate value: ${shown(id)}` })
  })
}

function checkMap(schema: Schema, value: Json, path: string, faults: FieldFault[]): void {
  const { properties, additionalProperties, required, minProperties, maxProperties } = schema
  const count = Object.keys(value).length
  if (maxProperties !== undefined && count > maxProperties) faults.push(tooMany(path, count, maxProperties))
  if (minProperties !== undefined && count < minProperties)
    faults.push(invalid(path, count, `should have at least ${minProperties} properties`))
  for (const name of required ?? [])
    if (!Object.hasOwn(value, name))
      faults.push({ reason: 'FieldValueRequired', path: childPath(path, name), message: 'Required value' })
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue
    const property = properties && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    if (typeof property === 'object') check(property, item, childPath(path, name), faults)
  }
  if (schema['x-kubernetes-embedded-resource']) checkEmbedded(schema, value, path, faults)
}

function checkEmbedded(schema: Schema, value: Json, path: string, faults: FieldFault[]): void {
  for (const name of ['apiVersion', 'kind']) {
    const at = childPath(path, name)
    if (value[name] === undefined) faults.push({ reason: 'FieldValueRequired', path: at, message: 'Required value' })
    else if (value[name] === '')
      faults.push({ reason: 'FieldValueInvalid', path: at, message: 'Invalid value: "": must not be empty' })
  }
  checkMetadata(schema, value, path, faults)
}

/** Metadata is that of every object, unless the schema says it itself. */
function checkMetadata(schema: Schema, value: Json, path: string, faults: FieldFault[]): void {
  const said = schema.properties?.metadata
  if (value.metadata === undefined || (said && componentOf(said) === componentOf(objectMeta))) return
  check(objectMeta, value.metadata, childPath(path, 'metadata'), faults)
}

/** These faults name no field of their own in Kubernetes, where their path is printed as `<nil>`. */
const combined = (path: string, sentence: string): FieldFault => ({
  reason: 'FieldValueInvalid',
  path: '<nil>',
  message: `Invalid value: "": ${shown(path)} ${sentence}`,
})

const checkCombined: Check = (schema, value, path, faults) => {
  const faultsOf = (one: Schema) => validateValue(one, value, path)
  if (schema.anyOf?.length) {
    const each = schema.anyOf.map(faultsOf)
    if (!each.some((found) => found.length === 0))
      faults.push(combined(path, 'must validate at least one schema (anyOf)'), ...nearest(each))
  }
  if (schema.oneOf?.length) {
    const each = schema.oneOf.map(faultsOf)
    const valid = each.filter((found) => found.length === 0).length
    if (valid === 0)
      faults.push(combined(path, 'must validate one and only one schema (oneOf). Found none valid'), ...nearest(each))
    else if (valid > 1)
      faults.push(combined(path, `must validate one and only one schema (oneOf). Found ${valid} valid alternatives`))
  }
  if (schema.allOf?.length) {
    const failed = schema.allOf.map(faultsOf).filter((found) => found.length > 0)
    if (failed.length > 0) faults.push(...failed.flat(), combined(path, 'must validate all the schemas (allOf)'))
  }
  if (schema.not && faultsOf(schema.not).length === 0) faults.push(combined(path, 'must not validate the schema (not)'))
}

/** The faults of the alternative that came closest: what the writer most likely meant. */
const nearest = (each: readonly FieldFault[][]): readonly FieldFault[] =>
  each.reduce((best, found) => (found.length < best.length ? found : best))
