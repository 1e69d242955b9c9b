import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import type {
  EventView,
  RowType,
  RowView,
  SearchHit,
  SessionView,
  StreamChange,
  StreamMessage,
} from '../../src/contract/http/index.ts'
import { anAccess, answerAccess, type FakeAccess } from './accesses.ts'
import { answerCustoms, type FakeCustoms, someCustoms } from './customs.ts'
import { answerHistory, aPast, type Past } from './histories.ts'
import type { World } from './worlds.ts'

/**
 * A hub for tests of the page: holds a fleet in memory, answers as the contract says, and can be told to misbehave.
 * It applies no access; what it sends is what the test gave it.
 */
export interface Behaviour {
  /** what every answer of the API is instead, if anything */
  refuse: { status: number; code: string; error: string; retryAfterSeconds?: number } | null
  /** whether a stream can be opened; polling still works */
  streams: boolean
  /** answers wait until this is false */
  hold: boolean
  /** what every history route answers instead, if anything */
  refuseHistory: { status: number; code: string; error: string } | null
  /** history routes wait until this is false */
  holdHistory: boolean
  /** the hub's clock runs this far ahead of the machine's */
  clockAheadMs: number
  session: SessionView
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
const rowTypes: readonly RowType[] = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator']
const nouns: Readonly<Record<string, RowType>> = {
  nodes: 'node',
  namespaces: 'namespace',
  deployments: 'deployment',
  operators: 'operator',
  'cluster-operators': 'clusterOperator',
}

export class FakeHub {
  readonly worlds = new Map<string, World>()
  /** by cluster; one that is not named has the past of `aPast` */
  readonly pasts = new Map<string, Past>()
  readonly events: EventView[] = []
  /** what search finds besides what it holds */
  readonly hits: SearchHit[] = []
  readonly requests: string[] = []
  readonly behaviour: Behaviour = {
    refuse: null,
    streams: true,
    hold: false,
    refuseHistory: null,
    holdHistory: false,
    clockAheadMs: 0,
    session: {
      authenticated: true,
      user: {
        username: 'ada',
        email: 'ada@example.com',
        groups: ['operators'],
        method: 'local-administrator',
        administrator: true,
      },
      actor: null,
      sessionEndsAt: null,
      signIn: [],
      provisional: null,
      version: '0.1.0',
    },
  }
  /** policies, sign-in and what is asked of them */
  readonly access: FakeAccess = anAccess(this.behaviour)
  /** what is collected by declaration; none until a test says so */
  customs: FakeCustoms = { ...someCustoms(Date.now()), types: new Map() }
  readonly #root: string
  readonly #prefix: string
  readonly #streams = new Map<ServerResponse, { clusters: Set<string>; types: Set<string>; inParts: boolean }>()
  readonly #server: Server
  #id = 0

  constructor({ root, prefix = '' }: { root: string; prefix?: string }) {
    this.#root = root
    this.#prefix = prefix
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((cause: unknown) => {
        response.destroy(cause instanceof Error ? cause : new Error(String(cause)))
      })
    })
  }

  async start(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#prefix}`
  }

  async stop(): Promise<void> {
    this.cut()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  get openStreams(): number {
    return this.#streams.size
  }

  now(): number {
    return Date.now() + this.behaviour.clockAheadMs
  }

  fill(worlds: readonly World[]): this {
    this.worlds.clear()
    for (const world of worlds) this.worlds.set(world.view.name, world)
    return this
  }

  /** Replaces a cluster and tells every stream. */
  put(world: World): void {
    this.worlds.set(world.view.name, world)
    this.send([{ op: 'put', type: 'cluster', view: world.view }])
  }

  remove(name: string): void {
    this.worlds.delete(name)
    this.send([{ op: 'remove', type: 'cluster', cluster: name }])
  }

  send(changes: StreamChange[]): void {
    this.say({ kind: 'change', changes, now: this.now() })
  }

  say(message: StreamMessage): void {
    for (const [stream, { clusters, types }] of this.#streams) {
      const seen =
        message.kind === 'change'
          ? { ...message, changes: message.changes.filter((change) => isFor(change, clusters, types)) }
          : message
      this.#write(stream, seen)
    }
  }

  /** What a stream begins with, to every stream: what follows an `access`. */
  snapshot(): void {
    for (const [stream, asked] of this.#streams) this.#writeSnapshot(stream, asked)
  }

  /** Breaks every stream off. */
  cut(): void {
    for (const stream of this.#streams.keys()) stream.destroy()
    this.#streams.clear()
  }

  #write(stream: ServerResponse, { kind, ...rest }: StreamMessage): void {
    stream.write(`event: ${kind}\nid: g-${this.#id++}\ndata: ${JSON.stringify(rest)}\n\n`)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://hub')
    if (!url.pathname.startsWith(`${this.#prefix}/`)) return void response.writeHead(404).end()
    const path = url.pathname.slice(this.#prefix.length)
    this.requests.push(`${path}${url.search}`)
    if (!path.startsWith('/api/')) return this.#file(path, response)
    while (this.behaviour.hold) await new Promise((resolve) => setTimeout(resolve, 10))
    if (path === '/api/v1/session') return json(response, 200, this.behaviour.session)
    if (request.method === 'POST' && request.headers['x-clusterpulse-request'] === undefined)
      return json(response, 403, {
        error: 'it may come from another site',
        code: 'csrf_refused',
        requestId: 'req-4711',
      })
    const body = await bodyOf(request)
    const told =
      answerAccess(this.access, { path, url, body, now: this.now() }) ??
      (this.behaviour.refuse
        ? undefined
        : answerCustoms(this.customs, {
            path,
            url,
            body,
            now: this.now(),
            displayName: (cluster) => this.worlds.get(cluster)?.view.displayName,
          }))
    if (told?.always) return json(response, told.status, told.body, told.headers)
    const { refuse } = this.behaviour
    if (refuse) {
      const { status, ...problem } = refuse
      return json(response, status, { ...problem, requestId: 'req-4711' })
    }
    if (told) return json(response, told.status, told.body, told.headers)
    if (path === '/api/v1/stream') return this.#stream(url, response)
    if (path === '/api/v2/clusters')
      return json(response, 200, pageOf([...this.worlds.values()].map(({ view }) => view)))
    if (path === '/api/v2/search') return json(response, 200, pageOf(this.#search(url.searchParams.get('q') ?? '')))
    const history = /^\/api\/v1\/clusters\/([^/]+)(?:\/nodes\/([^/]+))?\/metrics\/history$/.exec(path)
    if (history) return this.#history(url.searchParams, history[1] ?? '', history[2], response)
    const [, name = '', noun = ''] = /^\/api\/v2\/clusters\/([^/]+)\/([a-z-]+)$/.exec(path) ?? []
    const world = this.worlds.get(decodeURIComponent(name))
    if (!world)
      return json(response, 404, {
        error: `there is no cluster ${name}`,
        code: 'cluster_not_found',
        requestId: 'req-4711',
      })
    if (noun === 'events') {
      const wanted = url.searchParams.get('type')
      const told = this.events.filter(({ cluster, type }) => cluster === world.view.name && type === (wanted ?? type))
      return json(response, 200, pageOf(told))
    }
    const type = nouns[noun]
    if (!type)
      return json(response, 404, { error: `there is no ${path}`, code: 'route_not_found', requestId: 'req-4711' })
    json(response, 200, { ...pageOf<RowView>(world.rows[type]), part: world.view.parts[type] ?? null })
  }

  async #history(
    query: URLSearchParams,
    cluster: string,
    node: string | undefined,
    response: ServerResponse,
  ): Promise<void> {
    while (this.behaviour.holdHistory) await new Promise((resolve) => setTimeout(resolve, 10))
    const { refuseHistory } = this.behaviour
    if (refuseHistory) {
      const { status, code, error } = refuseHistory
      return json(response, status, { error, code, requestId: 'req-4711' })
    }
    const world = this.worlds.get(decodeURIComponent(cluster))
    if (!world)
      return json(response, 404, {
        error: `there is no cluster ${cluster}`,
        code: 'cluster_not_found',
        requestId: 'req-4711',
      })
    const past = this.pasts.get(world.view.name) ?? aPast(this.now())
    const scope = node === undefined ? 'cluster' : 'node'
    json(response, 200, answerHistory(query, { world, scope, past, now: this.now() }))
  }

  #stream(url: URL, response: ServerResponse): void {
    if (!this.behaviour.streams) {
      json(response, 503, { error: 'too many streams are open', code: 'too_many_streams', requestId: 'req-4711' })
      return
    }
    const clusters = new Set(url.searchParams.getAll('cluster'))
    const wanted = new Set(url.searchParams.getAll('type'))
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    response.flushHeaders()
    response.write('retry: 300\n\n')
    const asked = { clusters, types: wanted, inParts: url.searchParams.get('parts') === 'true' }
    this.#streams.set(response, asked)
    response.on('close', () => this.#streams.delete(response))
    this.#writeSnapshot(response, asked)
  }

  #writeSnapshot(
    response: ServerResponse,
    {
      clusters,
      types: wanted,
      inParts,
    }: { clusters: ReadonlySet<string>; types: ReadonlySet<string>; inParts: boolean },
  ): void {
    const rows = [...clusters].flatMap((cluster) => {
      const world = this.worlds.get(cluster)
      if (!world) return []
      return rowTypes
        .filter((type) => wanted.has(type))
        .map((type) => ({
          type,
          cluster,
          items: [...world.rows[type]] as RowView[],
          part: world.view.parts[type] ?? null,
        }))
    })
    this.#write(response, {
      kind: 'snapshot',
      clusters: [...this.worlds.values()].map(({ view }) => view),
      rows: inParts
        ? rows.map((list) => ({ ...list, items: list.items.slice(0, 300), total: list.items.length }))
        : rows,
      now: this.now(),
    })
    if (!inParts) return
    // Like the hub's: each part is made when the one before is on its way.
    const parts = rows.flatMap(({ type, cluster, items }) =>
      Array.from({ length: Math.ceil((items.length - 300) / 1000) }, (_, index) => ({
        type,
        cluster,
        items: () => items.slice(300 + index * 1000, 1300 + index * 1000),
        last: 1300 + index * 1000 >= items.length,
      })),
    )
    const next = (): void => {
      const part = parts.shift()
      if (!part || !this.#streams.has(response)) return
      this.#write(response, { ...part, kind: 'rows', items: part.items(), now: this.now() })
      if (parts.length > 0) setImmediate(next)
    }
    if (parts.length > 1) setImmediate(next)
    else next()
  }

  #search(q: string): SearchHit[] {
    const held = [...this.worlds.values()].flatMap(({ view, rows }): SearchHit[] => [
      { kind: 'cluster', cluster: view.name, name: view.name, detail: view.displayName, health: view.health },
      ...rows.node.map(
        ({ name, ready }): SearchHit => ({
          kind: 'node',
          cluster: view.name,
          name,
          detail: view.name,
          health: ready === 'ready' ? 'healthy' : 'unhealthy',
        }),
      ),
      ...rows.namespace.map(
        ({ name }): SearchHit => ({
          kind: 'namespace',
          cluster: view.name,
          name,
          detail: view.name,
          health: 'healthy',
        }),
      ),
    ])
    const words = q.toLowerCase().split(/\s+/)
    return [...this.hits, ...held]
      .filter(({ cluster, name }) => words.every((word) => `${cluster} ${name}`.toLowerCase().includes(word)))
      .slice(0, 30)
  }

  async #file(path: string, response: ServerResponse): Promise<void> {
    const isFile = types[extname(path)] !== undefined && !/^\/(clusters|access|types)\//.test(path)
    const file = join(this.#root, isFile ? path.replaceAll('..', '') : 'index.html')
    let content = await readFile(file).catch(() => undefined)
    if (!content) return void response.writeHead(404).end()
    // What a server behind a prefix does: index.html alone names files from the root.
    if (!isFile && this.#prefix)
      content = Buffer.from(content.toString().replaceAll(/(href|src)="\//g, `$1="${this.#prefix}/`))
    response.writeHead(200, {
      'content-type': types[extname(file)] ?? 'text/html',
      'content-security-policy': csp,
      'cache-control': 'no-cache',
    })
    response.end(content)
  }
}

function isFor(change: StreamChange, clusters: ReadonlySet<string>, types: ReadonlySet<string>): boolean {
  if (change.type === 'cluster' || change.type === 'event') return true
  return clusters.has(change.cluster) && types.has(change.type)
}

const pageOf = <T>(items: readonly T[]) => ({ items, total: items.length, next: null, part: null })

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
