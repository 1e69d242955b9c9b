import { fields, instant, text } from '#collect'
import type { KubeObject } from '#kube'
import type { ColumnSpec, Read } from './define.ts'

/** What several kinds of rows take from an object in the same way. Nothing here throws. */

export const none = () => undefined

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

/** `Kind/name` of what made the object. */
export const ownerOf: Read = ({ metadata }) => {
  const owners = metadata.ownerReferences ?? []
  const owner = owners.find(({ controller }) => controller) ?? owners[0]
  return owner ? `${owner.kind}/${owner.name}` : null
}

export const createdAt: ColumnSpec = {
  label: 'Created',
  kind: 'number',
  unit: 'time',
  read: ({ metadata }: KubeObject) => instant(metadata.creationTimestamp),
}

/** Images of the containers of a pod template, each once. */
export function imagesOf(template: unknown): string | null {
  const { containers } = fields(fields(template).spec)
  const images = (Array.isArray(containers) ? containers : []).map((container) => text(fields(container).image))
  return [...new Set(images)].filter(Boolean).join(', ') || null
}
