import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CollectorLoop } from '#collect'
import { createKubeClient, customResourceDefinitions, type KubeClient, type Resource } from '#kube'
import { parseClusterName, type RowsPart, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { until } from '../../../platform/kube/testing/scripted-server.ts'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import type { CompiledSource } from '../types.ts'
import { collectSource } from './collect-source.ts'
import { ownCollector } from './row-collector.ts'
import { aSource } from './testing/member.ts'

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'
const OBJECTS = 5_000
const NAMESPACES = ['team-a', 'team-b', 'team-c', 'kube-extra']

const resource = (group: string, version: string, plural: string, kind: string, namespaced: boolean): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced,
})
const namespaces = resource('', 'v1', 'namespaces', 'Namespace', false)
// A plural nobody would guess: only discovery knows it.
const widgets = resource('example.com', 'v1', 'widgetten', 'Widget', true)
const serviceAccounts = resource('', 'v1', 'serviceaccounts', 'ServiceAccount', true)
const roles = resource('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole', false)
const bindings = resource('rbac.authorization.k8s.io', 'v1', 'rolebindings', 'RoleBinding', true)
const clusterBindings = resource('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings', 'ClusterRoleBinding', false)

describe.skipIf(skip)(`collecting from a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let server: RealApiServer
  let admin: KubeClient
  const clients: KubeClient[] = []
  beforeAll(async () => {
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    server = started
    admin = createKubeClient(server.access, { qps: 10_000, burst: 10_000, connections: 8, keptConnections: 8 })
    clients.push(admin)
    await admin.create(customResourceDefinitions, definition(['v1']) as never)
    // Not by `serves`, which keeps "absent" for minutes.
    await eventually(() => admin.request('GET', '/apis/example.com/v1/widgetten').catch(() => undefined))
    for (const name of NAMESPACES) await admin.create(namespaces, { metadata: { name } })
    const work = Array.from({ length: OBJECTS }, (_, i) => i)
    const create = async () => {
      for (let i = work.pop(); i !== undefined; i = work.pop()) {
        const metadata = { name: `w${i}`, namespace: NAMESPACES[i % 4] ?? '', labels: { half: String(i % 2) } }
        await admin.create(widgets, { metadata, spec: { size: i } })
      }
    }
    await Promise.all(Array.from({ length: 8 }, create))
  })
  afterAll(async () => {
    for (const client of clients) await client[Symbol.asyncDispose]()
    await server?.stop()
  })

  const read = (source: CompiledSource, kube: KubeClient = admin) =>
    collectSource({ kube, source, signal: new AbortController().signal, clock: systemClock })

  /** Somebody with exactly these rights. */
  async function somebody(
    name: string,
    rights: { readonly everywhere?: string[]; readonly in?: Record<string, string[]> },
  ) {
    await admin.create(serviceAccounts, { metadata: { name, namespace: 'default' } })
    const subjects = [{ kind: 'ServiceAccount', name, namespace: 'default' }]
    const rule = (resources: readonly string[]) => ({
      rules: [{ apiGroups: ['', 'example.com'], resources, verbs: ['get', 'list', 'watch'] }],
    })
    if (rights.everywhere) {
      await admin.create(roles, { metadata: { name }, ...rule(rights.everywhere) })
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
      await admin.create(clusterBindings, { metadata: { name }, roleRef, subjects })
    }
    for (const [namespace, resources] of Object.entries(rights.in ?? {})) {
      const role = `${name}-${namespace}`
      await admin.create(roles, { metadata: { name: role }, ...rule(resources) })
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }
      await admin.create(bindings, { metadata: { name, namespace }, roleRef, subjects })
    }
    const answer = (await admin.request('POST', `/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
    })) as { status: { token: string } }
    const kube = createKubeClient({ ...server.access, credentials: { kind: 'token', token: answer.status.token } })
    clients.push(kube)
    // Rights take a moment to be known everywhere.
    await eventually(async () =>
      (await read(aSource({ collection: { maxResources: 1 } }), kube)).outcome === 'forbidden' ? undefined : true,
    )
    return kube
  }

  it('takes 5000 objects page by page, under the name only the cluster knows', async () => {
    const part = whole(await read(aSource({ collection: { batchSize: 500, maxResources: OBJECTS } })))
    expect(part.rows.size).toBe(OBJECTS)
    expect(part).toMatchObject({
      truncated: false,
      errorCount: 0,
      aggregations: { total: (OBJECTS * (OBJECTS - 1)) / 2 },
    })
  })

  it('is truncated exactly where something is left out', async () => {
    const of = async (maxResources: number) => whole(await read(aSource({ collection: { maxResources } }))).truncated
    expect([await of(OBJECTS - 1), await of(OBJECTS)]).toEqual([true, false])
  })

  it('chooses by labels and by patterns of namespaces', async () => {
    const source = aSource({
      source: {
        labelSelector: { matchLabels: { half: '1' } },
        namespaces: { include: ['team-*'], exclude: ['team-b'] },
      },
    })
    const part = whole(await read(source))
    const found = new Set(Array.from({ length: part.rows.size }, (_, row) => part.rows.row(row).namespace))
    // w1, w5, … are in team-b; w3, w7, … in kube-extra; even ones have the other label.
    expect([...found]).toEqual([])
    const even = aSource({
      source: { labelSelector: { matchLabels: { half: '0' } }, namespaces: { include: ['team-*'] } },
    })
    expect(whole(await read(even)).rows.size).toBe(OBJECTS / 2)
  })

  it('reads what a reader of single namespaces may, and names what it may not', async () => {
    const kube = await somebody('two-teams', {
      everywhere: ['namespaces'],
      in: { 'team-a': ['widgetten'], 'team-c': ['widgetten'] },
    })
    const part = whole(await read(aSource({ source: { namespaces: { include: ['team-*'] } } }), kube))
    expect(part.rows.size).toBe(OBJECTS / 2)
    expect(part.errors).toEqual([
      expect.objectContaining({ namespace: 'team-b', outcome: 'forbidden', code: 'kube_forbidden' }),
    ])
    // Without a right to see namespaces, those that are named are read all the same.
    const exact = whole(await read(aSource({ source: { namespaces: { include: ['team-a', 'nowhere'] } } }), kube))
    expect([exact.rows.size, exact.errors.map(({ namespace }) => namespace)]).toEqual([OBJECTS / 4, ['nowhere']])
  })

  it('shows a change in less than five seconds where it watches, with list and watch of one kind as its only rights', async () => {
    const kube = await somebody('watcher', { everywhere: ['widgetten'] })
    const told: RowsPart[] = []
    const loop = new CollectorLoop({
      cluster: parseClusterName('real'),
      source: 'pull',
      kube: async () => kube,
      onBatch: async ({ tables: parts = [] }) => void told.push(...parts),
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
    })
    try {
      loop.replan([ownCollector(aSource({ collection: { watch: true, maxResources: 10_000 } }))])
      await until(() => loop.statuses()[0]?.isFollowed)
      const at = Date.now()
      await admin.create(widgets, { metadata: { name: 'new', namespace: 'team-a' }, spec: { size: 1 } })
      await until(() => told.some((part) => part.outcome === 'complete' && part.rows.indexOf('team-a', 'new') >= 0))
      expect((Date.now() - at) / slowness).toBeLessThan(20_000)
      await admin.delete(widgets, { name: 'new', namespace: 'team-a' })
      await until(() => {
        const last = told.at(-1)
        return last?.outcome === 'complete' && last.rows.indexOf('team-a', 'new') < 0
      })
    } finally {
      await loop.stop()
    }
  })

  it('says that a kind is absent in a version the cluster does not serve, and after its definition went', async () => {
    const old = aSource({ source: { apiVersion: 'example.com/v1beta1' } })
    expect(await read(old)).toMatchObject({ outcome: 'absent', code: 'not_served' })
    // One without objects: to take five thousand away is the work of the API server.
    await admin.create(customResourceDefinitions, definition(['v1'], 'Gadget') as never)
    const gone = aSource({ source: { apiVersion: 'example.com/v1', kind: 'Gadget' } })
    const becomes = (outcome: string) =>
      eventually(async () => ((await read(gone)).outcome === outcome ? true : undefined))
    await eventually(() => admin.request('GET', '/apis/example.com/v1/gadgetten').catch(() => undefined))
    await becomes('complete')
    await admin.delete(customResourceDefinitions, { name: 'gadgetten.example.com' })
    await becomes('absent')
    expect(await read(gone)).toMatchObject({ outcome: 'absent', code: 'not_served' })
  })
})

function whole(part: RowsPart): Extract<RowsPart, { outcome: 'complete' }> {
  if (part.outcome !== 'complete') throw new Error(JSON.stringify(part))
  return part
}

/** Waits for what only asking tells; the test's own timeout is the bound. */
async function eventually<T>(check: () => Promise<T | undefined>): Promise<void> {
  while ((await check()) === undefined) await new Promise((resolve) => setTimeout(resolve, 100))
}

function definition(versions: readonly string[], kind = 'Widget') {
  const singular = kind.toLowerCase()
  const plural = `${singular}ten`
  return {
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural, singular, kind },
      versions: versions.map((name, i) => ({
        name,
        served: true,
        storage: i === 0,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      })),
    },
  }
}
