import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AccessView, Principal } from '#access'
import { decideMember, getClusterSet, getMemberDecisions, listClusterSets } from '#http'
import {
  FleetError,
  isClusterName,
  type MemberAct,
  type MemberDecision,
  type MemberRequest,
  memberDecisions,
} from '#model'
import { acceptJson, bodyOf } from '../body.ts'
import { Deciders } from '../deciders.ts'
import { RefusedError } from '../problem.ts'
import { accessViewOf, type Parts, principalOf, route, visibleClusters } from '../route.ts'
import type { ServedMembers } from '../types.ts'

const MAX_BODY_BYTES = 4096
/** As many requests as one answer tells. */
const MAX_REQUESTS = 500

/** Sets of clusters, and decisions about members, for whom the hub's API lets. */
export function memberRoutes(
  app: FastifyInstance,
  parts: Parts,
  members: ServedMembers | undefined,
  did: (act: MemberAct, request: FastifyRequest, reply: FastifyReply) => void,
): void {
  const seen = (accessView: AccessView) => visibleClusters(parts, accessView).map(({ state }) => state)

  route(app, parts, listClusterSets, ({ request }) => {
    const accessView = accessViewOf(request)
    const counts = parts.sets.counts(seen(accessView), accessView.administrator)
    return { fresh: { items: [...counts].map(([name, count]) => ({ name, count })) } }
  })

  route(app, parts, getClusterSet, ({ request, params: { name } }) => {
    const accessView = accessViewOf(request)
    return { fresh: { name, clusters: [...parts.sets.names(name, seen(accessView), accessView.administrator)] } }
  })

  const deciders = members && new Deciders(parts.access, members)

  route(app, parts, getMemberDecisions, async ({ request, query: { member } }) => {
    if (!members || !deciders) throw membersOff()
    const principal = principalOf(request)
    const lacks: Partial<Record<MemberDecision, readonly string[]>> = {}
    for (const decision of memberDecisions) {
      const missing = await deciders.lacks(principal, decision, member)
      if (missing.length > 0) lacks[decision] = missing
    }
    const may = memberDecisions.filter((decision) => !lacks[decision])
    const isTold = may.includes('accept') || may.includes('deny')
    const waiting = isTold ? members.requests.requests() : []
    const meant = member === undefined ? waiting : waiting.filter(({ cluster }) => cluster === member)
    const requests = meant.slice(0, MAX_REQUESTS).map(requestView)
    const rule = members.administratorsDecide ? 'administrators' : 'rights'
    return { fresh: { may, rule, lacks, requests, waiting: meant.length } }
  })

  app.register(async (scope) => {
    acceptJson(scope, MAX_BODY_BYTES)
    route(scope, parts, decideMember, async ({ request, reply, params }) => {
      const { name: cluster, decision } = params
      const { request: wanted } = bodyOf(decideMember, request)
      const resource = `managedcluster ${cluster}`
      request.auditNote = { resource, reason: decision }
      if (!members || !deciders) throw membersOff()
      if (!isClusterName(cluster))
        throw new RefusedError('unknown_member', `${JSON.stringify(cluster)} can be no cluster's name`)
      const lacks = await deciders.lacks(principalOf(request), decision, cluster)
      if (lacks.length > 0) throw rightsMissing(principalOf(request), `${decision} ${cluster}`, lacks)
      request.auditNote = { kind: 'administration', resource, reason: decision }
      const by = { username: principalOf(request).username, requestId: request.id }
      const about = { cluster, by, ...(wanted !== undefined && { request: wanted }) }
      const done = await members
        .decide(decision, about, (act) => {
          request.auditNote = { ...request.auditNote, hasActed: true }
          did(act, request, reply)
        })
        .catch((error: unknown) => {
          throw refusedByHub(error, `clusterpulse ${decision} ${cluster}`)
        })
      request.auditNote = { ...request.auditNote, reason: `${decision}: ${done.join('; ')}` }
      return { fresh: { done } }
    })
  })
}

const membersOff = () =>
  new RefusedError('members_off', 'this hub looks after no members; docs/guide/members.md says how it does')

/** The same whether there is such a cluster: who may not decide is told of none. */
const rightsMissing = ({ username }: Principal, what: string, lacks: readonly string[]) =>
  new RefusedError(
    'rights_missing',
    `${username} may not ${what}; lacking at the hub's API: ${lacks.join(', ')} (docs/guide/members.md, "Who may decide")`,
  )

const requestView = ({ name, cluster, address, key, requestedAt, username, agentVersion, missing }: MemberRequest) => ({
  ...{ name, member: cluster, address: address || null, key: key || null, requestedAt },
  ...{ username: username || null, agentVersion: agentVersion || null, missing: [...missing] },
})

/** What the API behind the hub says, with what to do; everything else is as it is. */
function refusedByHub(error: unknown, command: string): unknown {
  if (!(error instanceof FleetError) || !error.code.startsWith('kube_')) return error
  if (error.code === 'kube_forbidden')
    return new RefusedError(
      'hub_forbids',
      `the account of this page may not do it at the hub's API (${error.message}); who may can run: ${command}`,
      { cause: error },
    )
  return new RefusedError('store_unavailable', `the hub's API did not take it: ${error.message}`, {
    retryAfterSeconds: 5,
    cause: error,
  })
}
