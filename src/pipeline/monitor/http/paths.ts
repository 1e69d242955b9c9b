/** What a path asks for. */
export type Endpoint =
  | 'cluster-info'
  | 'pod-metrics'
  | 'api/metrics/nodes'
  | 'api/metrics/node'
  | 'api/metrics/pods'
  | 'api/metrics/clusters'
  | 'api/graph/dependencies'
  | 'sse/health'
  | 'sse/cluster-info'
  | 'sse/pod-metrics'
  | 'sse/summary'
  | 'ws/cluster-info'
  | 'ws/pod-metrics'
  | 'summary'

/** Of which clusters. */
export type Scope =
  | { readonly kind: 'default' }
  | { readonly kind: 'fleet' }
  | { readonly kind: 'cluster'; readonly cluster: string }

export interface Route {
  readonly scope: Scope
  readonly endpoint: Endpoint
  /** of `api/metrics/node` */
  readonly node?: string
}

const BOTH: readonly Endpoint[] = [
  ...(['cluster-info', 'pod-metrics', 'api/graph/dependencies'] as const),
  ...(['sse/health', 'sse/cluster-info', 'sse/pod-metrics'] as const),
]
const OF_CLUSTER: ReadonlySet<string> = new Set([
  ...BOTH,
  ...(['api/metrics/nodes', 'api/metrics/pods', 'ws/cluster-info', 'ws/pod-metrics'] as const),
])
const OF_FLEET: ReadonlySet<string> = new Set([...BOTH, 'api/metrics/clusters', 'summary', 'sse/summary'])
const NODE = 'api/metrics/nodes/'

/** For administrators: nodes, and what is summed over them. */
export const forAdministrators: ReadonlySet<Endpoint> = new Set([
  ...(['cluster-info', 'sse/cluster-info', 'ws/cluster-info', 'api/metrics/nodes', 'api/metrics/node'] as const),
  ...(['api/metrics/clusters', 'api/graph/dependencies'] as const),
])

/** @returns undefined where there is nothing of the kind */
export function routeOf(path: string): Route | undefined {
  const fleet = /^\/fleet\/(.*)$/.exec(path)
  if (fleet)
    return OF_FLEET.has(fleet[1] ?? '') ? { scope: { kind: 'fleet' }, endpoint: fleet[1] as Endpoint } : undefined
  const [, name, rest = path.slice(1)] = /^\/clusters\/([^/]+)\/(.*)$/.exec(path) ?? []
  const cluster = name === undefined ? undefined : decoded(name)
  if (name !== undefined && cluster === undefined) return undefined
  const scope: Scope = cluster === undefined ? { kind: 'default' } : { kind: 'cluster', cluster }
  if (OF_CLUSTER.has(rest)) return { scope, endpoint: rest as Endpoint } // one of the names above
  if (!rest.startsWith(NODE)) return undefined
  return { scope, endpoint: 'api/metrics/node', node: decoded(rest.slice(NODE.length)) ?? '' }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined // a % that encodes nothing
  }
}
