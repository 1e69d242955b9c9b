import type { Redis } from 'ioredis'

/*
 * Writes Redis as the specification says an original manager does: its keys, types, lifetimes and channels, and nothing of ours.
 * Plain pipelines, as there. Documents are spelled out here and not made by our writers, so that both can be compared.
 */
const TTL_S = 600
const RETENTION_S = 3600

export interface OriginalNode {
  readonly name: string
  readonly status?: 'Ready' | 'NotReady' | 'SchedulingDisabled' | 'Unknown'
  readonly labels?: Readonly<Record<string, string>>
  readonly requested?: number
}

export interface OriginalCluster {
  readonly name: string
  readonly mode?: 'pull' | 'push'
  readonly labels?: Readonly<Record<string, string>> | null
  readonly nodes?: readonly OriginalNode[]
  readonly namespaces?: readonly string[]
  readonly operators?: readonly { readonly name: string; readonly namespaces: readonly string[] }[]
  readonly health?: 'healthy' | 'unhealthy'
  readonly at?: number
}

const wholeSeconds = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')

export const originalNodeDocument = (
  { name, status = 'Ready', labels = {}, requested = 1.5 }: OriginalNode,
  at: number,
) => ({
  name,
  timestamp: wholeSeconds(at),
  status,
  roles: ['worker'],
  conditions: [
    {
      type: 'Ready',
      status: status === 'NotReady' ? 'False' : 'True',
      reason: 'KubeletReady',
      message: 'kubelet is posting ready status',
      last_transition_time: '2026-01-01T00:00:00Z',
    },
  ],
  cpu_capacity: 4,
  memory_capacity: 17179869184,
  storage_capacity: 107374182400,
  pods_capacity: 110,
  cpu_allocatable: 3,
  memory_allocatable: 16106127360,
  storage_allocatable: 96636764160,
  pods_allocatable: 110,
  cpu_requested: requested,
  memory_requested: 4026531840,
  cpu_usage_percent: (requested / 3) * 100,
  memory_usage_percent: 25,
  pods_running: 7,
  pods_pending: 1,
  pods_failed: 0,
  pods_succeeded: 2,
  pods_total: 10,
  kernel_version: '6.1.0',
  os_image: 'Linux',
  container_runtime: 'containerd://1.7',
  kubelet_version: 'v1.31.0',
  architecture: 'amd64',
  labels,
  annotations: { note: 'x' },
  taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }],
  internal_ip: '10.0.0.1',
  external_ip: '',
  hostname: name,
  images_count: 12,
  volumes_attached: 1,
})

/** One round of the manager (pull) or one batch of a collector (push), its event included. */
export async function originalRound(redis: Redis, cluster: OriginalCluster): Promise<void> {
  const { name, mode = 'pull', labels = null, nodes = [], health = 'healthy', at = Date.now() } = cluster
  const path = `cluster:${name}`
  const score = Math.floor(at / 1000)
  const pipeline = redis.pipeline()
  pipeline.set(
    `${path}:spec`,
    JSON.stringify({
      displayName: name.toUpperCase(),
      endpoint: `https://${name}.example:6443`,
      credentialsRef: { name: `${name}-token`, namespace: '' },
      labels,
      monitoring: { interval: 0, timeout: 0 },
    }),
  )
  if (labels) pipeline.set(`${path}:labels`, JSON.stringify(labels))
  const message =
    mode === 'push' ? 'Collector push active' : health === 'healthy' ? 'Cluster is reachable' : 'connection refused'
  pipeline.set(`${path}:status`, JSON.stringify({ health, message, last_check: wholeSeconds(at) }))
  pipeline.hset(`${path}:meta`, 'last_update', wholeSeconds(at))
  pipeline.sadd('clusters:all', name)
  if (health === 'healthy') {
    pipeline.set(
      `${path}:info`,
      JSON.stringify({ api_url: `https://${name}.example:6443`, version: 'v1.31.0', platform: 'linux/amd64' }),
      'EX',
      3600,
    )
    for (const node of nodes) {
      const key = `${path}:node:${node.name}`
      const document = originalNodeDocument(node, at)
      pipeline.sadd(`${path}:nodes`, node.name)
      pipeline.hset(key, {
        current: JSON.stringify(document),
        last_update: wholeSeconds(at),
        status: document.status,
        cpu_usage: document.cpu_usage_percent.toFixed(2),
        memory_usage: document.memory_usage_percent.toFixed(2),
        pods_total: String(document.pods_total),
      })
      pipeline.expire(key, TTL_S)
      const sample = {
        timestamp: wholeSeconds(at),
        cpu_usage: document.cpu_usage_percent,
        memory_usage: document.memory_usage_percent,
        cpu_requested: document.cpu_requested,
        memory_requested: document.memory_requested,
        pods_running: document.pods_running,
        pods_pending: document.pods_pending,
        pods_total: document.pods_total,
      }
      pipeline.zadd(`${key}:metrics`, score, JSON.stringify(sample))
      pipeline.zremrangebyscore(`${key}:metrics`, '-inf', score - RETENTION_S)
      pipeline.expire(`${key}:metrics`, RETENTION_S)
    }
    const operators = (cluster.operators ?? []).map(({ name: csv, namespaces }) => ({
      ...{
        name: csv,
        display_name: csv.toUpperCase(),
        version: '1.0.0',
        status: 'Succeeded',
        namespace: 'openshift-operators',
      },
      ...{
        installed_namespace: 'openshift-operators',
        install_modes: ['AllNamespaces'],
        install_mode: 'AllNamespaces',
      },
      ...{ provider: 'somebody', created_at: wholeSeconds(at), updated_at: wholeSeconds(at) },
      ...{
        is_cluster_wide: namespaces[0] === '*',
        available_in_namespaces: namespaces,
        available_count: namespaces.length,
      },
      available_namespaces_detail: namespaces[0] === '*' ? 'All namespaces' : namespaces.join(', '),
    }))
    if (operators.length > 0) pipeline.set(`${path}:operators`, JSON.stringify(operators), 'EX', TTL_S)
    if (mode === 'push') pushOnly(pipeline, cluster, at)
  }
  const event = JSON.stringify({
    type: 'cluster.reconciled',
    cluster: name,
    timestamp: wholeSeconds(at),
    data: mode === 'push' ? { health, source: 'collector-push' } : { health, display_name: name.toUpperCase() },
  })
  pipeline.lpush(`events:${name}`, event).ltrim(`events:${name}`, 0, 99).expire(`events:${name}`, 86_400)
  pipeline.publish('cluster-events', event)
  await executed(pipeline)
}

function pushOnly(
  pipeline: ReturnType<Redis['pipeline']>,
  { name, nodes = [], namespaces = [] }: OriginalCluster,
  at: number,
) {
  const path = `cluster:${name}`
  pipeline.set(
    `${path}:metrics`,
    JSON.stringify({
      timestamp: wholeSeconds(at),
      ...{ nodes: nodes.length, nodes_ready: nodes.length, namespaces: namespaces.length },
      ...{ pods: nodes.length * 10, pods_running: nodes.length * 7, deployments: 5 },
      ...{ cpu_capacity: nodes.length * 4, memory_capacity: nodes.length * 17179869184 },
    }),
    'EX',
    300,
  )
  const document = { namespaces, count: namespaces.length, timestamp: wholeSeconds(at) }
  pipeline.set(`${path}:namespaces`, JSON.stringify(document), 'EX', TTL_S).del(`${path}:namespaces:set`)
  if (namespaces.length > 0)
    pipeline.sadd(`${path}:namespaces:set`, ...namespaces).expire(`${path}:namespaces:set`, TTL_S)
}

/** The ClusterConnection is gone. */
export async function originalRemoval(redis: Redis, name: string): Promise<void> {
  const keys = await redis.keys(`cluster:${name}:*`)
  const pipeline = redis.pipeline()
  if (keys.length > 0) pipeline.del(...keys)
  pipeline.srem('clusters:all', name)
  const event = { type: 'cluster.deleted', cluster: name, timestamp: wholeSeconds(Date.now()), data: null }
  pipeline.lpush(`events:${name}`, JSON.stringify(event)).publish('cluster-events', JSON.stringify(event))
  await executed(pipeline)
}

/** A compiled MetricSource with its indexes; as the shipped one of persistent volume claims. */
export async function originalSource(
  redis: Redis,
  namespace = 'clusterpulse',
  name = 'pvcs',
  typeName = 'pvc',
): Promise<void> {
  const field = (field: string, path: string, type: string, index: number) => ({
    ...{ name: field, path, pathSegments: path.slice(1).split('.'), type, index },
  })
  const definition = {
    ...{ name, namespace },
    source: {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', scope: 'Namespaced', group: '', version: 'v1' },
      resource: 'persistentvolumeclaims',
    },
    fields: [
      field('phase', '.status.phase', 'string', 0),
      field('capacity', '.status.capacity.storage', 'quantity', 1),
    ],
    aggregations: [
      { name: 'total', function: 'count' },
      { name: 'bytes', field: 'capacity', function: 'sum' },
    ],
    collection: {
      ...{ intervalSeconds: 60, timeoutSeconds: 30, maxResources: 5000 },
      ...{ batchSize: 500, retryAttempts: 3, parallelism: 3 },
    },
    rbac: { resourceTypeName: typeName, filterAggregations: true },
    compiledAt: '2026-01-01T00:00:00Z',
    hash: '0123456789abcdef',
  }
  const id = `${namespace}/${name}`
  const pipeline = redis.pipeline()
  pipeline.set(`metricsource:${namespace}:${name}`, JSON.stringify(definition))
  const meta = {
    compiledAt: definition.compiledAt,
    hash: definition.hash,
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
  }
  pipeline.hset(`metricsource:${namespace}:${name}:meta`, { ...meta, resourceTypeName: typeName })
  for (const index of ['metricsources:all', 'metricsources:enabled', `metricsources:by:resourcetype:${typeName}`])
    pipeline.sadd(index, id)
  await executed(pipeline)
}

export interface OriginalResource {
  readonly namespace: string
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, unknown>>
}

/** One collection; `null` rows as after a round that found nothing. */
export async function originalCollection(
  redis: Redis,
  cluster: string,
  rows: readonly OriginalResource[] | null,
  source = 'clusterpulse/pvcs',
  at = Date.now(),
): Promise<void> {
  const path = `cluster:${cluster}:custom:${source}`
  const collectedAt = new Date(at).toISOString().replace('Z', '123456Z')
  const resources =
    rows?.map(({ namespace, name, labels, values }) => ({
      ...{ _id: `${namespace}/${name}`, _namespace: namespace, _name: name },
      ...(labels && { _labels: labels }),
      values,
    })) ?? null
  const count = rows?.length ?? 0
  const head = {
    ...{ collectedAt, sourceId: source, clusterName: cluster },
    ...{ resourceCount: count, truncated: false, durationMs: 12 },
  }
  const bytes = (rows ?? []).reduce((sum, { values }) => sum + Number(values.capacity ?? 0), 0)
  const pipeline = redis.pipeline()
  pipeline.set(`${path}:resources`, JSON.stringify({ ...head, resources }), 'EX', TTL_S)
  const values = { total: count, bytes }
  pipeline.set(
    `${path}:aggregations`,
    JSON.stringify({ computedAt: collectedAt, sourceId: source, durationMs: 1, values }),
    'EX',
    TTL_S,
  )
  pipeline.publish(
    'metricsource-events',
    JSON.stringify({ type: 'reconciled', sourceId: source, timestamp: wholeSeconds(at), data: {} }),
  )
  await executed(pipeline)
}

async function executed(pipeline: ReturnType<Redis['pipeline']>): Promise<void> {
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
}
