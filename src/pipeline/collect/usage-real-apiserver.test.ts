import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type RowsPart, systemClock } from '#model'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import {
  identity,
  json,
  type ScriptedServer,
  scriptedServer,
  status,
} from '../../platform/kube/testing/scripted-server.ts'
import { collectOne } from './collect-one.ts'
import { NODE_USAGE, POD_USAGE, usageCollectors } from './usage.ts'

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

const of = (group: string, version: string, plural: string, kind: string, namespaced: boolean): Resource => ({
  ...{ group, version, plural, kind, namespaced },
})
const services = of('', 'v1', 'services', 'Service', true)
const apiServices = of('apiregistration.k8s.io', 'v1', 'apiservices', 'APIService', false)
const serviceAccounts = of('', 'v1', 'serviceaccounts', 'ServiceAccount', true)
const roles = of('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole', false)
const bindings = of('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings', 'ClusterRoleBinding', false)
const rbac = 'rbac.authorization.k8s.io'

const METRICS = '/apis/metrics.k8s.io/v1beta1'
const discovery = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: 'metrics.k8s.io/v1beta1',
  resources: [
    { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
    { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
  ],
}
const lists: Readonly<Record<string, readonly object[]>> = {
  [`${METRICS}/nodes`]: [{ metadata: { name: 'n1' }, usage: { cpu: '250m', memory: '1Gi' } }],
  [`${METRICS}/pods`]: [
    {
      metadata: { name: 'web', namespace: 'default' },
      containers: [
        { name: 'a', usage: { cpu: '1n', memory: '1Ki' } },
        { name: 'b', usage: { cpu: '100m', memory: '2Ki' } },
      ],
    },
  ],
}

/** A metrics server behind the aggregator of a real kube-apiserver. */
describe.skipIf(skip)(`usage through a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let server: RealApiServer
  let metrics: ScriptedServer
  let isWell = true
  const clients: KubeClient[] = []
  const client = (token?: string) => {
    const access =
      token === undefined ? server.access : { ...server.access, credentials: { kind: 'token', token } as const }
    const kube = createKubeClient(access)
    clients.push(kube)
    return kube
  }
  const create = (resource: Resource, object: KubeObject) => client().create(resource, object)
  beforeAll(async () => {
    const started = await startRealApiServer(undefined, { asksServices: false })
    if (!started) throw new Error(missing)
    server = started
    metrics = await scriptedServer(
      (request, response) => {
        const { pathname } = new URL(request.url ?? '/', 'http://metrics')
        const items = lists[pathname]
        if (!isWell) status(response, 503, 'ServiceUnavailable', 'the metrics server has nothing yet')
        else if (pathname === METRICS) json(response, 200, discovery)
        else if (items) json(response, 200, { kind: 'List', apiVersion: 'metrics.k8s.io/v1beta1', metadata: {}, items })
        else status(response, 404, 'NotFound')
      },
      await identity(),
    )
  })
  afterAll(async () => {
    for (const kube of clients) await kube[Symbol.asyncDispose]()
    await metrics?.[Symbol.asyncDispose]()
    await server?.stop()
  })

  async function read(id: string, kube = client()): Promise<RowsPart> {
    const collector = usageCollectors({ refreshMs: 5_000 }).find(({ name }) => name === id)
    if (!collector) throw new Error(id)
    return (await collectOne({ collector, kube, signal: new AbortController().signal, clock: systemClock })).part
  }

  /** A token with exactly these rights. */
  async function tokenOf(name: string, rules: readonly object[]): Promise<string> {
    await create(serviceAccounts, { metadata: { name, namespace: 'default' } })
    await create(roles, { metadata: { name }, rules })
    await create(bindings, {
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
    })
    const answer = (await client().request('POST', `/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
    })) as { status: { token: string } }
    return answer.status.token
  }

  it('is absent where nobody serves it', async () => {
    expect(await read(NODE_USAGE)).toMatchObject({ outcome: 'absent' })
    expect(await read(POD_USAGE)).toMatchObject({ outcome: 'absent' })
  })

  it('is read in one call per kind, over all namespaces, where a metrics server is registered', async () => {
    const port = Number(new URL(metrics.url).port)
    await create(services, {
      metadata: { name: 'metrics-server', namespace: 'kube-system' },
      // No network of Services is here: the aggregator asks the name itself.
      spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
    })
    await create(apiServices, {
      metadata: { name: 'v1beta1.metrics.k8s.io' },
      spec: {
        service: { name: 'metrics-server', namespace: 'kube-system', port },
        ...{ group: 'metrics.k8s.io', version: 'v1beta1', insecureSkipTLSVerify: true },
        ...{ groupPriorityMinimum: 100, versionPriority: 100 },
      },
    })
    await expect.poll(async () => (await read(NODE_USAGE)).outcome, { timeout: 90_000, interval: 500 }).toBe('complete')
    const asked = metrics.requests.length
    const [nodes, pods] = [await read(NODE_USAGE), await read(POD_USAGE)]
    if (nodes.outcome !== 'complete' || pods.outcome !== 'complete')
      throw new Error(`${nodes.outcome}, ${pods.outcome}`)
    expect(
      [...nodes.rows.rows()].map(({ name, values }) => [name, values.cpuText, values.cpuUsed, values.memoryUsed]),
    ).toEqual([['n1', '250m', 0.25, 2 ** 30]])
    expect(
      [...pods.rows.rows()].map(({ namespace, name, values }) => [
        namespace,
        name,
        values.cpuMillicores,
        values.memoryUsed,
      ]),
    ).toEqual([['default', 'web', 101, 3 * 1024]])
    const lists = metrics.requests.slice(asked).filter((request) => /(nodes|pods)(\?|$)/.test(request))
    expect(lists.map((request) => request.replace(/\?.*/, ''))).toEqual([`GET ${METRICS}/nodes`, `GET ${METRICS}/pods`])
  })

  it('is forbidden to whom the member grants nothing of it, and read by the role that is generated for it', async () => {
    const base = [{ apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list'] }]
    const usage = { apiGroups: ['metrics.k8s.io'], resources: ['nodes', 'pods'], verbs: ['get', 'list'] }
    const [without, granted] = [await tokenOf('without', base), await tokenOf('granted', [...base, usage])]
    // Rights take a moment to be known everywhere.
    await expect.poll(async () => (await read(POD_USAGE, client(granted))).outcome, { interval: 200 }).toBe('complete')
    expect(await read(POD_USAGE, client(without))).toMatchObject({ outcome: 'forbidden' })
    expect(await read(NODE_USAGE, client(without))).toMatchObject({ outcome: 'forbidden' })
  })

  it('is unreachable while the metrics server fails, and says nothing bad of the cluster', async () => {
    isWell = false
    const kube = client()
    expect(await read(NODE_USAGE, kube)).toMatchObject({ outcome: 'unreachable' })
    await kube.ping()
    isWell = true
  })
})
