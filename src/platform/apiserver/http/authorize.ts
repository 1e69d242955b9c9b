import type { Attempt } from '../rbac/index.ts'
import { isRbac, refuseEscalation } from '../rbac/index.ts'
import { nameSelected } from '../selectors.ts'
import { ApiError } from '../status.ts'
import type { WriteOptions } from '../write-rules.ts'
import type { Call } from './call.ts'
import { checkCertificateRequest, isRequest } from './certificate-requests.ts'

/** Where a request points: `/api/v1/namespaces/{namespace}/{plural}/{name}/{subresource}` with its parts. */
export interface Target {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
}

export const isTrue = (text: string | null): boolean => text === '1' || text === 'true' || text === ''

const WRITES: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch' }

/** What a request wants, in the words of roles. */
function attemptOf({ method, query }: Pick<Call, 'method' | 'query'>, target: Target): Attempt & { verb: string } {
  const { group, plural, subresource } = target
  const many = target.name === undefined
  const reads = isTrue(query.get('watch')) ? 'watch' : 'list'
  const one: Readonly<Record<string, string>> = { ...WRITES, GET: 'get', DELETE: 'delete' }
  const all: Readonly<Record<string, string>> = { ...WRITES, GET: reads, DELETE: 'deletecollection' }
  // Who lists or watches one object by its name asks for no more than that.
  const selected = many && method === 'GET' ? selectedName(query.get('fieldSelector')) : undefined
  const name = target.name ?? selected
  // A namespace is in itself: a role of a namespace may let its holders read or change it.
  const namespace = group === '' && plural === 'namespaces' ? target.name : target.namespace
  return {
    verb: (many ? all : one)[method] ?? method.toLowerCase(),
    group,
    resource: plural,
    ...(subresource ? { subresource } : {}),
    ...(namespace ? { namespace } : {}),
    ...(name ? { name } : {}),
  }
}

function selectedName(fieldSelector: string | null): string | undefined {
  const name = nameSelected(fieldSelector ?? '')
  return name && !/[/%\\]/.test(name) && name !== '.' && name !== '..' ? name : undefined
}

/** @throws ApiError Forbidden */
export function checkAccess(call: Call, target: Target): void {
  checkAttempt(call, attemptOf(call, target))
}

/** @throws ApiError Forbidden */
export function checkPath(call: Call): void {
  checkAttempt(call, { verb: call.request.method?.toLowerCase() ?? '', path: call.path })
}

/** @throws ApiError Forbidden, in the words of the Kubernetes API */
export function checkAttempt({ server, user }: Pick<Call, 'server' | 'user'>, attempt: Attempt): void {
  const { allowed, reason } = server.authorizer.decide(user, attempt)
  if (allowed) return
  const because = reason ? `: ${reason}` : ''
  const who = `User "${user.name}" cannot ${attempt.verb}`
  if ('path' in attempt) throw new ApiError('Forbidden', `forbidden: ${who} path "${attempt.path}"${because}`, {})
  const { group, resource, subresource, namespace, name } = attempt
  const what = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope'
  throw new ApiError(
    'Forbidden',
    `${group ? `${resource}.${group}` : resource}${name ? ` "${name}"` : ''} is forbidden: ${who} resource "${what}" in API group "${group}" ${where}${because}`,
    { ...(name ? { name } : {}), ...(group ? { group } : {}), kind: resource },
  )
}

/**
 * What else is asked of a writer once the object is known: who makes an object by replacing or patching what is not there
 * needs `create`, and who grants rights has them.
 */
export function guardOf(call: Call, target: Target): NonNullable<WriteOptions['guard']> {
  return (object, before) => {
    if (!before && call.method !== 'POST') checkAccess({ ...call, method: 'POST' }, target)
    if (isRequest(target)) checkCertificateRequest(call, target, object, before)
    if (isRbac(target.group)) refuseEscalation(call.server.authorizer, call.user, { ...target, object, before })
  }
}
