import { componentOf } from '../schema/components.ts'
import type { ApiObject, ManagedFieldsEntry, Schema } from '../types.ts'
import { difference, EMPTY, type FieldSet, intersection, setOfPaths, union, withoutBranches } from './field-set.ts'
import {
  capUpdaters,
  type Owner,
  type Owners,
  ownerId,
  readOwners,
  setOwner,
  withoutServerFields,
  writeOwners,
} from './managed.ts'
import { resourceType } from './value-type.ts'
import { type Comparison, compare } from './walk.ts'

export interface Update {
  /** what is stored; undefined: the object is created */
  readonly before?: ApiObject | undefined
  /** what shall be stored, complete; its managedFields count only where `before` has none or the writer changed them */
  readonly after: ApiObject
  readonly manager: string
  readonly schema: Schema
  /** the time of an entry that changes, as metav1.Time */
  readonly now: string
  readonly subresource?: string | undefined
  /** whether the resource has a status subresource; default: what built-in kinds have */
  readonly status?: boolean | undefined
}

/**
 * managedFields after a write that is not an apply: the writer owns what it changed, everybody else loses that.
 * Entries and times of all others stay as they are.
 */
export function trackUpdate(update: Update): ManagedFieldsEntry[] {
  const { before, after } = update
  const asked = after.metadata.managedFields
  // An explicit empty list asks to forget all owners. A subresource cannot say anything about them.
  if (asked !== undefined && !update.subresource && isReset(asked)) return []
  const given = readOwners(update.subresource ? undefined : asked)
  const owners = given.size > 0 ? given : readOwners(before?.metadata.managedFields)
  if (before && owners.size === 0) return []
  record(owners, update)
  return writeOwners(owners)
}

const isReset = (entries: readonly ManagedFieldsEntry[]): boolean =>
  entries.length === 0 || (entries.length === 1 && Object.keys(entries[0] ?? {}).length === 0)

/** Enters an update into the owners. */
export function record(owners: Map<string, Owner>, update: Update): void {
  const { after, manager, subresource, now } = update
  const type = resourceType(update.schema)
  const changes = compare(withoutOwners(update.before ?? {}), withoutOwners(after), type)
  const ignored = resetFields(update)
  yieldChanges(owners, changes, ignored)
  const changed = withoutServerFields(withoutBranches(union(changes.modified, changes.added), ignored))
  const { apiVersion } = after
  const identity = { manager: manager || 'unknown', operation: 'Update' as const, apiVersion, subresource }
  const previous = owners.get(ownerId(identity))
  if (changed.members.size > 0 || changed.children.size > 0)
    setOwner(owners, { ...identity, fields: union(previous?.fields ?? EMPTY, changed), time: now })
  capUpdaters(owners)
}

/** Takes from every owner what changed or went; `except` keeps its own. */
export function yieldChanges(
  owners: Map<string, Owner>,
  changes: Comparison,
  ignored: FieldSet,
  except?: string,
): void {
  const changed = withoutBranches(union(changes.modified, changes.added), ignored)
  const removed = withoutBranches(changes.removed, ignored)
  for (const [id, owner] of [...owners]) {
    if (id === except) continue
    owners.delete(id)
    setOwner(owners, { ...owner, fields: difference(difference(owner.fields, changed), removed) })
  }
}

export function conflictsWith(
  owners: Owners,
  changes: Comparison,
  ignored: FieldSet,
  except: string,
): [Owner, FieldSet][] {
  const changed = withoutBranches(union(changes.modified, changes.added), ignored)
  return [...owners]
    .filter(([id]) => id !== except)
    .map(([, owner]): [Owner, FieldSet] => [owner, intersection(owner.fields, changed)])
    .filter(([, fields]) => fields.members.size > 0 || fields.children.size > 0)
}

const STATUS = setOfPaths(['f:status'])
const SPEC = setOfPaths(['f:spec'])

/** What a write through this door cannot change, and so does not own. */
export function resetFields({
  schema,
  status,
  subresource,
}: Pick<Update, 'schema' | 'status' | 'subresource'>): FieldSet {
  if (subresource === 'status' || subresource === 'approval') return SPEC
  const hasStatus = status ?? (componentOf(schema) !== undefined && schema.properties?.status !== undefined)
  return hasStatus && subresource === undefined ? STATUS : EMPTY
}

/** The owners are not part of what is owned. */
export function withoutOwners(object: Partial<ApiObject>): Record<string, unknown> {
  if (!object.metadata) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
