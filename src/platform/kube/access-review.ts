import type { KubeClient } from './types.ts'

/** Whoever a SubjectAccessReview is about. */
export interface ReviewedSubject {
  readonly user: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What they want to do, as RBAC names it. */
export interface ReviewedAttributes {
  readonly verb: string
  readonly group?: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

const ROOT = '/apis/authorization.k8s.io/v1'

/**
 * Asks the API server whether somebody may do something.
 * @param subject undefined: whoever asks
 * @throws KubeError where it does not say
 */
export async function reviewAccess(
  kube: Pick<KubeClient, 'request'>,
  subject: ReviewedSubject | undefined,
  resourceAttributes: ReviewedAttributes,
  signal: AbortSignal,
): Promise<boolean> {
  const kind = subject ? 'SubjectAccessReview' : 'SelfSubjectAccessReview'
  const body = { apiVersion: 'authorization.k8s.io/v1', kind, spec: { ...subject, resourceAttributes } }
  const path = `${ROOT}/${kind.toLowerCase()}s`
  const answer = await kube.request('POST', path, { body, contentType: 'application/json', signal })
  return (answer as { readonly status?: { readonly allowed?: unknown } } | undefined)?.status?.allowed === true
}
