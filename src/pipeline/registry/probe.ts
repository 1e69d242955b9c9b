import type { Health } from '#model'
import { OutboundGuard, systemNames } from '#outbound'
import { type Catalog, PAGE_BYTES, readCatalog } from './catalog.ts'
import { ProbeError, troubleWith } from './errors.ts'
import { lineOf, linesOf } from './header.ts'
import { authorization, basicOf, CATALOG_SCOPE, type Demand, demandOf } from './sign-in.ts'
import type { ProbeOptions, ProbeResult, RegistryTarget } from './types.ts'
import { type Answer, Wire } from './wire.ts'

/** From here on a registry that answers is degraded, ms. */
export const SLOW_MS = 5_000
/** Besides 401: what some registries say to credentials they do not take. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403])
const PING_BYTES = 64 * 1024
const VERSION_CHARS = 256
const NAME_CHARS = 256

type Warning = ProbeResult['warnings'][number]

/** What a probe has found out so far; it may end at any moment, and says what it has. */
interface Findings {
  readonly at: number
  responseMs: number | null
  version: string
  readonly features: Record<string, boolean>
  catalog: Catalog | undefined
  readonly warnings: Warning[]
  /** something besides slowness that makes it degraded */
  isImpaired: boolean
  trouble: ProbeError | undefined
}

/**
 * Asks a registry once how it is, within `timeoutMs` for everything together. Trouble is a result, not an error.
 *
 *   /v2/, with credentials where there are some
 *      ├── 200 ──────────────────────────────▶ available ─▶ health check paths ─▶ catalogue
 *      └── 401 Bearer ─▶ token ─▶ /v2/ again ──▲   (refused credentials: available, and degraded)
 *
 * @throws only the signal's reason, where the caller ended it
 */
export async function probeRegistry(target: RegistryTarget, options: ProbeOptions): Promise<ProbeResult> {
  const { signal, clock } = options
  signal.throwIfAborted()
  const found: Findings = {
    at: clock.now(),
    responseMs: null,
    version: '',
    features: {},
    catalog: undefined,
    warnings: [],
    isImpaired: false,
    trouble: undefined,
  }
  const secrets = secretsOf(target)
  const over = new AbortController()
  const done = new AbortController()
  const end = () => over.abort(signal.reason)
  signal.addEventListener('abort', end, { once: true })
  const deadline = clock.sleep(target.timeoutMs, done.signal).then(() => {
    if (!done.signal.aborted)
      over.abort(new ProbeError('timeout', `there was no complete answer within ${target.timeoutMs / 1000} s`))
  })
  try {
    await examine(target, found, secrets, { ...options, signal: over.signal })
  } catch (error) {
    signal.throwIfAborted()
    found.trouble ??= troubleWith(hostOf(target.endpoint), error)
  } finally {
    signal.removeEventListener('abort', end)
    done.abort(over.signal)
    await deadline
  }
  return resultOf(target, found, secrets)
}

async function examine(
  target: RegistryTarget,
  found: Findings,
  secrets: string[],
  { signal, clock, lookup = systemNames, outbound = new OutboundGuard({ use: 'registry' }) }: ProbeOptions,
): Promise<void> {
  const home = homeOf(target)
  await using wire = new Wire({ target, home, lookup, outbound, clock, signal })
  const visit: Visit = { target, home, wire, secrets, found, signal, sent: undefined, demand: undefined }
  const ask = (authorization: string | undefined) =>
    wire.get(addressOf(visit, '/v2/'), {
      maxBytes: PING_BYTES,
      authorization,
      onHeaders: (headersMs) => {
        found.responseMs = headersMs
      },
    })
  const offer = target.credentials && basicOf(target.credentials)
  const first = await ask(offer)
  // Credentials that are refused by another word than 401 say nothing of the registry itself.
  const ping = offer !== undefined && REFUSALS.has(first.status) ? await ask(undefined) : first
  checkPing(ping)
  noteFeatures(found, ping)
  if (ping.status === 401) await signIn(visit, ping, first.status)
  else if (ping !== first) impairRefused(visit, refusedWith(home, first.status))
  else if (ping.isHome) visit.sent = offer
  await checkPaths(visit)
  if (target.checkCatalog) await countRepositories(visit)
}

interface Visit {
  readonly target: RegistryTarget
  readonly home: URL
  readonly wire: Wire
  readonly secrets: string[]
  readonly found: Findings
  readonly signal: AbortSignal
  /** what the registry accepts from us */
  sent: string | undefined
  demand: Demand | undefined
}

/** @throws ProbeError `invalid_endpoint`, `insecure_refused` */
function homeOf({ endpoint, insecure }: RegistryTarget): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (!url || !isHttp || url.username || url.password || url.search || url.hash)
    throw new ProbeError('invalid_endpoint', 'the endpoint may hold scheme, host, port and path only')
  if (url.protocol === 'http:' && !insecure)
    throw new ProbeError(
      'insecure_refused',
      'plain HTTP is refused: anybody in between could read and change it; use https, or set insecure',
    )
  return url
}

const hostOf = (endpoint: string): string => (URL.canParse(endpoint) ? new URL(endpoint).host : 'the registry')

/** A path below the endpoint; it cannot lead to another host. */
function addressOf({ home }: Pick<Visit, 'home'>, path: string): URL {
  const address = new URL(home)
  const [pathname = '', search = ''] = path.split('?', 2)
  address.pathname = `${home.pathname.replace(/\/+$/, '')}/${pathname.replace(/^\/+/, '')}`
  address.search = search
  return address
}

/** @throws ProbeError where this is no registry that works */
function checkPing(answer: Answer): void {
  const { status, url, headers } = answer
  const isNamed = lineOf(headers, 'docker-distribution-api-version') !== ''
  if (status === 404)
    throw new ProbeError('not_a_registry', `${url.host} has no /v2/, so it is no registry; check the endpoint`)
  if (status !== 200 && status !== 401) throw new ProbeError('unexpected_status', `unexpected status code: ${status}`)
  if (status === 200 && !isNamed && isPage(answer))
    throw new ProbeError(
      'not_a_registry',
      `${url.host} answers /v2/ with a web page, so it is no registry; check the endpoint`,
    )
}

function isPage({ headers, body }: Answer): boolean {
  if (/^\s*(text\/html|application\/xhtml)/i.test(lineOf(headers, 'content-type'))) return true
  return /^\uFEFF?\s*<(!doctype|html|head|body)/i.test(body.toString('utf8', 0, 512))
}

const PRODUCTS = ['harbor', 'artifactory', 'nexus'] as const

function noteFeatures(found: Findings, { headers, status, isCut }: Answer): void {
  const { features } = found
  const version = lineOf(headers, 'docker-distribution-api-version')
  if (version !== '') {
    found.version ||= version
    features.docker_v2_api = true
  }
  const server = lineOf(headers, 'server').toLowerCase()
  const product = PRODUCTS.find((name) => server.includes(name))
  if (product) features[`${product}_detected`] = true
  if (lineOf(headers, 'docker-content-digest') !== '') features.content_digest = true
  if (linesOf(headers, 'link').length > 0) features.pagination = true
  if (status === 401) features.requires_auth = true
  if (isCut) warn(found, 'answer_too_large', 'the answer of /v2/ is larger than 64 KiB; the rest was not read')
}

/**
 * Meets what the registry demands. That it refuses us does not make it unavailable.
 * @param offered how it answered our credentials
 */
async function signIn(visit: Visit, ping: Answer, offered: number): Promise<void> {
  const { target, found, home, signal, wire } = visit
  const demand = demandOf(ping.headers)
  visit.demand = demand
  if (!target.credentials) return
  if (!ping.isHome) {
    const text = `${home.host} sends us to ${ping.url.host}, which gets no credentials; use that as endpoint`
    return impair(found, 'redirected', text)
  }
  if (!demand)
    return impair(found, 'sign_in_unknown', 'the registry wants neither Basic nor Bearer, so we cannot sign in')
  if (demand.scheme === 'basic') return impairRefused(visit, refusedWith(home, offered))
  try {
    const scope = target.checkCatalog ? CATALOG_SCOPE : ''
    const sent = await authorization({ ...demand, scope: '' }, scope, visit)
    const answer = await wire.get(ping.url, { maxBytes: PING_BYTES, authorization: sent })
    if (answer.status === 401 || answer.status === 403) throw refusedWith(home, answer.status)
    if (answer.status !== 200)
      throw new ProbeError('sign_in_failed', `${home.host} answers with status ${answer.status}`)
    noteFeatures(found, answer)
    visit.sent = sent
  } catch (error) {
    throwIfCallerEnded(signal)
    impairRefused(visit, troubleWith(home.host, error))
  }
}

const refusedWith = ({ host }: URL, status: number): ProbeError =>
  new ProbeError('unauthorized', `${host} refuses them (status ${status})`)

function impairRefused({ found, target }: Visit, { code, message }: Pick<ProbeError, 'code' | 'message'>): void {
  const whose = secretName(target)
  impair(found, code, `the registry answers, but does not work with the credentials ${whose}: ${message}`)
}

const secretName = ({ credentialsRef }: RegistryTarget): string =>
  credentialsRef ? `of Secret ${credentialsRef.namespace}/${credentialsRef.name}` : 'that were given'

/** Besides /v2/: what else must answer, as somebody declared. */
async function checkPaths(visit: Visit): Promise<void> {
  const { target, wire, found, signal, sent } = visit
  for (const path of target.healthCheckPaths) {
    // A token is for its scope; a path beside the registry gets the plain credentials that the registry accepted, or none.
    const basic = sent?.startsWith('Basic ') ? sent : undefined
    try {
      const { status } = await wire.get(addressOf(visit, path), {
        maxBytes: PING_BYTES,
        authorization: basic,
        accept: '*/*',
      })
      if (status >= 400) impair(found, 'health_path_failed', `${path} answers with status ${status}`)
    } catch (error) {
      throwIfCallerEnded(signal)
      impair(found, 'health_path_failed', `${path} does not answer: ${troubleWith(visit.home.host, error).message}`)
      if (signal.aborted) return
    }
  }
}

async function countRepositories(visit: Visit): Promise<void> {
  const { target, found, signal } = visit
  const url = addressOf(visit, '/v2/_catalog')
  if (target.catalogPageSize !== undefined) url.searchParams.set('n', String(target.catalogPageSize))
  const catalog = await readCatalog({
    url,
    ask: askCatalog(visit),
    signal: { throwIfAborted: () => throwIfCallerEnded(signal) },
  })
  found.catalog = catalog
  found.features.catalog_accessible = catalog.count !== null
  if (catalog.isPaged) found.features.pagination = true
  if (catalog.trouble) warn(found, catalog.trouble.code, `repositories: ${catalog.trouble.message}`)
}

/** That the time of a probe is up ends what is asked just now, and is no reason to forget what was found out before. */
function throwIfCallerEnded(signal: AbortSignal): void {
  if (!(signal.reason instanceof ProbeError)) signal.throwIfAborted()
}

function askCatalog(visit: Visit): (url: URL) => Promise<Answer> {
  const { wire } = visit
  let hasTried = false
  return async (url) => {
    const answer = await wire.get(url, { maxBytes: PAGE_BYTES, authorization: visit.sent })
    if (answer.status !== 401 || hasTried || !answer.isHome) return answer
    hasTried = true
    const demand = demandOf(answer.headers) ?? visit.demand
    if (!demand) return answer
    // Also without credentials: some give everybody a token, for what everybody may read.
    const sent = await authorization(demand, CATALOG_SCOPE, visit)
    if (sent === undefined || sent === visit.sent) return answer
    const again = await wire.get(url, { maxBytes: PAGE_BYTES, authorization: sent })
    if (again.status === 200) visit.sent = sent
    return again
  }
}

function warn(found: Findings, code: string, message: string): void {
  found.warnings.push({ code, message })
}

function impair(found: Findings, code: string, message: string): void {
  found.isImpaired = true
  warn(found, code, message)
}

function secretsOf({ credentials }: RegistryTarget): string[] {
  if (!credentials) return []
  const { username, password } = credentials
  return [password, encodeURIComponent(password), basicOf({ username, password }).slice('Basic '.length)]
}

function resultOf(target: RegistryTarget, found: Findings, secrets: readonly string[]): ProbeResult {
  const { trouble, catalog, responseMs, warnings } = found
  const ours = (text: string, maxChars: number) => shown(text, secrets.filter(isTelling)).slice(0, maxChars)
  const theirs = (text: string, maxChars: number) => shown(text, secrets).slice(0, maxChars)
  const health = healthOf(target, found)
  const error = trouble ? ours(reasonOf(trouble), 2_000) : ''
  const count = catalog?.count ?? null
  return {
    at: found.at,
    available: !trouble,
    responseMs,
    version: theirs(found.version, VERSION_CHARS),
    features: trouble ? {} : found.features,
    repositoryCount: count,
    isCatalogTruncated: catalog?.isTruncated ?? false,
    repositories: catalog?.names?.map((name) => theirs(name, NAME_CHARS)) ?? null,
    health,
    message: ours(messageOf(health, found, error, count), 4_000),
    code: trouble?.code ?? '',
    error,
    warnings: warnings.map(({ code, message }) => ({ code, message: ours(message, 2_000) })),
  }
}

/** What came of a request that got no answer is said as such; the rest speaks for itself. */
function reasonOf({ code, message }: ProbeError): string {
  const isRequest = ['unreachable', 'timeout', 'tls_untrusted', 'tls_failed', 'redirect_refused'].includes(code)
  return isRequest ? `request failed: ${message}` : message
}

function healthOf({ timeoutMs }: RegistryTarget, { trouble, responseMs, isImpaired }: Findings): Health {
  if (trouble || (responseMs ?? 0) > timeoutMs) return 'unhealthy'
  return isImpaired || (responseMs ?? 0) > SLOW_MS ? 'degraded' : 'healthy'
}

function messageOf(health: Health, found: Findings, error: string, count: number | null): string {
  const took = `(response time: ${found.responseMs ?? 0}ms)`
  if (error !== '') return `Registry unavailable: ${error}`
  if (found.isImpaired) return `Registry is degraded ${took}: ${found.warnings[0]?.message ?? ''}`
  if (health !== 'healthy') return `Registry is slow ${took}`
  return `Registry is healthy ${took}${count ? `, ${count} repositories` : ''}`
}

/** A secret of a letter or two stands in every sentence by chance. */
const isTelling = (secret: string): boolean => secret.length >= 4

/** Text in which a registry may have repeated what we sent it, without that, and without control characters. */
function shown(text: string, secrets: readonly string[]): string {
  const clean = [...text].map((char) => (char < ' ' || char === '\x7f' ? ' ' : char)).join('')
  return secrets.reduce((left, secret) => {
    if (secret === '' || !left.includes(secret)) return left
    return isTelling(secret) ? left.replaceAll(secret, '…') : '…'
  }, clean)
}
