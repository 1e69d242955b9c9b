import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterRoleFor, collectors, collectRound } from '#collect'
import { samplesOf } from '#history'
import { createKubeClient, type KubeClient, type Resource, whole } from '#kube'
import { type Batch, type ClusterState, parseClusterName } from '#model'
import { applyRecord } from '#state'
import { documentCommands } from '../../src/pipeline/state/redis-documents.ts'
import { deployments, nodes, pods } from '../../src/platform/kube/resources.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

/*
 * A cluster whose RBAC leaves one kind out of what we may list: that kind is not known, in parts, documents and history, and
 * every other is as if nothing had been refused.
 */
const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'
const rbac = (plural: string, kind: string, namespaced = false): Resource => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced,
})

describe.skipIf(skip)(`what RBAC refuses${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let server: RealApiServer
  let admin: KubeClient
  beforeAll(async () => {
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    server = started
    admin = createKubeClient(server.access)
    await admin.create(whole(nodes), { metadata: { name: 'n1' } })
    const status = { status: { conditions: [{ type: 'Ready', status: 'True' }], capacity: { cpu: '4' } } }
    await admin.patch(whole(nodes), { name: 'n1' }, status, { kind: 'merge', subresource: 'status' })
    const containers = [{ name: 'a', image: 'x', resources: { requests: { cpu: '500m' } } }]
    const labels = { app: 'a' }
    await admin.create(whole(deployments), {
      metadata: { name: 'web', namespace: 'default' },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    })
    // Pods of a cluster without controllers have to bring what an admission would add.
    await admin.create(
      { group: '', version: 'v1', plural: 'serviceaccounts', kind: 'ServiceAccount', namespaced: true },
      { metadata: { name: 'default', namespace: 'default' } },
    )
    await admin.create(whole(pods), {
      metadata: { name: 'p1', namespace: 'default' },
      spec: { nodeName: 'n1', containers, automountServiceAccountToken: false },
    })
  })
  afterAll(async () => {
    await admin?.[Symbol.asyncDispose]()
    await server?.stop()
  })

  /** A round of who may read all that collectors read, less these. */
  async function roundWithout(...refused: string[]): Promise<Batch> {
    const name = `reader-without-${refused.join('-') || 'nothing'}`
    const rules = clusterRoleFor(collectors).map((rule) => ({
      ...rule,
      resources: rule.resources.filter((plural) => !refused.includes(plural)),
    }))
    await admin.create(rbac('clusterroles', 'ClusterRole'), {
      metadata: { name },
      rules: rules.filter(({ resources }) => resources.length > 0),
    })
    await admin.create(rbac('clusterrolebindings', 'ClusterRoleBinding'), {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
    })
    await admin.request('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } },
      contentType: 'application/json',
    })
    const issued = (await admin.request('POST', `/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      contentType: 'application/json',
    })) as { status: { token: string } }
    const kube = createKubeClient({ ...server.access, credentials: { kind: 'token', token: issued.status.token } })
    try {
      // The authorizer learns of a new binding in its own time. Where it binds to nothing there is nothing to learn.
      const isRefusedAll = rules.every(({ resources }) => resources.length === 0)
      for (let tries = 0; ; tries++) {
        const unnumbered = await collectRound({
          kube,
          cluster: parseClusterName('west'),
          collectors,
          source: 'pull',
          signal: new AbortController().signal,
        })
        const batch = { ...unnumbered, sequence: tries + 1 }
        const isThere = batch.parts.some(({ outcome }) => outcome === 'complete')
        if (isThere || isRefusedAll) return batch
        if (tries > 500) throw new Error(`no right of ${name} counts`)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    } finally {
      await kube[Symbol.asyncDispose]()
    }
  }

  const outcomes = ({ parts }: Batch) => Object.fromEntries(parts.map(({ type, outcome }) => [type, outcome]))
  const KEPT_FOR = { ttlMs: 600_000, retentionMs: 3_600_000 }
  function written(batch: Batch) {
    const { next } = applyRecord(undefined, { kind: 'batch', batch, receivedAt: batch.collectedAt }, 1)
    return documentCommands(undefined, next as ClusterState, batch.collectedAt, KEPT_FOR).commands
  }
  function nodeHashOf(batch: Batch): Record<string, string> {
    const command = written(batch).find(([verb, key]) => verb === 'HSET' && key === 'cluster:west:node:n1') ?? []
    const fields = command.slice(2).map(String)
    return Object.fromEntries(fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1] ?? '']] : [])))
  }
  /** The totals as Redis has them. */
  function totalsOf(batch: Batch): Record<string, unknown> {
    const command = written(batch).find(([verb, key]) => verb === 'SET' && key === 'cluster:west:metrics')
    return command ? (JSON.parse(String(command[2])) as Record<string, unknown>) : {}
  }
  /** The metrics of the cluster that history keeps a number of. */
  function sampled(batch: Batch): Record<string, number> {
    const group = samplesOf(batch)?.groups.find(({ scope }) => scope === 'cluster')
    const numbers = (group?.columns ?? []).map(({ metric, values }) => [metric, values[0] ?? Number.NaN] as const)
    return Object.fromEntries(
      numbers
        .filter(([, value]) => !Number.isNaN(value))
        .map(([name, n]) => [name.slice('clusterpulse_cluster_'.length), n]),
    )
  }
  const NODES = { nodes: 1, nodes_ready: 1, cpu_capacity: 4 }
  const PODS = { pods: 1, pods_running: 0 }

  it('nothing: all is known, and operators are none where their kind is not installed', async () => {
    const batch = await roundWithout()
    expect(batch.failure).toBeUndefined()
    expect(totalsOf(batch)).toMatchObject({ ...NODES, ...PODS, deployments: 1, namespaces: 4 })
    expect(sampled(batch)).toMatchObject({
      nodes_total: 1,
      deployments_total: 1,
      operators_total: 0,
      operators_count: 0,
    })
  })

  it('deployments: their number is not known, and nothing else is missing', async () => {
    const batch = await roundWithout('deployments')
    expect(batch.failure).toBeUndefined()
    expect(outcomes(batch)).toMatchObject({ node: 'complete', namespace: 'complete', deployment: 'forbidden' })
    expect(totalsOf(batch)).toMatchObject({ ...NODES, ...PODS, namespaces: 4 })
    expect(totalsOf(batch)).not.toHaveProperty('deployments')
    expect(sampled(batch)).toMatchObject({ nodes_total: 1, namespaces_total: 4 })
    expect(sampled(batch)).not.toHaveProperty('deployments_total')
  })

  it('namespaces: nodes with their pods, and deployments, are read', async () => {
    const batch = await roundWithout('namespaces')
    expect(batch.failure).toBeUndefined()
    expect(outcomes(batch)).toMatchObject({ node: 'complete', podSummary: 'complete', namespace: 'forbidden' })
    const [node] = batch.parts.flatMap((part) =>
      part.type === 'node' && part.outcome === 'complete' ? part.items : [],
    )
    expect(node).toMatchObject({ name: 'n1', pods: { total: 1, pending: 1 }, requested: { cpuCores: 0.5 } })
    expect(totalsOf(batch)).toMatchObject({ ...NODES, ...PODS, deployments: 1 })
    expect(totalsOf(batch)).not.toHaveProperty('namespaces')
    expect(sampled(batch)).not.toHaveProperty('namespaces_total')
  })

  it('nodes: the round says so, and pods and the other kinds are read', async () => {
    const batch = await roundWithout('nodes')
    expect(batch.failure).toMatchObject({
      code: 'kube_forbidden',
      message: expect.stringMatching(/^failed to get node metrics: GET \/api\/v1\/nodes/) as string,
    })
    expect(outcomes(batch)).toMatchObject({ node: 'forbidden', podSummary: 'complete', namespace: 'complete' })
    const totals = totalsOf(batch)
    expect(totals).toMatchObject({
      ...PODS,
      deployments: 1,
      namespaces: 4,
      timestamp: expect.not.stringMatching(/^0001/) as string,
    })
    for (const unread of ['nodes', 'nodes_ready', 'cpu_capacity']) expect(totals).not.toHaveProperty(unread)
    expect(sampled(batch)).toMatchObject({ pods_total: 1, deployments_total: 1, namespaces_total: 4 })
    expect(sampled(batch)).not.toHaveProperty('nodes_total')
  })

  it('pods: nodes are shown with what they tell themselves, and nothing of pods is 0', async () => {
    const batch = await roundWithout('pods')
    expect(batch.failure).toBeUndefined()
    expect(outcomes(batch)).toMatchObject({ node: 'complete', podSummary: 'forbidden', deployment: 'complete' })
    expect(batch.parts.find(({ type }) => type === 'podSummary')).toMatchObject({
      code: 'kube_forbidden',
      message: expect.stringMatching(/^GET \/api\/v1\/pods/) as string,
    })
    const node = batch.parts.flatMap((part) => (part.type === 'node' && 'items' in part ? part.items : []))[0]
    expect(node).toMatchObject({ name: 'n1', ready: 'ready', capacity: { cpuCores: 4 }, pods: null, requested: null })

    expect(totalsOf(batch)).toMatchObject({ ...NODES, deployments: 1, namespaces: 4 })
    for (const unread of Object.keys(PODS)) expect(totalsOf(batch)).not.toHaveProperty(unread)
    expect(sampled(batch)).toMatchObject({ nodes_total: 1, nodes_ready: 1, cpu_capacity: 4 })
    for (const unread of ['pods_total', 'pods_running', 'cpu_requested', 'memory_requested_bytes'])
      expect(sampled(batch)).not.toHaveProperty(unread)
    const { current, ...fields } = nodeHashOf(batch)
    expect(fields).toMatchObject({ status: 'Ready' })
    expect(JSON.parse(current ?? '')).toMatchObject({ name: 'n1', cpu_capacity: 4 })
    for (const unread of ['pods_total', 'cpu_usage', 'cpu_requested', 'cpu_usage_percent', 'usage_source']) {
      expect(fields).not.toHaveProperty(unread)
      expect(JSON.parse(current ?? '')).not.toHaveProperty(unread)
    }
  })

  it('everything: nothing is written, and nothing is 0', async () => {
    const all = clusterRoleFor(collectors).flatMap(({ resources }) => [...resources])
    const batch = await roundWithout(...all)
    expect(batch.failure?.code).toBe('kube_forbidden')
    expect(totalsOf(batch)).toEqual({})
    expect(sampled(batch)).not.toHaveProperty('nodes_total')
  })
})
