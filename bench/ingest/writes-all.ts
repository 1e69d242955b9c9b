import { readFileSync } from 'node:fs'
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { Redis } from 'ioredis'
import { COLLECTOR_METHOD, decodeRequest, encodeResponse, type MetricsBatch } from '#wire'
import { serveBencher } from './process.ts'

/*
 * What we are compared with, a stand-in for the original (calibration.ts says how the original differs): a hub that acknowledges a batch when every document and every sample of it is in Redis, by the
 * documented keys, one pipeline per group as documented. No credential is looked at, nothing is kept on a disk of its own.
 */

const { redisPort, certFile, keyFile } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly redisPort: number
  readonly certFile: string
  readonly keyFile: string
}
const redis = new Redis({ host: '127.0.0.1', port: redisPort, enableAutoPipelining: false })
const TTL_S = 600
const RETENTION_S = 3_600

type NodeMetrics = MetricsBatch['nodeMetrics'][number]

function nodeDocument(node: NodeMetrics, timestamp: string) {
  return {
    name: node.name,
    timestamp,
    status: node.status,
    roles: node.roles,
    conditions: [],
    cpu_capacity: node.cpuCapacity,
    memory_capacity: Number(node.memoryCapacity),
    storage_capacity: Number(node.storageCapacity),
    pods_capacity: node.podsCapacity,
    cpu_allocatable: node.cpuAllocatable,
    memory_allocatable: Number(node.memoryAllocatable),
    storage_allocatable: Number(node.storageAllocatable),
    pods_allocatable: node.podsAllocatable,
    cpu_requested: node.cpuRequested,
    memory_requested: Number(node.memoryRequested),
    cpu_usage_percent: node.cpuUsagePercent,
    memory_usage_percent: node.memoryUsagePercent,
    pods_running: node.podsRunning,
    pods_pending: node.podsPending,
    pods_failed: node.podsFailed,
    pods_succeeded: node.podsSucceeded,
    pods_total: node.podsTotal,
    kernel_version: node.kernelVersion,
    os_image: node.osImage,
    container_runtime: node.containerRuntime,
    kubelet_version: node.kubeletVersion,
    architecture: node.architecture,
    labels: node.labels,
    annotations: {},
    taints: [],
    internal_ip: node.internalIp,
    external_ip: '',
    hostname: node.hostname,
    images_count: 0,
    volumes_attached: 0,
  }
}

async function totals({ clusterName, clusterMetrics }: MetricsBatch, timestamp: string): Promise<void> {
  if (!clusterMetrics) return
  const { nodes, nodesReady, namespaceList, pods, podsRunning, cpuCapacity, memoryCapacity, deployments } =
    clusterMetrics
  const document = {
    timestamp,
    nodes,
    nodes_ready: nodesReady,
    namespaces: namespaceList.length,
    pods,
    pods_running: podsRunning,
    cpu_capacity: cpuCapacity,
    memory_capacity: Number(memoryCapacity),
    deployments,
  }
  await redis.set(`cluster:${clusterName}:metrics`, JSON.stringify(document), 'EX', 300)
  const namespaces = { namespaces: namespaceList, count: namespaceList.length, timestamp }
  const set = `cluster:${clusterName}:namespaces:set`
  const pipeline = redis
    .pipeline()
    .set(`cluster:${clusterName}:namespaces`, JSON.stringify(namespaces), 'EX', TTL_S)
    .del(set)
  if (namespaceList.length > 0) pipeline.sadd(set, ...namespaceList).expire(set, TTL_S)
  await pipeline.exec()
}

async function nodes({ clusterName, nodeMetrics }: MetricsBatch, now: number, timestamp: string): Promise<void> {
  const seconds = Math.floor(now / 1000)
  const pipeline = redis.pipeline()
  const byRole: Record<string, number> = {}
  for (const node of nodeMetrics) {
    const key = `cluster:${clusterName}:node:${node.name}`
    for (const role of node.roles) byRole[role] = (byRole[role] ?? 0) + 1
    pipeline
      .sadd(`cluster:${clusterName}:nodes`, node.name)
      .hset(key, {
        current: JSON.stringify(nodeDocument(node, timestamp)),
        last_update: timestamp,
        status: node.status,
        cpu_usage: node.cpuUsagePercent.toFixed(2),
        memory_usage: node.memoryUsagePercent.toFixed(2),
        pods_total: String(node.podsTotal),
      })
      .expire(key, TTL_S)
    const sample = {
      timestamp: seconds,
      cpu_usage: node.cpuUsagePercent,
      memory_usage: node.memoryUsagePercent,
      cpu_requested: node.cpuRequested,
      memory_requested: Number(node.memoryRequested),
      pods_running: node.podsRunning,
      pods_pending: node.podsPending,
      pods_total: node.podsTotal,
    }
    pipeline
      .zadd(`${key}:metrics`, seconds, JSON.stringify(sample))
      .zremrangebyscore(`${key}:metrics`, '-inf', seconds - RETENTION_S)
      .expire(`${key}:metrics`, RETENTION_S)
  }
  const ready = nodeMetrics.filter(({ status }) => status === 'Ready').length
  const summary = {
    total: nodeMetrics.length,
    ready,
    not_ready: nodeMetrics.length - ready,
    by_role: byRole,
    timestamp,
  }
  const key = `cluster:${clusterName}:nodes:summary`
  pipeline.hset(key, { data: JSON.stringify(summary) }).expire(key, TTL_S)
  await pipeline.exec()
}

async function status({ clusterName }: MetricsBatch, timestamp: string): Promise<void> {
  const document = { health: 'healthy', message: 'Collector push active', last_check: timestamp }
  await redis
    .pipeline()
    .set(`cluster:${clusterName}:status`, JSON.stringify(document))
    .hset(`cluster:${clusterName}:meta`, { last_update: timestamp })
    .sadd('clusters:all', clusterName)
    .exec()
  const data = { health: 'healthy', source: 'collector-push' }
  const event = JSON.stringify({ type: 'cluster.reconciled', cluster: clusterName, timestamp, data })
  await redis
    .pipeline()
    .publish('clusterpulse:events', event)
    .lpush(`events:${clusterName}`, event)
    .ltrim(`events:${clusterName}`, 0, 99)
    .expire(`events:${clusterName}`, 86_400)
    .exec()
}

async function write(batch: MetricsBatch): Promise<void> {
  const now = Date.now()
  const timestamp = new Date(now).toISOString()
  await totals(batch, timestamp)
  if (batch.nodeMetrics.length > 0) await nodes(batch, now, timestamp)
  await status(batch, timestamp)
}

function serve(call: ServerDuplexStream<Buffer, Uint8Array>): void {
  let turn = Promise.resolve()
  call.on('data', (bytes: Buffer) => {
    const { payload } = decodeRequest(bytes)
    if (payload.case !== 'metrics') return
    const batch = payload.value
    turn = turn.then(async () => {
      await write(batch)
      call.write(encodeResponse({ payload: { case: 'ack', value: { batchId: batch.batchId, success: true } } }))
    })
  })
  call.on('end', () => call.end())
}

const server = new Server()
const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const asIs = (bytes: Buffer) => bytes
server.addService(
  {
    connect: {
      path: COLLECTOR_METHOD,
      requestStream: true,
      responseStream: true,
      requestSerialize: asBuffer,
      requestDeserialize: asIs,
      responseSerialize: asBuffer,
      responseDeserialize: asIs,
    },
  },
  { connect: serve },
)
const pair = { private_key: readFileSync(keyFile), cert_chain: readFileSync(certFile) }
const port = await new Promise<number>((resolve, reject) =>
  server.bindAsync('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]), (error, bound) =>
    error ? reject(error) : resolve(bound),
  ),
)
serveBencher(port, () => Promise.resolve())
