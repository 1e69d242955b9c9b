import { FleetError } from '#model'
import { equalJson } from '../schema/json.ts'
import type { ApiObject, Schema } from '../types.ts'
import {
  difference,
  EMPTY,
  type FieldSet,
  intersection,
  isEmptySet,
  pathsOf,
  printPath,
  union,
  withNamedFields,
  withoutBranches,
} from './field-set.ts'
import { type Owner, type Owners, ownerId, readOwners, setOwner, withoutServerFields, writeOwners } from './managed.ts'
import { conflictsWith, record, resetFields, withoutOwners, yieldChanges } from './track.ts'
import { resourceType } from './value-type.ts'
import { compare, fieldsOf, firstRepeat, merge, removePaths } from './walk.ts'

export interface Conflict {
  /** who owns the field, as the API prints it: `"kubectl" using v1` */
  readonly manager: string
  /** the field, as the API prints it: `.spec.containers[name="web"].image` */
  readonly path: string
}

/** The configuration changes what others own. `message` and `conflicts` are what the API answers with 409. */
export class ApplyConflictError extends FleetError {
  override readonly name = 'ApplyConflictError'
  readonly code = 'apply_conflict'
  readonly retryable = false
  readonly conflicts: readonly Conflict[]

  constructor(conflicts: readonly Conflict[]) {
    super(conflictMessage(conflicts))
    this.conflicts = conflicts
  }
}

function conflictMessage(conflicts: readonly Conflict[]): string {
  const [first] = conflicts
  if (first && conflicts.length === 1)
    return `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.path}`
  const managers = [...new Set(conflicts.map(({ manager }) => manager))].sort()
  const lines = managers.flatMap((manager) => [
    `conflicts with ${manager}:`,
    ...conflicts.filter((conflict) => conflict.manager === manager).map(({ path }) => `- ${path}`),
  ])
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}

/** A configuration that cannot be applied at all: answered with 400. */
export class ApplyRefusedError extends FleetError {
  override readonly name = 'ApplyRefusedError'
  readonly code = 'apply_refused'
  readonly retryable = false
}

export interface Apply {
  /** what is stored; undefined: the object is created */
  readonly live: ApiObject | undefined
  /** all that this manager wants to say about the object, and nothing else */
  readonly config: ApiObject
  readonly manager: string
  /** take over what others own */
  readonly force?: boolean | undefined
  readonly schema: Schema
  /** the time of an entry that changes, as metav1.Time */
  readonly now: string
  readonly subresource?: string | undefined
  /** whether the resource has a status subresource; default: what built-in kinds have */
  readonly status?: boolean | undefined
}

/**
 * Server-side apply. The result is the live object with what the configuration says, without what this manager said last
 * time and says no longer (unless another owns it), and with its managedFields. Defaults are not filled in: nobody owns
 * them. A map or list whose last content went is null, which `applyDefaults` drops.
 * @throws ApplyConflictError where others own what would change and `force` is not set
 * @throws ApplyRefusedError for a configuration with managedFields, or with an item twice
 */
export function applyConfiguration(request: Apply): ApiObject {
  const { config, manager, schema, subresource, now } = request
  if (config.metadata.managedFields !== undefined && config.metadata.managedFields !== null)
    throw new ApplyRefusedError('metadata.managedFields must be nil')
  const type = resourceType(schema)
  const live = withoutOwners(request.live ?? {})
  const owners = readOwners(request.live?.metadata.managedFields)
  if (request.live && owners.size === 0)
    record(owners, {
      ...request,
      before: undefined,
      after: request.live,
      manager: 'before-first-apply',
    })

  const { apiVersion } = config
  const identity = { manager: manager || 'unknown', operation: 'Apply' as const, apiVersion, subresource }
  const id = ownerId(identity)
  const last = owners.get(id)
  const ignored = resetFields(request)
  const repeated = firstRepeat(withoutOwners(config), type, [])
  if (repeated)
    throw new ApplyRefusedError(
      `failed to create typed patch object: ${printPath(repeated)}: duplicate entries for key`,
    )
  const fields = withoutBranches(fieldsOf(withoutOwners(config), type), ignored)
  owners.set(id, { ...identity, fields, time: last?.time })

  const merged = merge(live, withoutOwners(config), type) as Record<string, unknown>
  const next = withoutAbandoned(merged, last?.fields ?? EMPTY, owners, type)
  const changes = compare(live, next, type)
  const conflicts = conflictsWith(owners, changes, ignored, id)
  if (conflicts.length > 0 && !request.force) throw new ApplyConflictError(conflicts.flatMap(described))
  yieldChanges(owners, changes, ignored, id)

  const changed = !equalJson(live, next)
  const time = changed || last?.time === undefined ? now : last.time
  setOwner(owners, { ...identity, fields: withoutServerFields(fields), time })
  const object = next as unknown as ApiObject
  const managedFields = writeOwners(owners)
  const metadata = { ...object.metadata, ...(managedFields.length > 0 ? { managedFields } : {}) }
  return { ...object, metadata }
}

/** What the manager said last time and says no longer goes, unless somebody owns it or it was never the manager's. */
function withoutAbandoned(
  merged: Record<string, unknown>,
  last: FieldSet,
  owners: Owners,
  type: Schema,
): Record<string, unknown> {
  if (isEmptySet(last)) return merged
  const named = (set: FieldSet) => withNamedFields(set, type)
  const fields = (value: unknown) => named(fieldsOf(value ?? {}, type))
  const all = fields(merged)
  const owned = [...owners.values()].reduce((sum, owner) => union(sum, owner.fields), EMPTY)
  const withoutLast = removePaths(merged, named(last), type)
  const withOwned = removePaths(merged, difference(all, union(fields(withoutLast), named(owned))), type)
  const dangling = intersection(difference(all, fields(withOwned)), named(last))
  return removePaths(merged, dangling, type) as Record<string, unknown>
}

const described = ([owner, fields]: [Owner, FieldSet]): Conflict[] => {
  const name = JSON.stringify(owner.manager)
  const through = owner.subresource ? ` with subresource ${JSON.stringify(owner.subresource)}` : ''
  const using = owner.operation === 'Update' ? ` using ${owner.apiVersion}` : ''
  return pathsOf(fields).map((path) => ({ manager: `${name}${through}${using}`, path: printPath(path) }))
}
