import {
  type Batch,
  type ClusterName,
  type ClusterSnapshot,
  type ConnectionFacts,
  type NodeSnapshot,
  type Part,
  parseClusterName,
} from '#model'

/** The same fleet for every server of a bench: equal numbers give equal clusters. */
export const clusterName = (index: number): ClusterName => parseClusterName(`cluster-${String(index).padStart(4, '0')}`)

export const connectionOf = (index: number): ConnectionFacts => ({
  displayName: `Cluster ${index}`,
  endpoint: `https://api.cluster-${index}.example.org:6443`,
  labels: { env: index % 3 === 0 ? 'production' : 'test', region: `region-${index % 7}` },
  mode: 'pull',
  intervalMs: 30_000,
  timeoutMs: 10_000,
  insecureSkipTlsVerify: false,
  credentialsRef: { name: `cluster-${index}`, namespace: 'clusterpulse' },
})

const facts = (index: number): ClusterSnapshot => ({
  name: 'cluster',
  apiUrl: `https://api.cluster-${index}.example.org:6443`,
  distribution: 'openshift',
  version: `4.16.${index % 20}`,
  platform: 'OpenShift',
  channel: 'stable-4.16',
  clusterId: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  image: null,
  updateVersion: null,
  versionState: 'Completed',
  versionStartedAt: 0,
  versionCompletedAt: 0,
  consoleUrl: `https://console.cluster-${index}.example.org`,
  conditions: [],
})

export const nodeOf = (node: number, round: number): NodeSnapshot => ({
  name: `node-${node}`,
  createdAt: 0,
  ready: 'ready',
  unschedulable: false,
  roles: ['worker'],
  conditions: [
    { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready', lastTransitionAt: 0 },
  ],
  capacity: { cpuCores: 16, memoryBytes: 64e9, storageBytes: 200e9, pods: 250 },
  allocatable: { cpuCores: 15.5, memoryBytes: 62e9, storageBytes: 180e9, pods: 250 },
  requested: { cpuCores: 4 + (round % 10), memoryBytes: 20e9 + round },
  used: { cpuCores: 2 + (round % 5), memoryBytes: 10e9 + round },
  pods: { total: 100, running: 98, pending: 1, failed: 0, succeeded: 1, unknown: 0 },
  kernelVersion: '5.14.0',
  osImage: 'Linux',
  containerRuntime: 'cri-o://1.29',
  kubeletVersion: 'v1.29.6',
  architecture: 'amd64',
  internalIp: `10.0.0.${node}`,
  externalIp: '',
  hostname: `node-${node}`,
  labels: { 'kubernetes.io/hostname': `node-${node}`, 'node-role.kubernetes.io/worker': '' },
  annotations: {},
  taints: [],
  imagesCount: 40,
  volumesAttached: 3,
})

export function batchOf(index: number, nodes: number, sequence: number, now: number): Batch {
  const part = (type: string, items: readonly object[]) =>
    ({ type, collector: 'bench', durationMs: 20, outcome: 'complete', items }) as unknown as Part
  const items = Array.from({ length: nodes }, (_, node) => nodeOf(node, sequence))
  const parts = [part('node', items)]
  if (sequence === 1) parts.push(part('cluster', [facts(index)]))
  return { cluster: clusterName(index), sequence, source: 'pull', collectedAt: now, durationMs: 40, parts }
}

/** Calls `work` so often per second, and tells the parent of the process what it is asked. */
export function serveBench(url: string, perSecond: number, work: () => Promise<void>): void {
  let applied = 0
  let due = 0
  let last = Date.now()
  let busy = false
  setInterval(() => {
    const now = Date.now()
    due += ((now - last) * perSecond) / 1000
    last = now
    if (busy) return
    busy = true
    void (async () => {
      for (; due >= 1; due -= 1) {
        await work()
        applied += 1
      }
      busy = false
    })()
  }, 10)
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.({ rssBytes: process.memoryUsage.rss(), cpuMs: (user + system) / 1000, applied })
  })
  process.on('disconnect', () => process.exit())
  process.send?.({ url })
}
