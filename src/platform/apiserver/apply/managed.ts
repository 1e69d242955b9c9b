import type { ManagedFieldsEntry } from '../types.ts'
import { difference, type FieldSet, fromFieldsV1, isEmptySet, setOfPaths, toFieldsV1, union } from './field-set.ts'
import { sharedFields } from './shared-fields.ts'

/** One writer's fields. A writer is told by name, operation and subresource, and for updates by version, too. */
export interface Owner {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string | undefined
  readonly fields: FieldSet
  readonly time: string | undefined
}

export type Owners = ReadonlyMap<string, Owner>

export const ownerId = ({ manager, operation, apiVersion, subresource }: Omit<Owner, 'fields' | 'time'>): string =>
  JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource ?? ''])

/** Entries that make no sense are left out: they own nothing. */
export function readOwners(entries: readonly ManagedFieldsEntry[] | undefined): Map<string, Owner> {
  const owners = new Map<string, Owner>()
  for (const entry of entries ?? []) {
    const fields = entry.fieldsType === 'FieldsV1' ? fromFieldsV1(entry.fieldsV1 ?? {}) : undefined
    if (!fields || !entry.apiVersion || !['Apply', 'Update'].includes(entry.operation)) continue
    const owner: Owner = {
      manager: entry.manager,
      operation: entry.operation,
      apiVersion: entry.apiVersion,
      subresource: entry.subresource || undefined,
      fields,
      time: entry.time,
    }
    owners.set(ownerId(owner), owner)
  }
  return owners
}

export function writeOwners(owners: Owners): ManagedFieldsEntry[] {
  return [...owners.values()].sort(inOrder).map(({ fields, time, subresource, ...owner }) => ({
    manager: owner.manager,
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: sharedFields(toFieldsV1(fields)),
    ...(subresource === undefined ? {} : { subresource }),
  }))
}

const seconds = (time: string | undefined): number =>
  time === undefined ? 0 : Math.floor(Date.parse(time) / 1000) || 0
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const inOrder = (a: Owner, b: Owner): number =>
  byText(a.operation, b.operation) ||
  seconds(a.time) - seconds(b.time) ||
  byText(a.manager, b.manager) ||
  byText(a.apiVersion, b.apiVersion) ||
  byText(a.subresource ?? '', b.subresource ?? '')

/** What belongs to the server or names the object: nobody owns it. */
const OF_THE_SERVER = setOfPaths(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name) => ['f:metadata', `f:${name}`]),
)

export const withoutServerFields = (fields: FieldSet): FieldSet => difference(fields, OF_THE_SERVER)

export const MAX_UPDATERS = 10
const ANCIENT = 'ancient-changes'

/** Keeps managedFields short: of more than ten updaters the oldest are put together. */
export function capUpdaters(owners: Map<string, Owner>): void {
  const updaters = [...owners]
    .filter(([, owner]) => owner.operation === 'Update')
    .sort(([idA, a], [idB, b]) => seconds(a.time) - seconds(b.time) || byText(idA, idB))
  let count = updaters.length
  const first = new Map<string, Owner>()
  for (const [id, owner] of updaters) {
    if (count <= MAX_UPDATERS) return
    const oldest = first.get(owner.apiVersion)
    if (!oldest) {
      first.set(owner.apiVersion, owner)
      continue
    }
    const bucket: Owner = { ...owner, manager: ANCIENT, subresource: undefined }
    const known = owners.get(ownerId(bucket)) ?? oldest
    owners.delete(ownerId(oldest))
    owners.delete(id)
    owners.set(ownerId(bucket), { ...bucket, fields: union(known.fields, owner.fields) })
    count--
  }
}

export function setOwner(owners: Map<string, Owner>, owner: Owner): void {
  if (isEmptySet(owner.fields)) owners.delete(ownerId(owner))
  else owners.set(ownerId(owner), owner)
}
