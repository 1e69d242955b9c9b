import { randomUUID } from 'node:crypto'
import { posix } from 'node:path'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { openStream, openStreamSocket, type Access as Rule, storeText, warningOf } from '#http'
import { SignInFailedError } from '#identity'
import { boundConnections, CONNECTION_TIMES, Turns } from '#runtime'
import { Admission } from './admission.ts'
import { auditEntry, auditEntryOfAct, isChange } from './audit-entry.ts'
import { BodyCache } from './bodies.ts'
import { ClusterSets } from './cluster-sets.ts'
import { RegistryRows } from './fleet-rows.ts'
import { cameByTls, cors, corsHeaders, hostCheck, publicUrlOf, securityHeaders, strictTransport } from './gate.ts'
import { MemberRequestRows, MemberRows } from './member-rows.ts'
import { Pages } from './pages.ts'
import { problemOf, RefusedError, refusalOf, unauthenticated } from './problem.ts'
import { isPromQlPath, promQlMarks } from './promql-answer.ts'
import { limitFor, RateLimiter } from './rate-limit.ts'
import { type Parts, route } from './route.ts'
import { accessRoutes } from './routes/access.ts'
import { fleetRoutes } from './routes/fleet.ts'
import { historyRoutes } from './routes/history.ts'
import { memberRoutes } from './routes/members.ts'
import { probeRoutes } from './routes/probes.ts'
import { promQlRoutes } from './routes/promql.ts'
import { registryRoutes } from './routes/registries.ts'
import { searchRoutes } from './routes/search.ts'
import { sessionRoutes } from './routes/session.ts'
import { sourceRoutes } from './routes/sources.ts'
import { typeRoutes } from './routes/types.ts'
import { v1Routes } from './routes/v1.ts'
import { v1TypeRoutes } from './routes/v1-types.ts'
import { compileWhenAsked } from './schemas.ts'
import { StoreFacts } from './store-facts.ts'
import { StreamHub } from './stream.ts'
import { StreamSockets } from './stream-socket.ts'
import type { ApiOptions, ApiServer, RegisteredRoute, TlsConfig } from './types.ts'
import { Views } from './views.ts'
import { VisibleTypes } from './visible-types.ts'

const requestIdShape = /^[A-Za-z0-9._:-]{1,100}$/

/**
 * Builds the server; nothing listens before `start`.
 *
 *   request id → security headers → host check → CORS → admission (who asks, how much, may they, what do they see)
 *              → validation → route → audit
 *
 * @throws UnsafeConfigurationError where the configuration would open the fleet to anybody
 */
export function apiServer(options: ApiOptions): ApiServer {
  const { state, events, access, identity, audit, config, logger, clock, version, metrics } = options
  const checkHost = hostCheck(config)
  const crossOrigin = cors(config)
  const views = new Views()
  const bodies = new BodyCache(config.bodyCacheBytes ?? 64 * 2 ** 20)
  const graceMs = config.storeGraceMs ?? 10_000
  const registries = new RegistryRows({ registries: options.registries, clock, graceMs })
  const members = options.members
    ? [
        new MemberRows({ members: options.members.members, state, clock }),
        new MemberRequestRows(options.members.requests, clock),
      ]
    : []
  const types = new VisibleTypes(options.catalog, views, [registries, ...members])
  const { attention } = options
  const sets = new ClusterSets(options.members?.members)
  const parts: Parts = {
    state,
    access,
    views,
    types,
    sets,
    bodies,
    turns: new Turns(),
    clock,
    ...(attention && { attention }),
  }
  const pages = new Pages(options.webRoot)
  const measures = measurements(options, bodies)
  const sockets = new StreamSockets(crossOrigin)
  const store = new StoreFacts(options)
  const streams = new StreamHub({
    ...parts,
    sockets,
    events,
    logger,
    metrics,
    config,
    store,
  })
  const requestTimeoutMs = config.requestTimeoutMs ?? 30_000
  const limiter = new RateLimiter(config.rateLimit ?? (() => limitFor(state.clusters().length)), clock)
  const publicHttps = publicUrlOf(config.identity)?.startsWith('https:') ?? false
  const admission = new Admission({ identity, access, limiter, cors: crossOrigin, publicHttps, requireState })

  const { tls } = config
  const built = fastify({
    // Two ways of saying the same; which of them counts goes by TLS.
    ...(tls ? { https: { ...tlsOf(tls), ...CONNECTION_TIMES } } : { http: CONNECTION_TIMES }),
    logger: false,

    genReqId: (request) => {
      const given = request.headers['x-request-id']
      return typeof given === 'string' && requestIdShape.test(given) ? given : randomUUID()
    },
    bodyLimit: config.bodyLimitBytes ?? 16 * 1024,
    handlerTimeout: requestTimeoutMs,
    requestTimeout: 15_000,
    keepAliveTimeout: 60_000,
    forceCloseConnections: true,
    return503OnClosing: true,
    routerOptions: { maxParamLength: 1024 },
    // In a list a text may stand for one item; anything else must be what it is declared.
    ajv: {
      customOptions: { coerceTypes: 'array', useDefaults: true, removeAdditional: false, allErrors: false },
      onCreate: compileWhenAsked,
    },
    frameworkErrors: (error, request, reply) => sendProblem(error, request, reply),
  })
  // The type of the socket below is of no concern to routes.
  const app = built as unknown as FastifyInstance
  sockets.listen(app)
  boundConnections(app.server, { listener: 'page', max: config.maxConnections ?? 2048, logger, metrics })

  function sendProblem(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { status, body, unexpected } = problemOf(thrown, request.id)
    request.refusal = refusalOf(thrown)
    if (unexpected)
      logger.error({ requestId: request.id, url: pathOf(request), error: thrown }, 'a request met an error')
    else if (status > 501 && thrown instanceof RefusedError && thrown.cause !== undefined)
      logger.warn({ requestId: request.id, url: pathOf(request), error: thrown.cause }, body.error)
    if (body.code === 'token_refused')
      logger.warn({ requestId: request.id, reason: request.refusal.reason }, body.error)
    if (status === 401) reply.header('www-authenticate', challenge(body.code))
    if (thrown instanceof SignInFailedError && thrown.cookies.length > 0)
      reply.header('set-cookie', [...thrown.cookies])
    if (body.retryAfterSeconds !== undefined) reply.header('retry-after', String(body.retryAfterSeconds))
    reply.code(status).headers({ ...securityHeaders, 'cache-control': 'private, no-store', 'x-request-id': request.id })
    const marks = isPromQlPath(plainPath(pathOf(request))) ? promQlMarks(status) : {}
    return reply.type('application/json').send(Buffer.from(`${JSON.stringify({ ...marks, ...body })}\n`))
  }

  const known: KnownRoute[] = []
  app.addHook('onRoute', (added) => {
    const rule = added.config?.access
    if (rule === undefined) throw new Error(`route ${added.url} does not say who may call it`)
    known.push(knownRoute(added.url, [added.method].flat(), rule))
  })
  for (const fact of ['principal', 'accessView', 'session', 'actor', 'auditNote', 'refusal'] as const)
    app.decorateRequest(fact, null)
  app.decorateRequest('isAudited', false)

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders).header('x-request-id', request.id)
    checkHost(request.headers)
    const { origin } = request.headers
    if (origin !== undefined && config.corsOrigins?.length) {
      if (crossOrigin.allows(origin)) {
        reply.header('access-control-allow-origin', crossOrigin.credentials ? origin : '*')
        reply.header('access-control-expose-headers', 'ETag, Retry-After, Warning, X-Request-Id')
        if (crossOrigin.credentials) reply.header('access-control-allow-credentials', 'true')
      }
    }
    if (request.method === 'OPTIONS' && origin !== undefined && request.headers['access-control-request-method']) {
      if (crossOrigin.allows(origin)) reply.headers(corsHeaders)
      return reply.code(200).send()
    }
    await admission.admit(request, reply)
    const warning = request.accessView === null ? undefined : storeText(store.now())
    if (warning !== undefined) reply.header('warning', warningOf(warning))
  })

  function requireState(): void {
    const availability = state.availability()
    if (availability.state === 'available') return
    if (availability.state === 'loading' && availability.missing !== undefined)
      throw new RefusedError('state_missing', availability.missing, { retryAfterSeconds: 5 })
    if (availability.state === 'loading')
      throw new RefusedError('state_loading', 'the hub is still loading its state', { retryAfterSeconds: 2 })
    if (clock.now() - availability.since <= graceMs) return
    throw new RefusedError('store_unavailable', 'the store behind the hub does not answer', { retryAfterSeconds: 5 })
  }

  app.addHook('onSend', async (request, reply, payload) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'private, no-store')
    reply.header('vary', varyOf(reply.getHeader('vary'), request, config.corsOrigins !== undefined))
    if (cameByTls(request, publicHttps)) reply.header('strict-transport-security', strictTransport)
    if (audit && isChange(request)) {
      record(request, reply)
      await audit.flush()
    }
    return payload
  })

  function record(request: FastifyRequest, reply: FastifyReply): void {
    const entry = request.isAudited ? undefined : auditEntry(state, request, reply, clock.now())
    if (entry) audit?.record(entry)
    request.isAudited = true
  }

  app.addHook('onResponse', async (request, reply) => {
    record(request, reply)
    const name = request.routeOptions.url ?? 'none'
    measures.observe(request.method, name, reply.statusCode, reply.elapsedTime / 1000)
    logger.info(
      {
        requestId: request.id,
        method: request.method,
        route: name,
        path: pathOf(request),
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime * 10) / 10,
        user: request.principal?.username ?? null,
        ...(request.actor && { actor: request.actor.username }),
        signIn: request.principal?.method ?? null,
      },
      'answered',
    )
  })

  // But for forms of PromQL and what has a body by contract no route reads one; whatever comes is bounded and let go.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined))

  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply))
  app.setNotFoundHandler(async (request, reply) => {
    const path = pathOf(request)
    // `/-/` and `/federate` are Prometheus' own: a tool that looks there must not take the page for an answer.
    const isApi = /^\/(api|healthz|readyz|metrics|-|federate)(\/|$)/.test(plainPath(path))
    const isGuarded = /^\/api\/(v2|v1\/(clusters|custom-types))(\/|$)/.test(path)
    if (isGuarded && !(await admission.identify(request, reply))) throw unauthenticated()
    const allowed = known.filter((one) => one.pattern.test(path)).flatMap((one) => one.methods)
    if (allowed.length > 0) {
      reply.header('allow', [...new Set(allowed)].join(', '))
      throw new RefusedError('method_not_allowed', `${path} does not take ${request.method}`)
    }
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (isApi || !isRead) throw new RefusedError('route_not_found', `there is no ${path.slice(0, 200)} here`)
    return pages.serve(request, reply, path)
  })

  app.register(async (scope: FastifyInstance) => {
    probeRoutes(scope, parts, { version, metrics, readiness: { ...options.readiness, ...options.checks } })
    sessionRoutes(scope, parts, { version, identity, provisional: config.provisional })
    accessRoutes(scope, parts, { identity, semantics: config.semantics ?? 'strict' })
    v1Routes(scope, parts, { history: options.history, series: options.series })
    fleetRoutes(scope, parts)
    typeRoutes(scope, parts)
    sourceRoutes(scope, parts, { trySource: options.trySource, logger })
    v1TypeRoutes(scope, parts, { semantics: config.semantics ?? 'strict' })
    registryRoutes(scope, parts, registries)
    memberRoutes(scope, parts, options.members, (act, request, reply) => {
      const entry = auditEntryOfAct(act, state, request, reply, clock.now())
      if (entry) audit?.record(entry)
    })
    searchRoutes(scope, parts)
    historyRoutes(scope, parts, options)
    promQlRoutes(scope, parts, { history: options.history, cors: crossOrigin })
    route(scope, parts, openStream, async ({ request, reply, query }) => {
      await streams.open(request, reply, query)
      record(request, reply) // its end may be an hour away
      return 'sent' as const
    })
    route(scope, parts, openStreamSocket, async ({ request, reply, query }) => {
      await streams.openSocket(request, reply, query)
      record(request, reply)
      return 'sent' as const
    })
  })
  app.addHook('onListen', async () => streams.start())
  const offEnded = identity.onEnded((id) => streams.end(id))
  app.addHook('preClose', async () => {
    offEnded()
    await streams[Symbol.asyncDispose]()
  })

  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= app.close()
    return stopped
  }
  return {
    app,
    registered: () => known.flatMap(({ url, methods, access }) => methods.map((method) => ({ method, url, access }))),
    start: () => app.listen({ host: config.host, port: config.port }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Whether a caller's certificate makes it our proxy is decided in #identity: here it is only asked for. */
const tlsOf = ({ cert, key, clientCa }: TlsConfig) => ({
  cert,
  key,
  minVersion: 'TLSv1.2' as const,
  ...(clientCa !== undefined && { ca: clientCa, requestCert: true, rejectUnauthorized: false }),
})

interface KnownRoute extends Pick<RegisteredRoute, 'url' | 'access'> {
  readonly pattern: RegExp
  readonly methods: readonly string[]
}

function knownRoute(url: string, methods: readonly string[], access: Rule): KnownRoute {
  const source = url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[A-Za-z]+/g, '[^/]+')
  return { url, access, methods, pattern: new RegExp(`^${source}$`) }
}

const challenge = (code: string): string =>
  code === 'token_refused' ? 'Bearer realm="clusterpulse", error="invalid_token"' : 'Bearer realm="clusterpulse"'

/** What an answer depends on besides its address. */
function varyOf(known: unknown, { routeOptions: { config } }: FastifyRequest, crossOrigin: boolean): string {
  const names = new Set(typeof known === 'string' ? known.split(', ') : [])
  if (config.access !== undefined) names.add('Cookie').add('Authorization')
  if (crossOrigin) names.add('Origin')
  return [...names].join(', ')
}

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url

/** What a path means to whoever wrote it: `//api`, as of a base address that ends with a slash, asks the API and not the page. */
function plainPath(path: string): string {
  const decoded = path.replace(/%[0-7][0-9a-f]/gi, (escaped) =>
    String.fromCharCode(Number.parseInt(escaped.slice(1), 16)),
  )
  return posix.normalize(decoded).replace(/^\/+/, '/')
}

function measurements({ metrics }: ApiOptions, { counts }: BodyCache) {
  const buckets = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5]
  const durations = metrics.histogram(
    'clusterpulse_http_request_duration_seconds',
    'requests answered, by route',
    ['method', 'route', 'status'],
    buckets,
  )
  metrics.gauge(
    'clusterpulse_http_body_cache_requests',
    'encoded answers asked for since the start',
    ['result'],
    (gauge) => {
      gauge.set({ result: 'hit' }, counts.hits)
      gauge.set({ result: 'miss' }, counts.misses)
    },
  )
  return {
    observe: (method: string, route: string, status: number, seconds: number) =>
      durations.observe({ method, route, status: String(status) }, seconds),
  }
}
