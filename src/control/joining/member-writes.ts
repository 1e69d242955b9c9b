import type { AuditEntry } from '#audit'
import { CLUSTER_LABEL, memberOfUser } from '#authority'
import { CLUSTER_SET_LABEL } from '#model'
import { asksForItself } from './certificate-request.ts'
import { deciderIn, onPage } from './decided-by.ts'
import { CERTIFICATES_ANNOTATION } from './members.ts'

/** An object, as far as it is looked at. */
export interface WrittenObject {
  readonly metadata: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: unknown
  readonly status?: unknown
}

/** A write to the hub's API that its caller had a right to, whoever wrote. */
export interface ObservedWrite {
  /** of the request; '' where the API gives none */
  readonly id: string
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly group: string
  /** the plural */
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name: string
  readonly object: WrittenObject | undefined
  readonly before: WrittenObject | undefined
  /** of the peer; '' where the API does not say */
  readonly address: string
}

/** A request that the hub's API refused for want of a right. */
export interface RefusedRequest extends Pick<ObservedWrite, 'id' | 'user' | 'address'> {
  readonly method: string
  readonly path: string
  readonly message: string
}

const CERTIFICATES_GROUP = 'certificates.k8s.io'
const CLUSTER_GROUP = 'cluster.open-cluster-management.io'
const OF_MEMBERS = [CLUSTER_GROUP, 'work.open-cluster-management.io', 'addon.open-cluster-management.io'] as const

/** Groups of the API in which members are written about. Leases and events are none: heartbeats are no decisions. */
export const AUDITED_GROUPS: ReadonlySet<string> = new Set([CERTIFICATES_GROUP, ...OF_MEMBERS])

const written = (group: string, scope: 'Cluster' | 'Namespaced', ...resources: readonly string[]) => ({
  ...{ apiGroups: [group], apiVersions: ['*'], resources, operations: ['CREATE', 'UPDATE', 'DELETE'], scope },
})

/** The same for the API server of a hub on Kubernetes, which tells of them by a webhook: rules of it, and a CEL condition. */
export const auditedWrites = {
  rules: [
    written(CERTIFICATES_GROUP, 'Cluster', 'certificatesigningrequests', 'certificatesigningrequests/approval'),
    written(CLUSTER_GROUP, 'Cluster', 'managedclusters', 'managedclusters/status'),
    written(OF_MEMBERS[1], 'Namespaced', 'manifestworks', 'manifestworks/status'),
    written(OF_MEMBERS[2], 'Namespaced', 'managedclusteraddons', 'managedclusteraddons/status'),
  ],
  condition:
    'request.userInfo.username.startsWith("system:open-cluster-management:") || request.resource.resource == "certificatesigningrequests" || (request.resource.resource == "managedclusters" && !has(request.subResource))',
}

/** Why a write is not stored: a rule refused it, or it could not be done. Nothing changed. */
export interface FailedWrite {
  /** as the API answered */
  readonly httpCode: number
  readonly message: string
}

/** The entry of the audit trail for a write. undefined: it decides nothing about a member, and no member made it */
export function auditEntryOfWrite(write: ObservedWrite, at: number, failure?: FailedWrite): AuditEntry | undefined {
  const entry = entryOfStored(write, at)
  if (!entry || !failure) return entry
  return { ...entry, status: failure.httpCode, reason: `${entry.reason}: not done, ${failure.message.slice(0, 500)}` }
}

function entryOfStored(write: ObservedWrite, at: number): AuditEntry | undefined {
  const decision = decisionIn(write, at)
  // Who asks is no decision, and can be repeated without end: the trail bounds it, so that it pushes nothing else out.
  const isAsking = write.operation === 'CREATE' && asksForItself(write.user.name)
  if (decision) return entryOf(write, at, { kind: isAsking ? 'member' : 'administration', ...decision })
  const member = memberOfUser(write.user.name)
  if (!member) return undefined
  const { operation, group, resource, subresource, namespace, name } = write
  const where = `${resource}${subresource ? `/${subresource}` : ''}.${group}`
  return entryOf(write, at, {
    ...{ kind: 'member', route: 'member_write', cluster: member.cluster },
    reason: `${VERBS[operation]} ${where} ${namespace ? `${namespace}/` : ''}${name}`,
  })
}

/** The entry for a request of a member that was refused. undefined: another one asked */
export function auditEntryOfRefusal(refused: RefusedRequest, at: number): AuditEntry | undefined {
  const member = memberOfUser(refused.user.name)
  if (!member) return undefined
  const { method, path, message } = refused
  const reason = `${method} ${path.slice(0, 256)}: ${message}`
  const said = { kind: 'member', route: 'member_refused', cluster: member.cluster, reason } as const
  return { ...entryOf(refused, at, said), status: 403 }
}

const VERBS = { CREATE: 'created', UPDATE: 'changed', DELETE: 'deleted' } as const

interface Said {
  readonly kind: AuditEntry['kind']
  readonly route: string
  readonly cluster: string
  readonly reason: string
  /** of what was asked for; default: that of the request to the API */
  readonly request?: string
}

const entryOf = (
  { id, user, address }: Pick<ObservedWrite, 'id' | 'user' | 'address'>,
  at: number,
  { kind, route, cluster, reason, request = id }: Said,
): AuditEntry => ({
  ...{ at, kind, requestId: request, username: user.name, groups: user.groups, method: 'API', address, route },
  ...{ resource: `managedcluster ${cluster}`, status: 200, reason, policy: '', policyHash: '' },
})

const isProgram = (username: string): boolean => username.startsWith('system:serviceaccount:')

/** What the write decides about a member. */
function decisionIn(write: ObservedWrite, at: number): Omit<Said, 'kind'> | undefined {
  const { group, resource } = write
  if (group === CERTIFICATES_GROUP && resource === 'certificatesigningrequests') return certificateDecision(write)
  if (group !== CLUSTER_GROUP || resource !== 'managedclusters' || write.subresource) return undefined
  const decision = membershipDecision(write)
  if (!decision) return undefined
  // Nobody but a page writes for others: what a person writes there of somebody else says nothing.
  const by = isProgram(write.user.name) ? deciderIn(write, at) : undefined
  return by ? { ...decision, reason: `${decision.reason}, ${onPage(by)}`, request: by.requestId } : decision
}

interface Condition {
  readonly type: string
  readonly reason?: string
  readonly message?: string
}

const DECISIONS: ReadonlySet<string> = new Set(['Approved', 'Denied', 'Failed'])

function certificateDecision(write: ObservedWrite): Omit<Said, 'kind'> | undefined {
  const { operation, subresource, object, before, name } = write
  const cluster = (object ?? before)?.metadata.labels?.[CLUSTER_LABEL]
  if (!cluster) return undefined // no request of a member
  const said = { cluster, request: name }
  // One that is decided is cleaned up within hours.
  if (operation === 'DELETE' && !subresource)
    return conditionsOf(before).length > 0
      ? undefined
      : { ...said, route: 'request_deleted', reason: 'was deleted while it waited for a decision' }
  if (operation === 'CREATE') return { ...said, route: 'request_made', reason: `asks for a certificate of ${cluster}` }
  if (operation !== 'UPDATE' || subresource !== 'approval') return undefined
  const known = new Set(conditionsOf(before).map(({ type }) => type))
  // One that was approved before is turned down as failed.
  const made = conditionsOf(object).find(({ type }) => DECISIONS.has(type) && !known.has(type))
  if (!made) return undefined
  const route = made.type === 'Approved' ? 'request_approved' : 'request_denied'
  return { ...said, route, reason: made.message || made.reason || '' }
}

const conditionsOf = (object: WrittenObject | undefined): readonly Condition[] =>
  (object?.status as { readonly conditions?: readonly Condition[] } | undefined)?.conditions ?? []

const isAccepted = (object: WrittenObject | undefined): boolean =>
  (object?.spec as { readonly hubAcceptsClient?: unknown } | undefined)?.hubAcceptsClient === true
const revocationOf = (object: WrittenObject | undefined): string | undefined => {
  const text = object?.metadata.annotations?.[CERTIFICATES_ANNOTATION]
  return text?.startsWith('revoked-') ? text : undefined
}

/** Who names none is in the default one. */
const setOf = (object: WrittenObject | undefined): string =>
  (object?.metadata.labels?.[CLUSTER_SET_LABEL] ?? '').slice(0, 253) || 'default'

function membershipDecision(write: ObservedWrite): Omit<Said, 'kind'> | undefined {
  const { operation, object, before, name: cluster } = write
  if (operation === 'DELETE') return { cluster, route: 'cluster_deleted', reason: 'the ManagedCluster is deleted' }
  const revocation = revocationOf(object)
  if (revocation !== undefined && revocation !== revocationOf(before))
    return { cluster, route: 'cluster_revoked', reason: 'no certificate of it counts any more' }
  if (isAccepted(object) !== isAccepted(before))
    return isAccepted(object)
      ? { cluster, route: 'cluster_accepted', reason: 'hubAcceptsClient is set to true' }
      : { cluster, route: 'cluster_denied', reason: 'hubAcceptsClient is set to false' }
  if (operation === 'CREATE') return { cluster, route: 'cluster_declared', reason: 'waits to be accepted' }
  const [from, to] = [setOf(before), setOf(object)]
  return from === to
    ? undefined
    : { cluster, route: 'cluster_moved', reason: `moved from the set ${from} to the set ${to}` }
}
