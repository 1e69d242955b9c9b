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
