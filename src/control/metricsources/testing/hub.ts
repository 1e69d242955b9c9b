import { randomUUID } from 'node:crypto'
import { expect, vi } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { type MetricSourceSpec, type MetricSourceStatus, metricSource } from '#kinds'
import { createKubeClient, customResourceDefinitions, type KubeClient, type KubeObject, namespaces, whole } from '#kube'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { metricSourceResource } from '../source-resource.ts'

export const NAMESPACE = 'clusterpulse'

/** An API server with the kind MetricSource and the hub's namespace. */
export interface TestHub extends AsyncDisposable {
  readonly kube: KubeClient
}

/** The same promises on both: title, how to open, and whether it is here. */
export const hubs: readonly {
  readonly title: string
  readonly skip: boolean
  readonly open: () => Promise<TestHub>
}[] = [
  { title: 'the embedded API', skip: false, open: anEmbeddedHub },
  {
    title: `a real kube-apiserver${noRealApiServer() ? ` (skipped: ${noRealApiServer()})` : ''}`,
    skip: noRealApiServer() !== undefined && process.env.CI_REQUIRE_ALL !== '1',
    open: aRealHub,
  },
]

export async function anEmbeddedHub(): Promise<TestHub> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  await server.objects.put(metricSource.crd() as unknown as ApiObject)
  for (const name of [NAMESPACE, 'elsewhere'])
    await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const token = randomUUID()
  const listener = await listenApi({
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  const credentials = { kind: 'token' as const, token }
  const access = { server: listener.url, ca: listener.caPem, verifyTls: true, credentials }
  const kube = createKubeClient(access, { qps: 5_000, burst: 10_000 })
  return {
    kube,
    async [Symbol.asyncDispose]() {
      await kube[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

async function aRealHub(): Promise<TestHub> {
  const server = await startRealApiServer()
  if (!server) throw new Error('no real kube-apiserver')
  const kube = createKubeClient(server.access)
  await kube.create(customResourceDefinitions, metricSource.crd() as unknown as KubeObject)
  for (const name of [NAMESPACE, 'elsewhere']) await kube.create(whole(namespaces), { metadata: { name } })
  await vi.waitFor(async () => expect(await kube.listAll(metricSourceResource)).toEqual([]), {
    timeout: 20_000,
    interval: 50,
  })
  return {
    kube,
    async [Symbol.asyncDispose]() {
      await kube[Symbol.asyncDispose]()
      await server.stop()
    },
  }
}

/** A source over disks with some parts as given. */
export const aSpec = (over: Partial<MetricSourceSpec> = {}): MetricSourceSpec => ({
  source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  fields: [
    { name: 'phase', path: '.status.phase' },
    { name: 'capacity', path: '.status.capacity.storage', type: 'bytes' },
  ],
  computed: [{ name: 'capacityGiB', expression: 'round(capacity / 1073741824, 2)' }],
  aggregations: [{ name: 'total', function: 'sum', field: 'capacity' }],
  rbac: { resourceTypeName: 'pvc' },
  ...over,
})

/** A spec that no schema refuses and no compilation accepts. */
export const aFaultySpec = (): MetricSourceSpec =>
  aSpec({ fields: [...aSpec().fields, { name: 'gib', path: '.status.capacity[' }] })

/** Creates the source, or changes its spec. */
export async function declare(
  { kube }: TestHub,
  name: string,
  spec: MetricSourceSpec = aSpec(),
  namespace = NAMESPACE,
): Promise<KubeObject> {
  const key = { name, namespace }
  for (;;) {
    const known = await kube.get(metricSourceResource, key)
    if (!known) {
      const { apiVersion, kind } = metricSource
      return kube.create(metricSourceResource, { apiVersion, kind, metadata: key, spec })
    }
    try {
      return await kube.replace(metricSourceResource, { ...known, spec })
    } catch (error) {
      // The status was written meanwhile.
      if ((error as { reason?: string }).reason !== 'conflict') throw error
    }
  }
}

export const undeclare = ({ kube }: TestHub, name: string, namespace = NAMESPACE) =>
  kube.delete(metricSourceResource, { name, namespace })

export async function statusOf({ kube }: TestHub, name: string): Promise<MetricSourceStatus> {
  const object = await kube.get(metricSourceResource, { name, namespace: NAMESPACE })
  return (object?.status ?? {}) as MetricSourceStatus // served under our schema
}

export const conditionOf = ({ conditions = [] }: MetricSourceStatus, type: string) =>
  conditions.find((one) => one.type === type)

/** Waits until it holds. */
export const until = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 20_000, interval: 20 })
