import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AccessFilter, Principal } from '#access'
import type { Access, ParamsOf, QueryOf, RouteContract } from '#http'
import { type Clock, type ClusterState, invariant } from '#model'
import type { StateReader } from '#state'
import { type Body, type BodyCache, type Origin, textBody } from './bodies.ts'
import { clusterNotFound } from './problem.ts'
import { steadyUntil, type Views, type VisibleCluster } from './views.ts'

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | null
  }
  interface FastifyContextConfig {
    access?: Access
  }
}

/** What every route is made of. */
export interface Parts {
  readonly state: StateReader
  readonly access: AccessFilter
  readonly views: Views
  readonly bodies: BodyCache
  readonly clock: Clock
}

/** One request, validated. */
export interface Call<C extends RouteContract> {
  readonly params: ParamsOf<C>
  readonly query: QueryOf<C>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** ms since the Unix epoch; the same for everything this answer says */
  readonly now: number
}

/** `body` is encoded and may be kept by the client; `fresh` is not; `sent` was answered already. */
export type Answer = { readonly body: Body } | { readonly fresh: unknown; readonly status?: number } | 'sent'

/** Registers a route by its contract. */
export function route<C extends RouteContract>(
  app: FastifyInstance,
  { clock }: Pick<Parts, 'clock'>,
  contract: C,
  handler: (call: Call<C>) => Answer | Promise<Answer>,
): void {
  const { params, querystring } = contract.schema
  app.route({
    method: contract.method,
    url: contract.url,
    config: { access: contract.access },
    exposeHeadRoute: contract.method === 'GET' && contract.contentType !== 'text/event-stream',
    schema: { ...(params && { params }), ...(querystring && { querystring }) },
    handler: async (request, reply) => {
      const answer = await handler({
        params: request.params as ParamsOf<C>, // Fastify has validated both against the contract
        query: request.query as QueryOf<C>,
        request,
        reply,
        now: clock.now(),
      })
      if (answer === 'sent') return reply
      if ('body' in answer) return sendBody(request, reply, answer.body)
      reply.code(answer.status ?? 200).header('cache-control', 'private, no-store')
      return reply.type('application/json').send(Buffer.from(`${JSON.stringify(answer.fresh)}\n`))
    },
  })
}

const worthPacking = 1024

export async function sendBody(request: FastifyRequest, reply: FastifyReply, body: Body, type = 'application/json') {
  reply.header('cache-control', 'private, no-cache').header('vary', 'Accept-Encoding')
  const known = request.headers['if-none-match']
  if (known !== undefined && matches(known, body.etag)) {
    return reply.code(304).header('etag', `"${body.etag}"`).send()
  }
  reply.type(type)
  if (body.plain.length < worthPacking || !acceptsGzip(request.headers['accept-encoding'])) {
    return reply.header('etag', `"${body.etag}"`).send(body.plain)
  }
  // Other bytes need another strong tag (RFC 9110, 8.8.1).
  reply.header('etag', `"${body.etag}-gzip"`).header('content-encoding', 'gzip')
  return reply.send(await body.gzipped())
}

function matches(header: string, etag: string): boolean {
  if (header.trim() === '*') return true
  return header.split(',').some((tag) => {
    const bare = tag.trim().replace(/^W\//, '').slice(1, -1)
    return bare === etag || bare === `${etag}-gzip`
  })
}

export const acceptsGzip = (header: string | string[] | undefined): boolean =>
  header !== undefined && /(^|,)\s*(x-)?gzip\s*(;\s*q=(?!0(\.0*)?\s*(,|$))[\d.]+\s*)?(,|$)/i.test(String(header))

export function principalOf(request: FastifyRequest): Principal {
  invariant(request.principal, 'a route that is not public runs only with a principal')
  return request.principal
}

/** The clusters the principal may see, by name. */
export function visibleClusters({ state, views }: Parts, principal: Principal): VisibleCluster[] {
  const visible: VisibleCluster[] = []
  for (const cluster of state.clusters()) {
    const view = views.of(principal, cluster)
    if (view) visible.push(view)
  }
  return visible
}

/** @throws RefusedError `cluster_not_found`, whether there is none or it is hidden */
export function visibleCluster({ state, views }: Parts, principal: Principal, name: string): VisibleCluster {
  const cluster = state.cluster(name)
  const visible = cluster && views.of(principal, cluster)
  if (!visible) throw clusterNotFound(name)
  return visible
}

/** What an answer about these clusters depends on besides the question. */
export function originOf(tag: unknown, clusters: readonly VisibleCluster[], now: number): Origin {
  let validUntil = Number.POSITIVE_INFINITY
  for (const { state } of clusters) validUntil = Math.min(validUntil, steadyUntil(state, now))
  return { tag, validUntil }
}

const questionOf = (name: string, fingerprint: string, question: unknown): string =>
  `${name} ${fingerprint} ${JSON.stringify(question)}`

/** An answer about the whole visible fleet, encoded once per state version and sort of principal. */
export function fleetBody<C extends RouteContract>(
  parts: Parts,
  contract: C,
  { request, query, now }: Call<C>,
  encode: (clusters: readonly VisibleCluster[], previous: Body | undefined) => Body,
): Answer {
  const principal = principalOf(request)
  const key = questionOf(contract.schema.operationId, parts.access.fingerprint(principal), query)
  const tag = parts.state.version()
  const known = parts.bodies.get(key, tag, now)
  if (known) return { body: known }
  const clusters = visibleClusters(parts, principal)
  const body = encode(clusters, parts.bodies.previous(key))
  parts.bodies.set(key, originOf(tag, clusters, now), body)
  return { body }
}

/** An answer about one cluster, encoded once per state of that cluster and sort of principal. */
export function clusterBody<C extends RouteContract>(
  parts: Parts,
  contract: C,
  { request, params, query, now }: Call<C>,
  name: string,
  encode: (cluster: VisibleCluster) => string,
): Answer {
  const principal = principalOf(request)
  const cluster = visibleCluster(parts, principal, name)
  const key = questionOf(contract.schema.operationId, parts.access.fingerprint(principal), [params, query])
  const tag: ClusterState = cluster.state
  const known = parts.bodies.get(key, tag, now)
  if (known) return { body: known }
  const body = textBody(encode(cluster))
  parts.bodies.set(key, originOf(tag, [cluster], now), body)
  return { body }
}
