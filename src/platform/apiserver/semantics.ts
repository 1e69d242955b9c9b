import type { ApiObject, ManagedFieldsEntry, Schema } from './types.ts'

/** Placeholders until the modules apply/, openapi/, protobuf/ stand; replaced by them. */
export const trackUpdate = (change: {
  before: ApiObject | undefined
  after: ApiObject
  manager: string
  schema: Schema
  now: string
  subresource?: string
}): ManagedFieldsEntry[] => change.after.metadata.managedFields ?? []

export const canEncode = (_resource: unknown): boolean => false
export const encodeObject = (_resource: unknown, _object: ApiObject): Uint8Array => new Uint8Array()
export const encodeList = (_resource: unknown, _items: readonly ApiObject[], _metadata: object): Uint8Array =>
  new Uint8Array()
export const encodeWatchEvent = (_resource: unknown, _type: string, _object: ApiObject): Uint8Array => new Uint8Array()

export const openapiV3Index = (_resources: readonly unknown[], _prefix: string): object | undefined => undefined
export const openapiV3 = (_groupVersion: string, _resources: readonly unknown[]): object | undefined => undefined
export const openapiV2 = (_resources: readonly unknown[]): object | undefined => undefined

export interface FieldConflict {
  readonly manager: string
  readonly path: string
}

export function serverSideApply(request: {
  live: ApiObject | undefined
  applied: ApiObject
  manager: string
  force: boolean
  schema: Schema
  now: string
  subresource?: string
}): { object: ApiObject } | { conflicts: FieldConflict[] } {
  return { object: request.applied }
}
