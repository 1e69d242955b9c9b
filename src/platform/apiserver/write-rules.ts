import { randomInt, randomUUID } from 'node:crypto'
import { trackUpdate } from './apply/index.ts'
import { ruleOf } from './kind-rules/index.ts'
import { annotationFaults, finalizerFaults, labelFaults, nameFaults, ownerFaults } from './names.ts'
import { applyDefaults, prune, validate } from './schema/index.ts'
import { sameJson } from './schema/json.ts'
import { groupVersion, type Resource } from './served.ts'
import { ApiError, conflict, invalid, staleVersion } from './status.ts'
import type { Admission, ApiObject, FieldFault, Subresource } from './types.ts'
import type { User } from './user.ts'

export interface WriteOptions {
  /** decide everything, store nothing */
  readonly dryRun?: boolean
  /** who writes, for managedFields; nothing is tracked without it */
  readonly fieldManager?: string
  readonly fieldValidation?: 'Strict' | 'Warn' | 'Ignore'
  /** filled with what the writer should be told */
  readonly warnings?: string[]
  readonly subresource?: Subresource
  /** who asks over HTTP; absent: this process itself */
  readonly user?: User
  /** asked before anything is written. @throws ApiError Forbidden where the writer may not */
  readonly guard?: (object: ApiObject, before: ApiObject | undefined) => void
  /** what rules say to the write; absent: it is the server's own, or there are none */
  readonly admission?: Admission | undefined
  /** the writer has set managedFields itself (server-side apply) */
  readonly managed?: boolean
  /** the object was made by a patch: what is wrong with it is wrong with the patch */
  readonly patched?: boolean
}

/** 1.5 MiB: what etcd takes, and so what other tools expect. */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024

export const timestamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

const SUFFIX = 'bcdfghjklmnpqrstvwxz2456789'
const randomSuffix = (): string => Array.from({ length: 5 }, () => SUFFIX[randomInt(SUFFIX.length)]).join('')

/**
 * The body of a write as an object of the resource: identity filled in, unknown fields dropped, and refused or warned
 * of as asked.
 */
export function acceptObject(resource: Resource, body: unknown, options: WriteOptions): ApiObject {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ApiError('BadRequest', `the object provided is unrecognized (must be of type ${resource.kind})`)
  const given = body as Partial<ApiObject>
  const apiVersion = groupVersion(resource)
  if ((given.kind && given.kind !== resource.kind) || (given.apiVersion && given.apiVersion !== apiVersion))
    throw unreadable(
      resource,
      options,
      `${given.kind ?? resource.kind} in version "${given.apiVersion ?? apiVersion}" cannot be handled as a ${resource.kind}`,
    )
  if (given.metadata !== undefined && (typeof given.metadata !== 'object' || given.metadata === null))
    throw new ApiError('BadRequest', `metadata of ${resource.kind} is no object`)
  const { apiVersion: _, kind: __, metadata, ...fields } = given
  const object = {
    apiVersion,
    kind: resource.kind,
    metadata: { ...(metadata ?? {}) },
    ...fields,
  } as ApiObject
  for (const map of ['labels', 'annotations'] as const) checkStringMap(resource, object, map)
  return withoutUnknown(resource, object, options)
}

/** A body that is no object of the resource; for a patch, a patch that would make it so. */
function unreadable(resource: Resource, { patched }: WriteOptions, message: string): ApiError {
  if (!patched) return new ApiError('BadRequest', message)
  const causes = [{ reason: 'FieldValueInvalid', message: `Invalid value: ${message}`, field: 'patch' }]
  return new ApiError('Invalid', `${resource.kind} is invalid: patch: Invalid value: ${message}`, { causes })
}

function checkStringMap(resource: Resource, object: ApiObject, name: 'labels' | 'annotations'): void {
  const map: unknown = object.metadata[name]
  if (map === null) delete object.metadata[name]
  if (map === undefined || map === null) return
  const bad =
    typeof map !== 'object' || Array.isArray(map) || Object.values(map).some((value) => typeof value !== 'string')
  if (bad)
    throw new ApiError(
      'BadRequest',
      `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: metadata.${name} must map strings to strings`,
    )
}

function withoutUnknown(resource: Resource, object: ApiObject, options: WriteOptions): ApiObject {
  const { value, unknown } = prune(resource.schema, object)
  if (unknown.length > 0 && options.managed && resource.builtIn)
    throw new ApiError(
      'BadRequest',
      `failed to create typed patch object (${object.metadata.namespace ?? ''}/${object.metadata.name}; ${object.apiVersion}, Kind=${resource.kind}): .${unknown[0]}: field not declared in schema`,
    )
  const mode = options.fieldValidation ?? 'Warn'
  if (unknown.length === 0 || mode === 'Ignore') return value
  const messages = unknown.map((path) => `unknown field "${path}"`)
  if (mode === 'Warn') {
    options.warnings?.push(...messages)
    return value
  }
  throw unreadable(
    resource,
    options,
    `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: strict decoding error: ${messages.join(', ')}`,
  )
}

function metadataFaults(resource: Resource, object: ApiObject): FieldFault[] {
  const { metadata } = object
  return [
    ...nameFaults(metadata.name, resource.nameRule),
    ...labelFaults(metadata.labels, 'metadata.labels'),
    ...annotationFaults(metadata.annotations, 'metadata.annotations'),
    ...finalizerFaults(metadata.finalizers, 'metadata.finalizers'),
    ...ownerFaults(metadata.ownerReferences, 'metadata.ownerReferences'),
  ]
}

function check(
  resource: Resource,
  object: ApiObject,
  before: ApiObject | undefined,
  options: WriteOptions,
  more: readonly FieldFault[] = [],
): void {
  const rule = ruleOf(resource)
  const ofSchema = validate(resource.schema, object).filter(
    ({ reason, path }) => reason !== 'FieldValueRequired' || !rule.required?.includes(path),
  )
  // Values of a wrong type cannot be read into a built-in kind at all.
  const mistyped = resource.builtIn && ofSchema.find(({ reason }) => reason === 'FieldValueTypeInvalid')
  if (mistyped)
    throw unreadable(
      resource,
      options,
      `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: ${mistyped.path}: ${mistyped.message}`,
    )
  const faults = [
    ...metadataFaults(resource, object),
    ...more,
    ...ofSchema,
    ...(rule.faults?.(object, before, options) ?? []),
  ]
  if (faults.length > 0) throw invalid(resource, object.metadata.name ?? '', faults)
  const sizeBytes = Buffer.byteLength(JSON.stringify(object))
  if (sizeBytes > MAX_OBJECT_BYTES)
    throw new ApiError(
      'RequestEntityTooLarge',
      `Request entity too large: ${resource.kind} of ${sizeBytes} bytes, limit is ${MAX_OBJECT_BYTES}`,
    )
}

export interface WriteTime {
  readonly nowMs: number
}

/** Gives an object that asked for it a name no other has. */
export function nameObject(resource: Resource, object: ApiObject, taken: (name: string) => boolean): ApiObject {
  if (object.metadata.name) return object
  const base = object.metadata.generateName
  if (!base)
    throw invalid(resource, '', [
      {
        reason: 'FieldValueRequired',
        path: 'metadata.name',
        message: 'Required value: name or generateName is required',
      },
    ])
  for (let attempt = 0; attempt < 8; attempt++) {
    const name = base.slice(0, 248) + randomSuffix()
    if (!taken(name)) return { ...object, metadata: { ...object.metadata, name } }
  }
  throw new ApiError('AlreadyExists', `no free name was found for ${base}; try again`)
}

/** A new object as it is stored: the server's own fields set, defaults applied, checked. It has a name already. */
export function prepareCreate(resource: Resource, given: ApiObject, options: WriteOptions & WriteTime): ApiObject {
  const { nowMs } = options
  const { status: _, ...withoutStatus } = given
  const start = (resource.status && !resource.builtIn ? withoutStatus : given) as ApiObject
  const metadata: ApiObject['metadata'] = {
    ...start.metadata,
    uid: randomUUID(),
    creationTimestamp: timestamp(nowMs),
  }
  delete metadata.resourceVersion
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete metadata.selfLink
  if (!resource.namespaced) delete metadata.namespace
  if (resource.generation) metadata.generation = 1
  else delete metadata.generation
  if (!options.managed) delete metadata.managedFields
  let object = admitted(resource, applyDefaults(resource.schema, { ...start, metadata }), undefined, options)
  object = ruleOf(resource).prepare?.(object, undefined, nowMs, options) ?? object
  check(resource, object, undefined, options)
  return tracked(resource, undefined, object, options)
}

/** What admission makes of an object, with the defaults of what it added. */
function admitted(
  resource: Resource,
  object: ApiObject,
  before: ApiObject | undefined,
  { admission }: WriteOptions,
): ApiObject {
  const made = admission?.mutate(object, before) ?? object
  return made === object ? object : applyDefaults(resource.schema, made)
}

const OWN_FIELDS = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'generateName',
] as const

/**
 * The object as it is stored after a change, or undefined where nothing would change.
 * @param live what is stored now
 * @param given what the writer wants, in the resource's version
 */
export function prepareUpdate(
  resource: Resource,
  live: ApiObject,
  given: ApiObject,
  options: WriteOptions & WriteTime,
): ApiObject | undefined {
  const { name } = live.metadata
  const { metadata: asked } = given
  if (asked.uid && asked.uid !== live.metadata.uid)
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${asked.uid}, UID in object meta: ${live.metadata.uid}`,
    )
  if (!asked.resourceVersion && resource.versionRequired)
    throw invalid({ ...resource, kind: resource.plural }, name, [
      {
        reason: 'FieldValueInvalid',
        path: 'metadata.resourceVersion',
        message: 'Invalid value: 0: must be specified for an update',
      },
    ])
  if (asked.resourceVersion && asked.resourceVersion !== live.metadata.resourceVersion)
    throw staleVersion(resource, name)

  const metadata: ApiObject['metadata'] = options.subresource ? { ...live.metadata } : { ...asked, name }
  for (const field of OWN_FIELDS) {
    if (live.metadata[field] === undefined) delete metadata[field]
    else metadata[field] = live.metadata[field] as never
  }
  if (live.metadata.namespace) metadata.namespace = live.metadata.namespace
  if (options.managed) metadata.managedFields = asked.managedFields ?? []
  if (metadata.managedFields === undefined && live.metadata.managedFields)
    metadata.managedFields = live.metadata.managedFields
  delete metadata.selfLink

  let object: ApiObject
  if (options.subresource) object = { ...live, apiVersion: given.apiVersion, metadata, ...statusOf(given) }
  else {
    const { status: _, ...rest } = given
    object = (resource.status ? { ...rest, metadata, ...statusOf(live) } : { ...given, metadata }) as ApiObject
  }
  object = admitted(resource, applyDefaults(resource.schema, object), live, options)
  const rule = ruleOf(resource)
  if (!options.subresource || rule.preparesStatus)
    object = rule.prepare?.(object, live, options.nowMs, options) ?? object
  check(resource, object, live, options, newFinalizerFaults(live, object))
  if (!options.managed && sameJson(comparable(live), comparable(object))) return undefined
  if (resource.generation && specChanged(resource, live, object))
    object.metadata.generation = (live.metadata.generation ?? 0) + 1
  object = tracked(resource, live, object, options)
  return options.managed && sameJson(comparable(live, true), comparable(object, true)) ? undefined : object
}

const statusOf = (object: ApiObject): { status?: unknown } => ('status' in object ? { status: object.status } : {})

/** The object without what the server itself changes with every write. */
function comparable(object: ApiObject, withManagers = false): object {
  const { resourceVersion: _, managedFields, ...metadata } = object.metadata
  const managers = managedFields?.map(({ time: _, ...entry }) => entry)
  return { ...object, apiVersion: '', metadata: withManagers ? { ...metadata, managers } : metadata }
}

function specChanged(resource: Resource, before: ApiObject, after: ApiObject): boolean {
  const spec = ({ metadata: _, status, apiVersion: __, ...rest }: ApiObject) =>
    resource.status || resource.builtIn ? rest : { ...rest, status }
  return !sameJson(spec(before), spec(after))
}

function newFinalizerFaults(before: ApiObject, after: ApiObject): FieldFault[] {
  if (!before.metadata.deletionTimestamp) return []
  const known = new Set(before.metadata.finalizers)
  const added = (after.metadata.finalizers ?? []).filter((finalizer) => !known.has(finalizer))
  if (added.length === 0) return []
  return [
    {
      reason: 'FieldValueForbidden',
      path: 'metadata.finalizers',
      message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`,
    },
  ]
}

function tracked(
  resource: Resource,
  before: ApiObject | undefined,
  after: ApiObject,
  options: WriteOptions & WriteTime,
): ApiObject {
  if (options.managed || !options.fieldManager) return after
  const managedFields = trackUpdate({
    before,
    after,
    manager: options.fieldManager,
    schema: resource.schema,
    now: timestamp(options.nowMs),
    subresource: options.subresource,
    status: resource.status,
  })
  return { ...after, metadata: { ...after.metadata, managedFields } }
}
