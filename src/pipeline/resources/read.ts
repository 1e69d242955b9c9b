import { fields, instant, text } from '#collect'
import type { KubeObject } from '#kube'
import { parseBytes, type ScalarValue } from '#model'
import type { ColumnSpec } from './define.ts'
import type { Read } from './resource-row-builder.ts'

/** What several kinds of rows take from an object in the same way. Nothing here throws. */

export const none = () => undefined

/** What several columns take from an object is made once: columns of an object are read one after the other. */
export function once<T>(make: (object: KubeObject) => T): (object: KubeObject) => T {
  let made: { readonly object: KubeObject; readonly value: T } | undefined
  return (object) => {
    if (made?.object !== object) made = { object, value: make(object) }
    return made.value
  }
}

/** The text at this path; null where there is none. */
export const textOf =
  (part: 'spec' | 'status', ...path: readonly string[]): Read =>
  (object) =>
    text(path.reduce<unknown>((value, name) => fields(value)[name], object[part])) || null

/** The number at this path; null where there is none. */
export const numberOf =
  (part: 'spec' | 'status', ...path: readonly string[]): Read =>
  (object) =>
    numberIn(path.reduce<unknown>((value, name) => fields(value)[name], object[part]))

export const numberIn = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null

/** Bytes of `storage` among quantities by resource. */
export const amountOfStorage = (quantities: unknown): number | null =>
  parseBytes(text(fields(quantities).storage)) ?? null

/** Texts of a list with commas between them. */
export const listed = (list: unknown): ScalarValue =>
  Array.isArray(list) ? list.map(text).filter(Boolean).join(', ') : null

/** `Kind/name` of what made the object. */
export const ownerOf: Read = ({ metadata }) => {
  const owners = metadata.ownerReferences ?? []
  const owner = owners.find(({ controller }) => controller) ?? owners[0]
  return owner ? `${owner.kind}/${owner.name}` : null
}

export const owner: ColumnSpec = {
  label: 'Owner',
  kind: 'string',
  refersTo: 'object',
  isExtra: true,
  read: ownerOf,
}

const created = { label: 'Created', kind: 'number', unit: 'time', absence: 'unknown' } as const

export const createdAt: ColumnSpec = {
  ...created,
  read: ({ metadata }: KubeObject) => instant(metadata.creationTimestamp),
}

/** The same of a snapshot. */
export const snapshotCreatedAt = {
  ...created,
  read: ({ createdAt: at }: { readonly createdAt: number | null }) => at,
}

/** Images of the containers of a pod template, each once. */
export function imagesOf(template: unknown): string | null {
  const { containers } = fields(fields(template).spec)
  const images = (Array.isArray(containers) ? containers : []).map((container) => text(fields(container).image))
  return [...new Set(images)].filter(Boolean).join(', ') || null
}
