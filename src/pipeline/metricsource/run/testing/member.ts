import type { IncomingMessage, ServerResponse } from 'node:http'
import { createKubeClient, type KubeClient, type KubeClientOptions } from '#kube'
import { json, type ScriptedServer, scriptedServer, status } from '../../../../platform/kube/testing/scripted-server.ts'
import { compileMetricSource } from '../../compile.ts'
import type { CompiledSource } from '../../types.ts'

export interface Widget {
  readonly name: string
  readonly namespace?: string
  readonly size?: number
}

/** What a test makes of one request before the member answers it; true: it has answered itself. */
export type Meddle = (
  request: { readonly url: URL; readonly nth: number },
  response: ServerResponse,
) => boolean | undefined

/** A cluster that serves widgets, as far as lists of them go, and does what a test wants of it. */
export interface ScriptedMember extends AsyncDisposable {
  readonly server: ScriptedServer
  readonly kube: KubeClient
  /** requests for lists of objects, in order: path and query */
  lists(): readonly string[]
  widgets: readonly Widget[]
  namespaced: boolean
  /** undefined: the kind is not served */
  plural: string | undefined
  /** further namespaces, without widgets */
  namespaces: readonly string[]
  meddle: Meddle
}

export async function aMember(options: KubeClientOptions = {}): Promise<ScriptedMember> {
  let nth = 0
  const server = await scriptedServer((request, response) => answer(member, request, response, nth++))
  const kube = createKubeClient(server.access(), { ...options, random: () => 0 })
  const member: ScriptedMember = {
    server,
    kube,
    lists: () => server.requests.filter((line) => line.includes('/widgets')).map((line) => line.slice(4)),
    widgets: [],
    namespaced: true,
    plural: 'widgets',
    namespaces: [],
    meddle: () => undefined,
    async [Symbol.asyncDispose]() {
      await kube[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
  return member
}

function answer(member: ScriptedMember, request: IncomingMessage, response: ServerResponse, nth: number): void {
  const url = new URL(request.url ?? '/', 'http://member')
  if (member.meddle({ url, nth }, response)) return
  const { plural, namespaced } = member
  const root = '/apis/example.com/v1'
  const inNamespace = /^\/apis\/example\.com\/v1\/namespaces\/([^/]+)\/(\w+)$/.exec(url.pathname)
  const asked = inNamespace?.[2] ?? url.pathname.slice(root.length + 1)
  if (url.pathname === root) {
    const verbs = ['list', 'watch']
    const resources = plural === undefined ? [] : [{ name: plural, kind: 'Widget', namespaced, verbs }]
    json(response, 200, { kind: 'APIResourceList', resources })
  } else if (url.pathname === '/api/v1/namespaces') namespaceList(member, response)
  else if (asked === plural && (!inNamespace || namespaced)) page(member, url, inNamespace?.[1], response)
  else status(response, 404, 'NotFound')
}

function page(member: ScriptedMember, url: URL, namespace: string | undefined, response: ServerResponse): void {
  const all = member.widgets.filter((widget) => namespace === undefined || widget.namespace === namespace)
  const from = Number(url.searchParams.get('continue') ?? 0)
  const limit = Number(url.searchParams.get('limit') ?? all.length)
  const next = from + limit < all.length ? String(from + limit) : ''
  json(response, 200, {
    kind: 'WidgetList',
    metadata: { resourceVersion: '7', continue: next },
    items: all.slice(from, from + limit).map(({ name, namespace, size = 1 }) => ({
      metadata: { name, ...(namespace !== undefined && { namespace }) },
      spec: { size },
    })),
  })
}

function namespaceList({ widgets, namespaces }: ScriptedMember, response: ServerResponse): void {
  const names = new Set([...widgets.flatMap(({ namespace }) => namespace ?? []), ...namespaces])
  json(response, 200, {
    kind: 'NamespaceList',
    metadata: { resourceVersion: '7' },
    items: [...names].sort().map((name) => ({ metadata: { name } })),
  })
}

/** A source of widgets with their size, and the sum of the sizes. */
export function aSource(
  over: {
    readonly source?: object
    readonly collection?: object
    readonly computed?: readonly object[]
    readonly name?: string
  } = {},
): CompiledSource {
  const { source, findings } = compileMetricSource({
    metadata: { name: over.name ?? 'widgets', namespace: 'clusterpulse' },
    spec: {
      source: { apiVersion: 'example.com/v1', kind: 'Widget', ...over.source },
      fields: [{ name: 'size', path: '.spec.size', type: 'integer' }],
      ...(over.computed && { computed: over.computed }),
      aggregations: [{ name: 'total', function: 'sum', field: 'size' }],
      collection: { retryAttempts: 0, ...over.collection },
    } as never, // the schema's shape, put together from parts
  })
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}

/** Widgets w0 … of one namespace each, in turn. */
export const widgetsIn = (count: number, ...namespaces: readonly string[]): Widget[] =>
  Array.from({ length: count }, (_, i) => {
    const namespace = namespaces[i % namespaces.length]
    return { name: `w${i}`, size: i, ...(namespace !== undefined && { namespace }) }
  })
