import type { Attempt, User } from './access.ts'
import type { Call } from './http/call.ts'
import { ApiError } from './status.ts'

interface ReviewKind {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
}

const authorization = (kind: string, namespaced = false): ReviewKind => ({
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: `${kind.toLowerCase()}s`,
  kind,
  namespaced,
})

/** Questions that are asked by creating them and answered at once. */
export const reviewKinds: readonly ReviewKind[] = [
  { group: 'authentication.k8s.io', version: 'v1', plural: 'tokenreviews', kind: 'TokenReview', namespaced: false },
  {
    group: 'authentication.k8s.io',
    version: 'v1',
    plural: 'selfsubjectreviews',
    kind: 'SelfSubjectReview',
    namespaced: false,
  },
  authorization('SubjectAccessReview'),
  authorization('LocalSubjectAccessReview', true),
  authorization('SelfSubjectAccessReview'),
  authorization('SelfSubjectRulesReview'),
]

interface ReviewSpec {
  readonly token?: string
  readonly user?: string
  readonly groups?: readonly string[]
  readonly resourceAttributes?: {
    readonly verb?: string
    readonly group?: string
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly nonResourceAttributes?: { readonly verb?: string; readonly path?: string }
}

const userInfo = ({ name, uid, groups }: User) => ({ username: name, ...(uid ? { uid } : {}), groups })

function attemptOf({ resourceAttributes, nonResourceAttributes }: ReviewSpec): Attempt {
  if (nonResourceAttributes) return { verb: nonResourceAttributes.verb ?? '', path: nonResourceAttributes.path ?? '' }
  const { verb = '', ...rest } = resourceAttributes ?? {}
  return { verb, ...rest }
}

function requireAttributes(spec: ReviewSpec): void {
  if (!spec.resourceAttributes === !spec.nonResourceAttributes)
    throw new ApiError(
      'Invalid',
      'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      { group: 'authorization.k8s.io' },
    )
}

/** The review with its answer in `status`. */
export function answerReview(
  kind: string,
  body: object,
  { access, user: caller, server }: Pick<Call, 'access' | 'user' | 'server'>,
): object {
  const spec = ((body as { spec?: ReviewSpec }).spec ?? {}) as ReviewSpec
  const allowed = (yes: boolean) => ({ allowed: yes, ...(yes ? {} : { reason: 'no token of this server allows it' }) })
  switch (kind) {
    case 'TokenReview': {
      if (!spec.token) throw new ApiError('BadRequest', 'token is required for TokenReview in authentication')
      const holder = access.holder(spec.token) ?? server.tokens.holder(spec.token)
      const status = holder
        ? { authenticated: true, user: userInfo(holder) }
        : { authenticated: false, user: {}, error: 'invalid bearer token' }
      return { ...body, status }
    }
    case 'SelfSubjectReview':
      return { ...body, status: { userInfo: userInfo(caller) } }
    case 'SelfSubjectRulesReview':
      return { ...body, status: { ...access.rulesOf(caller), incomplete: false } }
    case 'SelfSubjectAccessReview':
      requireAttributes(spec)
      return { ...body, status: allowed(access.allows(caller, attemptOf(spec))) }
    default: {
      requireAttributes(spec)
      const subject = { name: spec.user ?? '', groups: spec.groups ?? [] }
      return { ...body, status: allowed(access.allows(subject, attemptOf(spec))) }
    }
  }
}
