import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Decider } from '#access'
import type { AuditEntry } from '#audit'
import type { ProblemCode } from '#http'
import type { ClusterState, MemberAct } from '#model'
import type { StateReader } from '#state'

/** What a route knows of its own request, where that is more than its address and the caller. */
export interface AuditNote {
  readonly kind?: AuditEntry['kind']
  /** who tried to sign in, or did */
  readonly username?: string
  readonly groups?: readonly string[]
  readonly method?: string
  readonly resource?: string
  readonly reason?: string
  /** it did something about a member, each an entry of its own already */
  readonly hasActed?: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    auditNote: AuditNote | null
    isAudited: boolean
    /** why it was refused; the reason is for the audit and may say more than the answer did */
    refusal: { readonly code: ProblemCode; readonly reason: string } | null
  }
}

/** Who was turned away, and from what. */
const denials: ReadonlySet<number> = new Set([401, 403, 429])

/** Whether it changed who may do what, or tried to: it is answered once its entry is written. */
export const isChange = ({ auditNote: note, method }: FastifyRequest): boolean =>
  note?.kind === 'sign_in' ||
  note?.kind === 'sign_out' ||
  note?.kind === 'view_as' ||
  (note?.kind === 'administration' && method !== 'GET' && method !== 'HEAD')

/** The entry of what a request did about a member, made when that is done: where it takes too long the request is answered before. */
export function auditEntryOfAct(
  { act, words, request }: MemberAct,
  ...of: Parameters<typeof entryOf>
): AuditEntry | undefined {
  const entry = entryOf(...of)
  return entry && { ...entry, route: act, requestId: request ?? entry.requestId, status: 200, reason: words }
}

/**
 * The entry of one request, made when it is answered.
 * @returns none for what concerns nobody (probes, the page's own files, questions that found nothing), or where its acts tell all
 */
export function auditEntry(...of: Parameters<typeof entryOf>): AuditEntry | undefined {
  const [, { auditNote }, { statusCode }] = of
  return auditNote?.hasActed && statusCode < 400 ? undefined : entryOf(...of)
}

function entryOf(
  state: StateReader,
  request: FastifyRequest,
  reply: FastifyReply,
  now: number,
): AuditEntry | undefined {
  const { url = '', config } = request.routeOptions
  const { auditNote: note, principal, actor, refusal } = request
  const status = reply.statusCode
  const hidden = hiddenFrom(state, request)
  const denied = denials.has(status) || hidden !== undefined
  if (!denied && !note && (config.access === undefined || config.access === 'public')) return undefined
  const cluster = state.cluster(clusterOf(request))
  const decider = cluster && request.accessView ? decidedBy(request, cluster) : null
  return {
    at: now,
    kind:
      note?.kind ??
      (denied ? 'denial' : actor ? 'view_as' : config.access === 'administrator' ? 'administration' : 'access'),
    requestId: request.id,
    username: note?.username ?? principal?.username ?? '',
    ...(actor && { actor: actor.username }),
    groups: note?.groups ?? principal?.groups ?? [],
    method: note?.method ?? principal?.method ?? '',
    address: request.ip,
    route: `${request.method} ${url}`,
    resource: note?.resource ?? resourceOf(request),
    status,
    reason: note?.reason ?? hidden ?? refusal?.reason ?? '',
    policy: decider?.policy ?? '',
    policyHash: decider?.hash ?? '',
  }
}

type Named = Readonly<Partial<Record<'name' | 'node' | 'cluster', unknown>>>
const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 253) : '')

const clusterOf = ({ params, query }: FastifyRequest): string =>
  text((params as Named | undefined)?.name) || text((query as Named | undefined)?.cluster)

function resourceOf(request: FastifyRequest): string {
  const cluster = clusterOf(request)
  const node = text((request.params as Named | undefined)?.node)
  if (node) return `node ${cluster}/${node}`
  return cluster ? `cluster ${cluster}` : 'fleet'
}

/** To the caller hidden and absent are one; here they are not. */
function hiddenFrom(state: StateReader, request: FastifyRequest): string | undefined {
  const { refusal } = request
  if (refusal?.code !== 'cluster_not_found' && refusal?.code !== 'node_not_found') return undefined
  const cluster = state.cluster(clusterOf(request))
  if (!cluster) return undefined
  if (refusal.code === 'cluster_not_found') return 'the cluster is hidden'
  return cluster.parts.node?.items.has(text((request.params as Named).node)) ? 'the node is hidden' : undefined
}

function decidedBy({ accessView }: FastifyRequest, cluster: ClusterState): Decider | null {
  return accessView?.permissions(cluster).decidedBy ?? null
}
