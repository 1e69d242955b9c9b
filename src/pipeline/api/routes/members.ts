import type { FastifyInstance } from 'fastify'
import type { AccessView } from '#access'
import { decideMember, getClusterSet, listClusterSets } from '#http'
import { FleetError, isClusterName } from '#model'
import { acceptJson, bodyOf } from '../body.ts'
import { RefusedError } from '../problem.ts'
import { accessViewOf, type Parts, route, visibleClusters } from '../route.ts'
import type { ServedMembers } from '../types.ts'

const MAX_BODY_BYTES = 4096

/** Sets of clusters, and decisions about members, for administrators. */
export function memberRoutes(app: FastifyInstance, parts: Parts, members: ServedMembers | undefined): void {
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

  app.register(async (scope) => {
    acceptJson(scope, MAX_BODY_BYTES)
    route(scope, parts, decideMember, async ({ request, params }) => {
      const { name: cluster, decision } = params
      const { request: wanted } = bodyOf(decideMember, request)
      request.auditNote = { resource: `managedcluster ${cluster}`, reason: decision }
      if (!members)
        throw new RefusedError('members_off', 'this hub looks after no members; docs/guide/members.md says how it does')
      if (!isClusterName(cluster))
        throw new RefusedError('unknown_member', `${JSON.stringify(cluster)} can be no cluster's name`)
      const about = { cluster, ...(wanted !== undefined && { request: wanted }) }
      const done = await members.decide(decision, about).catch((error: unknown) => {
        throw refusedByHub(error, `clusterpulse ${decision} ${cluster}`)
      })
      request.auditNote = { resource: `managedcluster ${cluster}`, reason: `${decision}: ${done.join('; ')}` }
      return { fresh: { done } }
    })
  })
}

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
