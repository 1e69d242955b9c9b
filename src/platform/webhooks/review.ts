import {
  type AdmissionRequest,
  type AdmissionRule,
  type AdmittedObject,
  missingRight,
  type NeededRight,
  type ObjectReference,
  type ObjectSelection,
  refusalOf,
} from '#kinds'
import { jsonPatch } from './json-patch.ts'

/** The API that rules ask, through whoever runs them. */
export interface ReviewWorld {
  may(user: AdmissionRequest['user'], right: NeededRight, signal: AbortSignal): Promise<boolean>
  /** undefined where there is none */
  read(reference: ObjectReference, signal: AbortSignal): Promise<AdmittedObject | undefined>
  list(selection: ObjectSelection, signal: AbortSignal): Promise<readonly AdmittedObject[]>
}

/** admission.k8s.io/v1 AdmissionRequest, as far as it is read. */
export interface ReviewRequest {
  readonly uid: string
  readonly operation: string
  readonly resource?: { readonly group: string; readonly resource: string }
  readonly name?: string
  readonly namespace?: string
  readonly subResource?: string
  readonly userInfo: {
    readonly username?: string
    readonly uid?: string
    readonly groups?: readonly string[]
    readonly extra?: Readonly<Record<string, readonly string[]>>
  }
  readonly object?: AdmittedObject | null
  readonly oldObject?: AdmittedObject | null
  readonly dryRun?: boolean
}

/** admission.k8s.io/v1 AdmissionResponse. */
export interface ReviewResponse {
  readonly uid: string
  readonly allowed: boolean
  readonly patchType?: 'JSONPatch'
  /** base64 of a JSON patch */
  readonly patch?: string
  /** as the embedded API refuses: people's tools print the causes */
  readonly status?: {
    readonly code: number
    readonly reason: string
    readonly message: string
    readonly details: object
  }
}

export const operationOf = ({ operation }: ReviewRequest): AdmissionRequest['operation'] =>
  operation === 'CREATE' || operation === 'DELETE' ? operation : 'UPDATE'

function requestOf(review: ReviewRequest, nowMs: number): AdmissionRequest {
  const { userInfo, object, oldObject, namespace, subResource } = review
  const { username = '', uid, groups = [], extra } = userInfo
  return {
    operation: operationOf(review),
    user: { name: username, groups, ...(uid && { uid }), ...(extra && { extra }) },
    object: object ?? undefined,
    before: oldObject ?? undefined,
    name: review.name || (object?.metadata.name ?? ''),
    ...(namespace && { namespace }),
    ...(subResource && { subresource: subResource }),
    dryRun: review.dryRun === true,
    nowMs,
  }
}

const detailsOf = (review: ReviewRequest, { name }: AdmissionRequest) => ({
  ...(name && { name }),
  ...(review.resource?.group && { group: review.resource.group }),
  kind: review.resource?.resource ?? '',
})

function forbidden(review: ReviewRequest, request: AdmissionRequest, message: string): ReviewResponse {
  const status = { code: 403, reason: 'Forbidden', message, details: detailsOf(review, request) }
  return { uid: review.uid, allowed: false, status }
}

function invalid(
  review: ReviewRequest,
  request: AdmissionRequest,
  faults: Parameters<typeof refusalOf>[0],
): ReviewResponse {
  const causes = faults.map(({ path, message }) => ({ reason: 'FieldValueInvalid', message, field: path }))
  const details = { ...detailsOf(review, request), causes }
  const status = { code: 422, reason: 'Invalid', message: refusalOf(faults), details }
  return { uid: review.uid, allowed: false, status }
}

/** What the rule makes of the object, as a patch. */
export function mutate(rule: AdmissionRule, review: ReviewRequest, nowMs: number): ReviewResponse {
  const { uid } = review
  const request = requestOf(review, nowMs)
  const mutation = rule.mutate?.(request)
  if (!mutation || !request.object) return { uid, allowed: true }
  if ('faults' in mutation)
    return mutation.faults.length > 0 ? invalid(review, request, mutation.faults) : { uid, allowed: true }
  const patch = jsonPatch(request.object, mutation.object)
  if (patch.length === 0) return { uid, allowed: true }
  return { uid, allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
}

/** Whether the write may be: by the rights of whoever writes, then by the rule. */
export async function validate(
  rule: AdmissionRule,
  review: ReviewRequest,
  { world, nowMs, signal }: { readonly world: ReviewWorld; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<ReviewResponse> {
  const { uid } = review
  const request = requestOf(review, nowMs)
  for (const right of rule.rights?.(request) ?? [])
    if (!(await world.may(request.user, right, signal)))
      return forbidden(review, request, missingRight(request.user, right))
  const found = await Promise.all((rule.reads?.(request) ?? []).map((one) => world.read(one, signal)))
  const listed = await Promise.all((rule.lists?.(request) ?? []).map((one) => world.list(one, signal)))
  const faults = rule.faults?.(request, found, listed) ?? []
  return faults.length > 0 ? invalid(review, request, faults) : { uid, allowed: true }
}
