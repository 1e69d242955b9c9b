import { stableText } from '../schema/index.ts'
import type { Resource } from '../served.ts'
import type { ApiObject, FieldFault, Subresource } from '../types.ts'
import type { User } from '../user.ts'

/** Who writes, and through which door. */
export interface Write {
  /** who asks over HTTP; absent: this process itself, which is believed what it says */
  readonly user?: User | undefined
  /** absent: the object itself */
  readonly subresource?: Subresource | undefined
}

/** What a built-in kind fills in and checks beyond its schema. */
export interface KindRule {
  prepare?(object: ApiObject, before: ApiObject | undefined, nowMs: number, write: Write): ApiObject
  /** whether writes of subresources are prepared too */
  readonly preparesStatus?: boolean
  faults?(object: ApiObject, before: ApiObject | undefined, write: Write): FieldFault[]
  /** required fields of the schema whose absence `faults` names itself, by what is missing in them */
  readonly required?: readonly string[]
  /** @throws ApiError where the object may not go. */
  beforeDelete?(resource: Resource, object: ApiObject): void
}

export type Fields = Readonly<Record<string, unknown>>

export const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})
export const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const required = (path: string, why?: string): FieldFault => ({
  reason: 'FieldValueRequired',
  path,
  message: why ? `Required value: ${why}` : 'Required value',
})

export const wrong = (path: string, value: unknown, why: string): FieldFault => ({
  reason: 'FieldValueInvalid',
  path,
  message: `Invalid value: ${stableText(value)}: ${why}`,
})

export const forbidden = (path: string, why: string): FieldFault => ({
  reason: 'FieldValueForbidden',
  path,
  message: `Forbidden: ${why}`,
})

export const unsupported = (path: string, value: unknown, supported: readonly string[]): FieldFault => ({
  reason: 'FieldValueNotSupported',
  path,
  message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported.map((one) => JSON.stringify(one)).join(', ')}`,
})

/** Fields that hold numbers below zero. */
export const negative = (holder: Fields, path: string, names: readonly string[]): FieldFault[] =>
  names
    .filter((name) => typeof holder[name] === 'number' && holder[name] < 0)
    .map((name) => wrong(`${path}.${name}`, holder[name], 'must be greater than or equal to 0'))

/** The same object with defaults where it has nothing; shared where nothing is missing. */
export function withDefaults<T extends object>(object: T, defaults: Readonly<Record<string, unknown>>): T {
  const missing = Object.entries(defaults).filter(([name]) => (object as Fields)[name] === undefined)
  return missing.length === 0 ? object : { ...object, ...Object.fromEntries(missing) }
}

/** A prepare step that fills in the status a new object has. */
export const withStatus =
  (status: Fields = {}) =>
  (object: ApiObject): ApiObject =>
    withDefaults(object, { status })

export const without = (object: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
