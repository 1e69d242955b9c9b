import { randomUUID } from 'node:crypto'
import { expect, vi } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { clusterConnection } from '#kinds'
import { createKubeClient, customResourceDefinitions, type KubeClient, type KubeObject, namespaces, whole } from '#kube'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { connectionResource } from '../connection-resource.ts'

/** An API server with our kinds and the hub's namespace. */
export interface TestApi extends AsyncDisposable {
  readonly kube: KubeClient
}

export const HUB_NAMESPACE = 'clusterpulse'

/** The same promises on both: title, how to open, and whether it is here. */
export const apis: readonly {
  readonly title: string
  readonly skip: boolean
  readonly open: () => Promise<TestApi>
}[] = [
  { title: 'the embedded API', skip: false, open: anEmbeddedApi },
  {
    title: `a real kube-apiserver${noRealApiServer() ? ` (skipped: ${noRealApiServer()})` : ''}`,
    skip: noRealApiServer() !== undefined && process.env.CI_REQUIRE_ALL !== '1',
    open: aRealApi,
  },
]

async function anEmbeddedApi(): Promise<TestApi> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  await server.objects.put(clusterConnection.crd() as unknown as ApiObject)
  await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: HUB_NAMESPACE } })
  const token = randomUUID()
  const listener = await listenApi({
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  const credentials = { kind: 'token' as const, token }
  const kube = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  return {
    kube,
    async [Symbol.asyncDispose]() {
      await kube[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

async function aRealApi(): Promise<TestApi> {
  const server = await startRealApiServer()
  if (!server) throw new Error('no real kube-apiserver')
  const kube = createKubeClient(server.access)
  await kube.create(customResourceDefinitions, clusterConnection.crd() as unknown as KubeObject)
  await kube.create(whole(namespaces), { metadata: { name: HUB_NAMESPACE } })
  await vi.waitFor(async () => expect(await kube.listAll(connectionResource)).toEqual([]), {
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

/** A connection in push mode that the hub cannot reach, unless `spec` says otherwise. */
export function declare(kube: KubeClient, name: string, spec: object = {}): Promise<KubeObject> {
  return kube.create(connectionResource, {
    apiVersion: clusterConnection.apiVersion,
    kind: clusterConnection.kind,
    metadata: { name, namespace: HUB_NAMESPACE },
    spec: { collectionMode: 'push', ...spec },
  })
}
