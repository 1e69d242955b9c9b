import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Access, AccessView, Principal } from '#access'
import type { Attention } from '#attention'
import type { ParamsOf, QueryOf, RouteContract, Access as WhoMayCall } from '#http'
import { type Clock, type ClusterState, invariant } from '#model'
import type { Turns } from '#runtime'
import type { StateReader } from '#state'
import { type Body, type BodyCache, type Origin, textBody } from './bodies.ts'
import type { ClusterSets } from './cluster-sets.ts'
import { clusterNotFound } from './problem.ts'
import { nobody, steadyUntil, type Views, type VisibleCluster } from './views.ts'
import type { VisibleTypes } from './visible-types.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** who asks; null: nobody we know, on public routes only */
    principal: Principal | null
    /** what they see; set on `filtered` and `administrator` routes */
    accessView: AccessView | null
  }
  interface FastifyContextConfig {
    access?: WhoMayCall
  }
}

/** What every route is made of. */
export interface Parts {
  readonly state: StateReader
  readonly access: Access
  readonly views: Views
  readonly types: VisibleTypes
  readonly sets: ClusterSets
  readonly bodies: BodyCache
  readonly turns: Turns
  readonly clock: Clock
  /** told whenever what a cluster uses is shown to somebody; absent: how often it is read does not hang on that */
  readonly attention?: Pick<Attention, 'look'>
}

/** One request, validated, whatever its contract. */
export interface AnyCall {
  readonly params: unknown
  readonly query: unknown
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** ms since the Unix epoch; the same for everything this answer says */
  readonly now: number
}

/** One request, validated. */
export interface Call<C extends RouteContract> extends AnyCall {
  readonly params: ParamsOf<C>
  readonly query: QueryOf<C>
}

/** `body` is encoded and may be kept by the client; `fresh` is not; `sent` was answered already. */
export type Answer = { readonly body: Body } | { readonly fresh: unknown; readonly status?: number } | 'sent'

/** Registers a route by its contract. To infer C from the handler as well would cost the compiler a million steps. */
export function route<C extends RouteContract>(
  app: FastifyInstance,
  { clock }: Pick<Parts, 'clock'>,
  contract: C,
  handler: (call: NoInfer<Call<C>>) => Answer | Promise<Answer>,
): void {
  const { params, querystring } = contract.schema
  app.route({
    method: contract.method,
    url: contract.url,
    config: { access: contract.access },
    exposeHeadRoute: contract.method === 'GET' && contract.contentType !== 'text/event-stream',
    schema: { ...(params && { params }), ...(querystring && { querystring }) },
    ...(contract.url.startsWith('/api/v1/') && { preValidation: async ({ query }) => firstOfEach(query, querystring) }),
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

/** A parameter that stands twice counts as it stands first: on the documented routes it always did. Lists stay lists. */
function firstOfEach(query: unknown, declared: RouteContract['schema']['querystring']): void {
  const { properties = {} } = (declared ?? {}) as { readonly properties?: Readonly<Record<string, { type?: unknown }>> }
  const given = query as Record<string, string | string[]>
  for (const [name, values] of Object.entries(given))
    if (Array.isArray(values) && properties[name]?.type !== 'array') given[name] = values[0] ?? ''
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

/** What the request may be told of: everything it answers about the fleet goes through this. */
export function accessViewOf(request: FastifyRequest): AccessView {
  invariant(request.accessView, 'a route that tells of the fleet runs only with an access view')
  return request.accessView
}

/** Aborted when the connection of the answer closes, as it does in the end. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (reply.raw.destroyed) gone.abort()
  reply.raw.once('close', () => gone.abort())
  return gone.signal
}

/** The client went before it had its answer. */
export function nobodyWaits(reply: FastifyReply): 'sent' {
  reply.hijack()
  return 'sent'
}

/** The clusters that may be seen, by name. */
export function visibleClusters({ state, views }: Parts, accessView: AccessView): VisibleCluster[] {
  const visible: VisibleCluster[] = []
  for (const cluster of state.clusters()) {
    const view = views.of(accessView, cluster)
    if (view) visible.push(view)
  }
  return visible
}

/**
 * Unknown and hidden go the same way: the decision is made in both cases, over a cluster of that name.
 * @throws RefusedError `cluster_not_found`, whether there is none or it is hidden
 */
export function visibleCluster({ state, views }: Parts, accessView: AccessView, name: string): VisibleCluster {
  const cluster = state.cluster(name)
  const visible = views.of(accessView, cluster ?? nobody(name))
  if (!cluster || !visible) throw clusterNotFound(name)
  return visible
}

/** What an answer about these clusters depends on besides the question; nothing outlives the access view it was made by. */
export function originOf(
  tag: unknown,
  clusters: readonly VisibleCluster[],
  accessView: AccessView,
  now: number,
): Origin {
  let { validUntil } = accessView
  for (const { state } of clusters) validUntil = Math.min(validUntil, steadyUntil(state, now))
  return { tag, validUntil }
}

export const questionOf = (name: string, fingerprint: string, question: unknown): string =>
  `${name} ${fingerprint} ${JSON.stringify(question)}`

/** Which of the clusters are in the set that is asked for. @throws RefusedError `set_not_found` */
export function inSet<T extends { readonly state: ClusterState }>(
  { sets }: Parts,
  { administrator }: AccessView,
  clusters: readonly T[],
  set: string | undefined,
): readonly T[] {
  if (set === undefined) return clusters
  const names = sets.names(
    set,
    clusters.map(({ state }) => state),
    administrator,
  )
  return clusters.filter(({ state }) => names.has(state.name))
}

/** An answer about the whole visible fleet, encoded once per state version and access view. */
export function fleetBody(
  parts: Parts,
  contract: RouteContract,
  { request, query, now }: AnyCall,
  encode: (clusters: readonly VisibleCluster[], previous: Body | undefined) => Body,
): Answer {
  const accessView = accessViewOf(request)
  const key = questionOf(contract.schema.operationId, accessView.fingerprint, query)
  const { set } = query as { readonly set?: string }
  const version = parts.state.version()
  const tag = set === undefined ? version : `${version} ${parts.sets.version()}`
  const known = parts.bodies.get(key, tag, now)
  if (known) return { body: known }
  const clusters = inSet(parts, accessView, visibleClusters(parts, accessView), set)
  const body = encode(clusters, parts.bodies.previous(key))
  parts.bodies.set(key, originOf(tag, clusters, accessView, now), body)
  return { body }
}

/** An answer about one cluster, encoded once per state of that cluster and access view. */
export function clusterBody(
  parts: Parts,
  contract: RouteContract,
  { request, params, query, now }: AnyCall,
  name: string,
  encode: (cluster: VisibleCluster) => string,
): Answer {
  const accessView = accessViewOf(request)
  const cluster = visibleCluster(parts, accessView, name)
  const key = questionOf(contract.schema.operationId, accessView.fingerprint, [params, query])
  const tag: ClusterState = cluster.state
  const known = parts.bodies.get(key, tag, now)
  if (known) return { body: known }
  const body = textBody(encode(cluster))
  parts.bodies.set(key, originOf(tag, [cluster], accessView, now), body)
  return { body }
}
