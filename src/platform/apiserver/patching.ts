import { ApplyConflictError, ApplyRefusedError, applyConfiguration } from './apply/index.ts'
import { parseYaml } from './http/body.ts'
import type { ObjectKey } from './objects.ts'
import { applyJsonPatch, applyMergePatch, applyStrategicPatch, PatchError } from './patch/index.ts'
import { groupVersion, type Resource } from './served.ts'
import { ApiError } from './status.ts'
import type { ApiObject, Subresource } from './types.ts'
import { timestamp } from './write-rules.ts'

export interface Patch {
  readonly kind: 'json' | 'merge' | 'strategic' | 'apply'
  readonly body: unknown
}

const KINDS: Readonly<Record<string, Patch['kind']>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
}

/** Reads the body of a PATCH. @throws ApiError UnsupportedMediaType, BadRequest. */
export function readPatch(resource: Resource, type: string, bytes: Buffer): Patch {
  const kind = KINDS[type]
  // Custom resources have no merge keys: clients fall back to a merge patch when they are told so.
  if (!kind || (kind === 'strategic' && !resource.builtIn))
    throw new ApiError('UnsupportedMediaType', '415: Unsupported Media Type', {})
  return { kind, body: kind === 'apply' ? parseYaml(bytes) : parsePatch(bytes) }
}

function parsePatch(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new ApiError('BadRequest', `error decoding patch: ${(error as Error).message}`)
  }
}

export interface PatchOptions {
  readonly fieldManager?: string
  readonly subresource?: Subresource
  readonly force: boolean
  readonly nowMs: number
}

/** The object a patch makes of what is stored. @throws ApiError of the reason the API gives. */
export function applyPatch(
  resource: Resource,
  key: ObjectKey,
  live: ApiObject | undefined,
  patch: Patch,
  options: PatchOptions,
): ApiObject {
  if (patch.kind === 'apply') return applied(resource, key, live, patch.body, options)
  if (!live) throw new ApiError('NotFound', `${resource.plural} "${key.name}" not found`)
  try {
    switch (patch.kind) {
      case 'json':
        return applyJsonPatch(live, patch.body) as ApiObject
      case 'merge':
        return applyMergePatch(live, patch.body) as ApiObject
      case 'strategic':
        return applyStrategicPatch(live, patch.body, resource.schema) as ApiObject
    }
  } catch (error) {
    if (!(error instanceof PatchError)) throw error
    // The original takes every list for a patch, and finds later that it does not fit.
    if (patch.kind === 'json' && Array.isArray(patch.body) && error.status === 400)
      throw new ApiError('Invalid', error.message, {}, { cause: error })
    const reasons = { 400: 'BadRequest', 413: 'RequestEntityTooLarge', 422: 'Invalid' } as const
    throw new ApiError(reasons[error.status], error.message, error.status === 422 ? {} : undefined, { cause: error })
  }
}

function applied(
  resource: Resource,
  key: ObjectKey,
  live: ApiObject | undefined,
  body: unknown,
  options: PatchOptions,
): ApiObject {
  const given = body as ApiObject | null
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new ApiError('BadRequest', 'error decoding YAML: the applied configuration is no object')
  const apiVersion = groupVersion(resource)
  if (given.kind !== resource.kind || given.apiVersion !== apiVersion)
    throw new ApiError(
      'BadRequest',
      `the applied configuration must be of kind ${resource.kind} in ${apiVersion}, not ${given.kind ?? ''} in ${given.apiVersion ?? ''}`,
    )
  if (given.metadata?.managedFields !== undefined)
    throw new ApiError('BadRequest', 'metadata.managedFields must be nil')
  const metadata = { ...given.metadata, name: given.metadata?.name ?? key.name }
  if (resource.namespaced && !metadata.namespace && key.namespace) metadata.namespace = key.namespace
  try {
    return applyConfiguration({
      live,
      config: { ...given, metadata },
      manager: options.fieldManager ?? '',
      force: options.force,
      schema: resource.schema,
      now: timestamp(options.nowMs),
      subresource: options.subresource,
      status: resource.status,
    })
  } catch (error) {
    throw refusal(error)
  }
}

function refusal(error: unknown): unknown {
  if (error instanceof ApplyRefusedError) return new ApiError('BadRequest', error.message, undefined, { cause: error })
  if (!(error instanceof ApplyConflictError)) return error
  const causes = error.conflicts.map(({ manager, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field: path,
  }))
  return new ApiError('Conflict', error.message, { causes }, { cause: error })
}
