import type { AccessOfView, ExplanationView, PoliciesView, PreviewView, SubjectView } from './access.ts'
import type { HistoryView } from './history.ts'
import type {
  ClusterSetsView,
  ClusterSetView,
  MemberDecidedView,
  MemberDecisionsView,
  MemberDecisionView,
} from './members.ts'
import type { PromQlAnswer } from './promql.ts'
import type { RegistryDetailView, RegistryView } from './registries.ts'
import type { OwnPoliciesView, PermissionsView } from './session.ts'
import { warningsIn } from './store.ts'
import { messagesIn, type StreamedMessage } from './stream-client.ts'
import type { FleetPageView, RowGroupsView, RowsPageView, SourcesView, SourceTrialView, TypeView } from './types.ts'
import type {
  ClusterOperatorView,
  ClusterView,
  DeploymentView,
  EventView,
  NamespaceView,
  NodeView,
  OperatorView,
  PageView,
  Problem,
  RowType,
  SearchHit,
  SessionView,
} from './views.ts'

// Nothing with schemas is imported here, so that a page which bundles the client does not carry them.

/** Where the hub is, and how it is asked. */
export interface ClientOptions {
  /** such as `http://127.0.0.1:8080`; empty for the page's own origin */
  readonly baseUrl: string
  /** default: the global one */
  readonly fetch?: typeof fetch
  readonly headers?: Readonly<Record<string, string>>
  /** told with each answer of what limits its truth, such as that the hub does not hear everything */
  readonly onWarning?: (text: string) => void
}

/** The API answered with a problem, or with no JSON at all (`code` is then `no_answer`, status 0 where none came). */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly status: number
  readonly code: string
  readonly requestId: string
  readonly retryAfterSeconds: number | null

  constructor(status: number, problem: Problem, options?: ErrorOptions) {
    super(problem.error, options)
    this.status = status
    this.code = problem.code
    this.requestId = problem.requestId
    this.retryAfterSeconds = problem.retryAfterSeconds ?? null
  }
}

type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
interface Paging {
  readonly limit?: number
  readonly cursor?: string
  readonly order?: 'asc' | 'desc'
  readonly sort?: string
}

/** Which metrics, over which time; see the routes for the forms of `range` and `step`. */
export interface HistoryQuery {
  /** names without prefix; at least one */
  readonly metric: readonly string[]
  /** such as 15m, 24h, 7d */
  readonly range?: string
  /** Unix seconds, or RFC 3339 */
  readonly start?: number | string
  readonly end?: number | string
  /** seconds, or such as 5m */
  readonly step?: number | string
}

/** Several nodes or operators of one cluster. */
export interface ScopeHistoryQuery extends HistoryQuery {
  readonly scope?: 'cluster' | 'node' | 'operator' | 'clusterOperator'
  readonly key?: readonly string[]
}

/** Which rows of a type over the fleet. */
export interface FleetRowsQuery extends RowsPageQuery {
  readonly cluster?: readonly string[]
  /** only clusters in this set */
  readonly set?: string
  /** false: how the rows stand on each cluster is said without sums over them */
  readonly aggregations?: boolean
  readonly labels?: string
}

/** Which rows of a type over the fleet are counted, and by which columns. */
export interface RowGroupsQuery
  extends Pick<FleetRowsQuery, 'cluster' | 'set' | 'source' | 'namespace' | 'labels' | 'q' | 'where'> {
  readonly by: readonly string[]
  readonly limit?: number
  readonly sort?: 'count' | 'health'
}

/** What a CSV of rows says: words for people, columns of these names alone. */
export interface CsvQuery {
  headings?: 'fields' | 'labels'
  columns?: readonly string[]
}

/** Which rows of a type; see the route for the forms of `where`. */
export interface RowsPageQuery {
  readonly limit?: number
  readonly cursor?: string
  readonly order?: 'asc' | 'desc'
  readonly sort?: string
  readonly source?: string
  readonly namespace?: string
  readonly q?: string
  readonly where?: readonly string[]
}

/**
 * Rows of one kind over the fleet, as a stream carries them: with `limit` the first in order, or with `cursor` besides the first
 * behind a page of GET /api/v2/rows/<type>; without them all.
 */
export interface RowsStreamQuery extends Omit<FleetRowsQuery, 'aggregations'> {
  /** as in GET /api/v2/rows/<type> */
  readonly type: string
  /** with `limit`: rows outside of these of which it is told as well, as `rowKey` names them, at most 100 */
  readonly also?: readonly string[]
}

/** What a stream carries. */
export interface StreamQuery {
  /** also rows and events of these clusters */
  readonly cluster?: readonly string[]
  readonly type?: readonly RowType[]
  /** false: rows alone */
  readonly clusters?: boolean
  readonly rows?: readonly RowsStreamQuery[]
  readonly lastEventId?: string
}

/** One question of "why do I see, or not see, this?". */
export interface ExplainQuery {
  readonly cluster: string
  readonly action?: 'view' | 'view_metrics'
  /** nodes, operators, namespaces, pods, alerts, events or a custom type */
  readonly type?: string
  /** one item of that type */
  readonly name?: string
  readonly namespace?: string
  /** administrators only: for somebody else */
  readonly as?: string
  readonly groups?: readonly string[]
}

/** Policies as if they were applied. */
export interface PreviewQuestion {
  /** YAML or JSON, one or many documents */
  readonly manifest: string
  /** keys (namespace/name) taken away in the same step */
  readonly remove?: readonly string[]
  /** besides everyone whom any policy names */
  readonly subjects?: readonly SubjectView[]
}

/** The HTTP API as typed calls. Every call throws ApiProblem where the hub answers with an error or not at all. */
export interface Client {
  session(signal?: AbortSignal): Promise<SessionView>
  /** Is the hub there? Asks as nobody: a session is not renewed by it. */
  alive(signal?: AbortSignal): Promise<{ status: string }>
  /** The address a browser goes to for signing in at the identity provider. */
  signInUrl(returnTo?: string): string
  /** Signs the local administrator in; the session comes as a cookie. */
  signIn(username: string, password: string, signal?: AbortSignal): Promise<{ message: string }>
  /** What the caller may see, cluster by cluster, and which policy decided. */
  permissions(signal?: AbortSignal): Promise<PermissionsView>
  /** The policies about the caller; other people in them are left out. */
  ownPolicies(signal?: AbortSignal): Promise<OwnPoliciesView>
  explain(query: ExplainQuery, signal?: AbortSignal): Promise<ExplanationView>
  /** Forgets groups and verified tokens that are cached of the caller. */
  clearCache(signal?: AbortSignal): Promise<{ message: string; rbac_entries_cleared: number; user: string }>
  /** All policies. This and what follows is for administrators. */
  policies(signal?: AbortSignal): Promise<PoliciesView>
  /** What a chosen person sees, cluster by cluster. */
  accessOf(subject: SubjectView, signal?: AbortSignal): Promise<AccessOfView>
  /** From now on this browser shows what the chosen person sees, reading only. */
  viewAs(subject: SubjectView, signal?: AbortSignal): Promise<{ message: string }>
  endViewAs(signal?: AbortSignal): Promise<{ message: string }>
  /** What would change for whom; nothing is stored. */
  previewPolicies(question: PreviewQuestion, signal?: AbortSignal): Promise<PreviewView>
  clusters(
    query?: Paging & { health?: string; stale?: boolean; label?: string },
    signal?: AbortSignal,
  ): Promise<PageView<ClusterView>>
  cluster(name: string, signal?: AbortSignal): Promise<ClusterView>
  nodes(
    cluster: string,
    query?: Paging & { role?: string; ready?: string },
    signal?: AbortSignal,
  ): Promise<PageView<NodeView>>
  node(cluster: string, node: string, signal?: AbortSignal): Promise<NodeView>
  namespaces(
    cluster: string,
    query?: Paging & { phase?: string },
    signal?: AbortSignal,
  ): Promise<PageView<NamespaceView>>
  deployments(
    cluster: string,
    query?: Paging & { namespace?: string },
    signal?: AbortSignal,
  ): Promise<PageView<DeploymentView>>
  operators(
    cluster: string,
    query?: Paging & { namespace?: string; status?: string },
    signal?: AbortSignal,
  ): Promise<PageView<OperatorView>>
  clusterOperators(
    cluster: string,
    query?: Paging & { degraded?: boolean; available?: boolean },
    signal?: AbortSignal,
  ): Promise<PageView<ClusterOperatorView>>
  events(
    cluster: string,
    query?: { limit?: number; cursor?: string; type?: string },
    signal?: AbortSignal,
  ): Promise<PageView<EventView>>
  clusterHistory(cluster: string, query: HistoryQuery, signal?: AbortSignal): Promise<HistoryView>
  nodeHistory(cluster: string, node: string, query: HistoryQuery, signal?: AbortSignal): Promise<HistoryView>
  /** Many series in one answer: all visible nodes, or those named by `key`. */
  history(cluster: string, query: ScopeHistoryQuery, signal?: AbortSignal): Promise<HistoryView>
  /** The address of the same answer as CSV, for a link. */
  historyCsvUrl(cluster: string, query: ScopeHistoryQuery): string
  /** PromQL at one moment; only where the history behind the hub speaks PromQL (else ApiProblem `promql_off`). */
  promQl(query: string, at?: { time?: number | string }, signal?: AbortSignal): Promise<PromQlAnswer>
  promQlRange(
    query: string,
    over: { start: number | string; end: number | string; step: number | string },
    signal?: AbortSignal,
  ): Promise<PromQlAnswer>
  /** Types that MetricSources collect, as far as the caller sees them. */
  types(query?: { cluster?: string }, signal?: AbortSignal): Promise<{ items: readonly TypeView[] }>
  type(type: string, signal?: AbortSignal): Promise<TypeView>
  customRows(cluster: string, type: string, query?: RowsPageQuery, signal?: AbortSignal): Promise<RowsPageView>
  /** The address of the same rows as CSV, all of them, for a link; with `headings: 'labels'` in words for people. */
  fleetRowsCsvUrl(type: string, query?: FleetRowsQuery & CsvQuery): string
  /** Rows of a type over all clusters, or over these. */
  fleetRows(type: string, query?: FleetRowsQuery, signal?: AbortSignal): Promise<FleetPageView>
  /** The same answer, a FleetPageView as JSON: a long one is read where nobody waits for the thread. */
  fleetRowsBody(type: string, query?: FleetRowsQuery, signal?: AbortSignal): Promise<ArrayBuffer>
  /** How many rows of a type have each value of some columns, over all clusters or these. */
  rowGroups(type: string, query: RowGroupsQuery, signal?: AbortSignal): Promise<RowGroupsView>
  rowsCsvUrl(cluster: string, type: string, query?: RowsPageQuery & CsvQuery): string
  typeHistory(
    cluster: string,
    type: string,
    query: HistoryQuery & { source?: string },
    signal?: AbortSignal,
  ): Promise<HistoryView>
  registries(signal?: AbortSignal): Promise<{ items: readonly RegistryView[] }>
  registry(name: string, signal?: AbortSignal): Promise<RegistryDetailView>
  /** For administrators: what a MetricSource would give; nothing is stored. */
  clusterSets(signal?: AbortSignal): Promise<ClusterSetsView>
  clusterSet(name: string, signal?: AbortSignal): Promise<ClusterSetView>
  /** What the caller may decide about members, or one of them. */
  memberDecisions(member?: string, signal?: AbortSignal): Promise<MemberDecisionsView>
  /** @param about `request`: of several that wait, the one that is meant */
  decideMember(
    name: string,
    decision: MemberDecisionView,
    about?: { readonly request?: string },
    signal?: AbortSignal,
  ): Promise<MemberDecidedView>
  trySource(question: { manifest: string; cluster?: string }, signal?: AbortSignal): Promise<SourceTrialView>
  sources(signal?: AbortSignal): Promise<SourcesView>
  search(q: string, query?: { limit?: number }, signal?: AbortSignal): Promise<PageView<SearchHit>>
  logout(signal?: AbortSignal): Promise<{ message: string; redirect?: string }>
  /** Every item of a paged list, page by page, without holding them all. */
  all<T>(page: (cursor: string | undefined) => Promise<PageView<T>>): AsyncGenerator<T>
  /** The address of the stream for an EventSource. */
  streamUrl(query?: StreamQuery): string
  /** The same for a WebSocket; from a base address without a host it has none either. */
  streamSocketUrl(query?: StreamQuery): string
  /**
   * Messages of the stream until the signal. A stream that breaks off is opened again where it stood, after a while.
   * @param away is called for each try that met nobody, or a hub that cannot answer now
   * @throws ApiProblem where the hub refuses
   */
  stream(query: StreamQuery, signal: AbortSignal, away?: (problem: ApiProblem) => void): AsyncGenerator<StreamedMessage>
}

/**
 * A typed client of the API.
 * Every call throws ApiProblem where the API refuses, is not there, or answers what is no JSON.
 */
export function createClient({ baseUrl, fetch: request = fetch, headers = {}, onWarning }: ClientOptions): Client {
  const base = baseUrl.replace(/\/+$/, '')

  async function call<T>(
    method: string,
    path: string,
    query: Query = {},
    signal?: AbortSignal,
    sent?: URLSearchParams | string,
    read: 'json' | 'arrayBuffer' = 'json',
  ): Promise<T> {
    let response: Response
    try {
      response = await request(`${base}${path}${queryText(query)}`, {
        method,
        credentials: 'same-origin',
        headers: {
          accept: 'application/json',
          // No other site can make a browser send this: the server asks for it where something is changed.
          ...(method === 'POST' && { 'x-clusterpulse-request': '1' }),
          ...(typeof sent === 'string' && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(sent !== undefined && { body: sent }),
        ...(signal && { signal }),
      })
    } catch (cause) {
      if (signal?.aborted) throw cause
      throw new ApiProblem(0, noAnswer(`the API at ${base || 'this address'} cannot be reached`), { cause })
    }
    if (onWarning) for (const text of warningsIn(response.headers.get('warning'))) onWarning(text)
    const body: unknown = await response[response.ok ? read : 'json']().catch((cause: unknown) => {
      if (signal?.aborted) throw cause
      throw new ApiProblem(response.status, noAnswer(`${path} did not answer with JSON (${response.status})`), {
        cause,
      })
    })
    if (response.ok) return body as T // the server's contract tests hold it to these types
    throw new ApiProblem(response.status, isProblem(body) ? body : noAnswer(`${path} answered ${response.status}`))
  }

  const get = <T>(path: string, query?: Query, signal?: AbortSignal) => call<T>('GET', path, query, signal)
  const post = <T>(path: string, body: object | undefined, signal?: AbortSignal) =>
    call<T>('POST', path, {}, signal, body && JSON.stringify(body))
  const inCluster = (cluster: string, noun: string) => `/api/v2/clusters/${encodeURIComponent(cluster)}/${noun}`

  return {
    session: (signal) => get('/api/v1/session', {}, signal),
    alive: (signal) => get('/healthz', {}, signal),
    signInUrl: (returnTo) => `${base}/api/v1/auth/login${queryText({ returnTo })}`,
    signIn: (username, password, signal) => post('/api/v1/auth/password', { username, password }, signal),
    permissions: (signal) => get('/api/v1/auth/permissions', {}, signal),
    ownPolicies: (signal) => get('/api/v1/auth/policies', {}, signal),
    explain: ({ groups, ...query }, signal) =>
      get('/api/v1/auth/explain', { ...query, groups: groups?.join(',') }, signal),
    clearCache: (signal) => post('/api/v1/auth/cache/clear', undefined, signal),
    policies: (signal) => get('/api/v2/access/policies', {}, signal),
    accessOf: (subject, signal) => post('/api/v2/access/seen', subject, signal),
    viewAs: (subject, signal) => post('/api/v2/access/view-as', subject, signal),
    endViewAs: (signal) => post('/api/v2/access/view-as/end', undefined, signal),
    previewPolicies: (question, signal) => post('/api/v2/access/preview', question, signal),
    clusters: (query, signal) => get('/api/v2/clusters', { ...query }, signal),
    cluster: (name, signal) => get(`/api/v2/clusters/${encodeURIComponent(name)}`, {}, signal),
    nodes: (cluster, query, signal) => get(inCluster(cluster, 'nodes'), { ...query }, signal),
    node: (cluster, node, signal) => get(inCluster(cluster, `nodes/${encodeURIComponent(node)}`), {}, signal),
    namespaces: (cluster, query, signal) => get(inCluster(cluster, 'namespaces'), { ...query }, signal),
    deployments: (cluster, query, signal) => get(inCluster(cluster, 'deployments'), { ...query }, signal),
    operators: (cluster, query, signal) => get(inCluster(cluster, 'operators'), { ...query }, signal),
    clusterOperators: (cluster, query, signal) => get(inCluster(cluster, 'cluster-operators'), { ...query }, signal),
    events: (cluster, query, signal) => get(inCluster(cluster, 'events'), { ...query }, signal),
    clusterHistory: (cluster, query, signal) =>
      get(`/api/v1/clusters/${encodeURIComponent(cluster)}/metrics/history`, historyQuery(query), signal),
    nodeHistory: (cluster, node, query, signal) =>
      get(
        `/api/v1/clusters/${encodeURIComponent(cluster)}/nodes/${encodeURIComponent(node)}/metrics/history`,
        historyQuery(query),
        signal,
      ),
    history: (cluster, query, signal) => get(inCluster(cluster, 'history'), historyQuery(query), signal),
    historyCsvUrl: (cluster, query) =>
      `${base}${inCluster(cluster, 'history')}${queryText({ ...historyQuery(query), format: 'csv' })}`,
    promQl: (query, at = {}, signal) => call('POST', '/api/v1/query', {}, signal, form({ query, ...at })),
    promQlRange: (query, over, signal) => call('POST', '/api/v1/query_range', {}, signal, form({ query, ...over })),
    types: (query, signal) => get('/api/v2/types', { ...query }, signal),
    type: (type, signal) => get(`/api/v2/types/${encodeURIComponent(type)}`, {}, signal),
    customRows: (cluster, type, query, signal) =>
      get(inCluster(cluster, `types/${encodeURIComponent(type)}`), { ...query }, signal),
    fleetRowsCsvUrl: (type, query) =>
      `${base}/api/v2/rows/${encodeURIComponent(type)}${queryText({ ...query, format: 'csv' })}`,
    fleetRows: (type, query, signal) => get(`/api/v2/rows/${encodeURIComponent(type)}`, { ...query }, signal),
    fleetRowsBody: (type, query, signal) =>
      call('GET', `/api/v2/rows/${encodeURIComponent(type)}`, { ...query }, signal, undefined, 'arrayBuffer'),
    rowGroups: (type, query, signal) => get(`/api/v2/groups/${encodeURIComponent(type)}`, { ...query }, signal),
    rowsCsvUrl: (cluster, type, query) =>
      `${base}${inCluster(cluster, `types/${encodeURIComponent(type)}`)}${queryText({ ...query, format: 'csv' })}`,
    typeHistory: (cluster, type, query, signal) =>
      get(inCluster(cluster, `types/${encodeURIComponent(type)}/history`), historyQuery(query), signal),
    registries: (signal) => get('/api/v2/registries', {}, signal),
    registry: (name, signal) => get(`/api/v2/registries/${encodeURIComponent(name)}`, {}, signal),
    clusterSets: (signal) => get('/api/v2/cluster-sets', {}, signal),
    clusterSet: (name, signal) => get(`/api/v2/cluster-sets/${encodeURIComponent(name)}`, {}, signal),
    memberDecisions: (member, signal) =>
      get('/api/v2/members/decisions', member === undefined ? {} : { member }, signal),
    decideMember: (name, decision, about = {}, signal) =>
      post(`/api/v2/members/${encodeURIComponent(name)}/${decision}`, about, signal),
    trySource: (question, signal) => post('/api/v2/metric-sources/try', question, signal),
    sources: (signal) => get('/api/v2/metric-sources', {}, signal),
    search: (q, query, signal) => get('/api/v2/search', { q, ...query }, signal),
    logout: (signal) => post('/api/v1/auth/logout', undefined, signal),
    async *all(page) {
      let cursor: string | undefined
      do {
        const { items, next } = await page(cursor)
        yield* items
        cursor = next ?? undefined
      } while (cursor !== undefined)
    },
    streamUrl: (query = {}) => `${base}/api/v1/stream${streamText(query)}`,
    streamSocketUrl: (query = {}) => `${base.replace(/^http/, 'ws')}/api/v1/stream/ws${streamText(query)}`,
    async *stream(query, signal, away = () => undefined) {
      let lastEventId = query.lastEventId
      for (let failures = 0; !signal.aborted; failures++) {
        if (failures > 0) await pause(failures, signal)
        try {
          for await (const message of listen({ ...query, ...(lastEventId && { lastEventId }) }, signal)) {
            lastEventId = message.id ?? lastEventId
            failures = 0
            yield message
          }
        } catch (error) {
          if (signal.aborted) return
          if (!(error instanceof ApiProblem) || !isPassing(error)) throw error
          away(error)
        }
      }
    },
  }

  async function* listen(query: StreamQuery, signal: AbortSignal): AsyncGenerator<StreamedMessage> {
    const path = `/api/v1/stream${streamText(query)}`
    const quiet = new AbortController()
    let timer = setTimeout(() => quiet.abort(), MOST_QUIET_MS)
    const either = AbortSignal.any([signal, quiet.signal])
    try {
      const response = await request(`${base}${path}`, {
        credentials: 'same-origin',
        headers: { accept: 'text/event-stream', ...headers },
        signal: either,
      })
      if (!response.ok || !response.body) {
        const body: unknown = await response.json().catch(() => undefined)
        throw new ApiProblem(response.status, isProblem(body) ? body : noAnswer(`${path} answered ${response.status}`))
      }
      for await (const message of messagesIn(response.body)) {
        clearTimeout(timer)
        timer = setTimeout(() => quiet.abort(), MOST_QUIET_MS)
        yield message
      }
    } catch (cause) {
      if (cause instanceof ApiProblem || signal.aborted) throw cause
      throw new ApiProblem(0, noAnswer(`the stream of ${base || 'this address'} broke off`), { cause })
    } finally {
      clearTimeout(timer)
      quiet.abort()
    }
  }
}

/** A stream beats every second: one that is silent for so long is dead. */
const MOST_QUIET_MS = 20_000
const MOST_PAUSE_MS = 10_000

const isPassing = ({ status }: ApiProblem): boolean => status === 0 || status === 429 || status >= 500

/** Longer after each failure, and not for all clients the same. */
function pause(failures: number, signal: AbortSignal): Promise<void> {
  const ms = Math.random() * Math.min(MOST_PAUSE_MS, 250 * 2 ** failures)
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}

const streamText = ({ rows = [], ...query }: StreamQuery): string =>
  queryText({
    ...query,
    rows: rows.map(({ type, ...words }) => `${encodeURIComponent(type)}${queryText({ ...words })}`),
  })

const historyQuery = ({ metric, ...rest }: ScopeHistoryQuery & { readonly source?: string }): Query => ({
  metric: metric.join(','),
  ...rest,
})

const form = (values: Readonly<Record<string, string | number | undefined>>): URLSearchParams => {
  const given = new URLSearchParams()
  for (const [key, value] of Object.entries(values)) if (value !== undefined) given.set(key, String(value))
  return given
}

function queryText(query: Query): string {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [value].flat().map((one) => `${key}=${encodeURIComponent(String(one))}`),
  )
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

const noAnswer = (error: string): Problem => ({ error, code: 'no_answer', requestId: '' })

const isProblem = (body: unknown): body is Problem =>
  typeof body === 'object' && body !== null && 'error' in body && 'code' in body
