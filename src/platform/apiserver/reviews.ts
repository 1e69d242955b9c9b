import type { Call } from './http/call.ts'
import type { Attempt, HeldRules } from './rbac/index.ts'
import { ApiError } from './status.ts'
import { type User, userFields } from './user.ts'

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
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
  /** of a SelfSubjectRulesReview */
  readonly namespace?: string
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

function attemptOf({ resourceAttributes, nonResourceAttributes }: ReviewSpec): Attempt {
  if (nonResourceAttributes) return { verb: nonResourceAttributes.verb ?? '', path: nonResourceAttributes.path ?? '' }
  const { verb = '', group = '', resource = '', ...rest } = resourceAttributes ?? {}
  return { verb, group, resource, ...rest }
}

const GROUP = 'authorization.k8s.io'

/** @throws ApiError Invalid for a question about both a resource and a path, or neither; about nobody, or of another namespace */
function checkQuestion(kind: string, spec: ReviewSpec, namespace: string | undefined): void {
  const refuse = (path: string, message: string): never => {
    const causes = [{ reason: 'FieldValueInvalid', message, field: path }]
    throw new ApiError('Invalid', `${kind}.${GROUP} "" is invalid: ${path}: ${message}`, { group: GROUP, kind, causes })
  }
  if (spec.resourceAttributes && spec.nonResourceAttributes)
    refuse('spec.nonResourceAttributes', 'Invalid value: cannot be specified in combination with resourceAttributes')
  if (!spec.resourceAttributes && !spec.nonResourceAttributes)
    refuse(
      'spec.resourceAttributes',
      'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
    )
  if (kind === 'SelfSubjectAccessReview') return
  const groups: unknown = spec.groups ?? []
  if (!Array.isArray(groups) || groups.some((group) => typeof group !== 'string'))
    refuse('spec.groups', 'Invalid value: must be a list of texts')
  if (!spec.user && !spec.groups?.length)
    refuse('spec.user', 'Invalid value: "": at least one of user or group must be specified')
  if (namespace === undefined) return
  if (spec.nonResourceAttributes)
    refuse('spec.nonResourceAttributes', 'Invalid value: disallowed on this kind of request')
  const asked = spec.resourceAttributes?.namespace ?? ''
  if (asked !== namespace)
    refuse(
      'spec.resourceAttributes.namespace',
      `Invalid value: ${JSON.stringify(asked)}: must match metadata.namespace`,
    )
}

function rulesStatus({ rules, faults }: HeldRules): object {
  const resourceRules = rules
    .filter(({ resources }) => resources?.length)
    .map(({ verbs, apiGroups, resources, resourceNames }) => ({ verbs, apiGroups, resources, resourceNames }))
  const nonResourceRules = rules
    .filter(({ nonResourceURLs }) => nonResourceURLs?.length)
    .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs }))
  const evaluationError = faults.join(', ')
  return { resourceRules, nonResourceRules, incomplete: false, ...(evaluationError && { evaluationError }) }
}

/**
 * The review with its answer in `status`.
 * @param namespace where a LocalSubjectAccessReview was made
 */
export function answerReview(
  kind: string,
  body: object,
  { holders, user: caller, server }: Pick<Call, 'holders' | 'user' | 'server'>,
  namespace: string | undefined,
): object {
  const spec = (body as { spec?: ReviewSpec }).spec ?? {}
  const decided = (user: User) => {
    checkQuestion(kind, spec, namespace)
    const { allowed, reason } = server.authorizer.decide(user, attemptOf(spec))
    return { ...body, status: { allowed, ...(reason && { reason }) } }
  }
  switch (kind) {
    case 'TokenReview': {
      const { token } = spec
      if (!token) throw new ApiError('BadRequest', 'token is required for TokenReview in authentication')
      const holder = holders.map((each) => each.holder(token)).find((user) => user !== undefined)
      const status = holder
        ? { authenticated: true, user: userFields(holder) }
        : { authenticated: false, user: {}, error: 'invalid bearer token' }
      return { ...body, status }
    }
    case 'SelfSubjectReview':
      return { ...body, status: { userInfo: userFields(caller) } }
    case 'SelfSubjectRulesReview':
      if (!spec.namespace) throw new ApiError('BadRequest', 'no namespace on request')
      return { ...body, status: rulesStatus(server.authorizer.held(caller, spec.namespace)) }
    case 'SelfSubjectAccessReview':
      return decided(caller)
    default:
      return decided({ name: spec.user ?? '', groups: spec.groups ?? [] })
  }
}
