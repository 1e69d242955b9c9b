import { randomUUID } from 'node:crypto'
import { discardBody } from '#runtime'
import { bearerToken, type TokenHolders } from '../authentication.ts'
import { certificateUser } from '../client-certificates.ts'
import { aggregated, coreVersions, groupList, groupOf, resourceList } from '../discovery.ts'
import type { ServerParts } from '../server-parts.ts'
import { ApiError, type StatusReason } from '../status.ts'
import { ANONYMOUS, type User } from '../user.ts'
import { checkPath } from './authorize.ts'
import { type ApiRequest, type ApiResponse, addressOf, type Call } from './call.ts'
import { healthPaths, sendHealth } from './health.ts'
import { actingAs } from './impersonation.ts'
import { handleNodeProxy } from './node-proxy.ts'
import { handleOpenapi } from './openapi.ts'
import { handleResource, targetOf } from './resource.ts'
import { sendError, sendJson, sendText } from './respond.ts'

/** Answers one request; never throws. */
export async function handleRequest(
  server: ServerParts,
  request: ApiRequest,
  response: ApiResponse,
  prefix: string,
  own: TokenHolders,
): Promise<void> {
  const url = urlOf(request.url)
  const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET')
  const holders = [own, server.tokens, server.bootstrapTokens]
  const user = certificateUser(request, server.clock.now()) ?? holderOf(holders, bearerToken(request))
  const call: Call = {
    id: randomUUID(),
    server,
    request,
    response,
    method,
    prefix,
    path: url.pathname.slice(prefix.length),
    query: url.searchParams,
    holders,
    user: user ?? ANONYMOUS,
    warnings: [],
  }
  server.counters.requests++
  response.setHeader('audit-id', call.id)
  let acting = call
  try {
    if (!user && !isHealth(call.path)) throw new ApiError('Unauthorized', 'Unauthorized')
    acting = { ...call, user: actingAs(call) }
    await route(acting)
  } catch (error) {
    await answerError(acting, error)
  }
}

/** What begins with slashes is a path, however many they are; what cannot be read is one that nothing is served at. */
function urlOf(text = '/'): Pick<URL, 'pathname' | 'searchParams'> {
  const whole = text.startsWith('/') ? `http://server${text}` : text
  return URL.canParse(whole) ? new URL(whole) : { pathname: text, searchParams: new URLSearchParams() }
}

const holderOf = (holders: readonly TokenHolders[], token: string | undefined): User | undefined => {
  if (token === undefined) return undefined
  for (const holder of holders) {
    const user = holder.holder(token)
    if (user) return user
  }
  return undefined
}

/** What the storage says once when it begins, and what is no fault of ours. */
const SAID_ELSEWHERE: ReadonlySet<StatusReason> = new Set(['Timeout', 'InsufficientStorage', 'ServiceUnavailable'])

async function answerError(call: Call, error: unknown): Promise<void> {
  const { response, request, server } = call
  const known =
    error instanceof ApiError
      ? error
      : new ApiError('InternalError', 'the API server failed to answer; its log says why', undefined, { cause: error })
  if (known.httpCode >= 500 && !SAID_ELSEWHERE.has(known.reason))
    server.logger.error({ err: error, method: request.method, path: call.path }, 'a request failed')
  if (known.reason === 'Forbidden') {
    const { id, user, method, path } = call
    server.observer?.refused({ id, user, method, path, message: known.message, address: addressOf(call) })
  }
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  if (!(await discardBody(request))) response.setHeader('connection', 'close')
  await sendError(call, known)
}

const isHealth = (path: string): boolean => /^\/(healthz|livez|readyz|version)(\/|$)/.test(path)

function decodeSegments(path: string): string[] {
  try {
    return path.split('/').filter(Boolean).map(decodeURIComponent)
  } catch {
    throw new ApiError('BadRequest', 'the path is not well encoded')
  }
}

async function route(call: Call): Promise<void> {
  const segments = decodeSegments(call.path)
  const [root, ...rest] = segments
  if (root === 'api' && rest[1] === 'nodes' && rest[3] === 'proxy') return handleNodeProxy(call, rest)
  if (root === 'api' && rest.length >= 2) {
    const target = targetOf('', rest[0] ?? '', rest.slice(1))
    if (!target) throw new ApiError('NotFound', 'the server could not find the requested resource', {})
    return handleResource(call, target)
  }
  if (root === 'apis' && rest.length >= 3) {
    const target = targetOf(rest[0] ?? '', rest[1] ?? '', rest.slice(2))
    if (!target) throw new ApiError('NotFound', 'the server could not find the requested resource', {})
    return handleResource(call, target)
  }
  if (!isHealth(call.path)) checkPath(call)
  if (call.method !== 'GET')
    throw new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
  return handleDocument(call, root, rest)
}

function handleDocument(call: Call, root: string | undefined, rest: readonly string[]): Promise<void> {
  const { server } = call
  const found = (value: object | undefined): Promise<void> =>
    value ? sendJson(call, 200, value) : sendText(call, 404, '404 page not found\n')
  const [group, version] = rest
  switch (root) {
    case undefined:
      return found({
        paths: ['/api', '/api/v1', '/apis', ...healthPaths, '/openapi/v2', '/openapi/v3', '/version'].sort(),
      })
    case 'api':
      if (group !== undefined) return sendResources(call, '', group)
      return sendDiscovery(call, true, () => coreVersions(String(call.request.headers.host ?? '')))
    case 'apis':
      if (group === undefined) return sendDiscovery(call, false, () => groupList(server.served))
      return version === undefined ? found(groupOf(server.served, group)) : sendResources(call, group, version)
    case 'version':
      return found(server.versionInfo)
    case 'healthz':
    case 'livez':
    case 'readyz':
      return sendHealth(call, root, rest)
    case 'openapi':
      return handleOpenapi(call, rest)
    default:
      return sendText(call, 404, '404 page not found\n')
  }
}

async function sendResources(call: Call, group: string, version: string): Promise<void> {
  const list = resourceList(call.server.served, group, version)
  if (!list) throw new ApiError('NotFound', 'the server could not find the requested resource', {})
  return sendJson(call, 200, list)
}

/** The document that lists everything at once, for those who know it; the short one for the others. */
function sendDiscovery(call: Call, core: boolean, short: () => object): Promise<void> {
  for (const part of String(call.request.headers.accept ?? '').split(',')) {
    const match = /;as=APIGroupDiscoveryList/.test(part) && /;v=(v2beta1|v2)(;|$)/.exec(part.trim())
    const version = match ? match[1] : undefined
    if (version && /;g=apidiscovery\.k8s\.io/.test(part)) {
      const type = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
      return sendDocument(call, type, aggregated(call.server.served, core, version))
    }
  }
  return sendJson(call, 200, short())
}

async function sendDocument(call: Call, type: string, value: object): Promise<void> {
  const body = JSON.stringify(value)
  call.response.setHeader('content-type', type)
  call.response.setHeader('content-length', Buffer.byteLength(body))
  call.response.setHeader('vary', 'accept')
  call.response.writeHead(200)
  call.response.end(call.request.method === 'HEAD' ? undefined : body)
}
