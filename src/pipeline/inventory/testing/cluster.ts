import { randomUUID } from 'node:crypto'
import { vi } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import {
  type Kind,
  kollectClusterInventory,
  kollectClusterScope,
  kollectClusterTarget,
  kollectConnectionTest,
  kollectDatabaseSink,
  kollectEventSink,
  kollectInventory,
  kollectProfile,
  kollectScope,
  kollectSnapshotSink,
  kollectTarget,
} from '#kinds'
import { createKubeClient, customResourceDefinitions, type KubeClient, type KubeObject, namespaces, whole } from '#kube'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'

/** A cluster with the kinds of inventory, and the namespaces team-a and kollect-system. */
export interface TestCluster extends AsyncDisposable {
  readonly kube: KubeClient
}

/** The same promises on both. */
export const clusters: readonly {
  readonly title: string
  readonly skip: boolean
  readonly open: () => Promise<TestCluster>
}[] = [
  { title: 'the embedded API', skip: false, open: anEmbeddedCluster },
  {
    title: `a real kube-apiserver${noRealApiServer() ? ` (skipped: ${noRealApiServer()})` : ''}`,
    skip: noRealApiServer() !== undefined && process.env.CI_REQUIRE_ALL !== '1',
    open: aRealCluster,
  },
]

const KINDS: readonly Kind<unknown, unknown>[] = [
  kollectProfile,
  kollectTarget,
  kollectClusterTarget,
  kollectInventory,
  kollectClusterInventory,
  kollectDatabaseSink,
  kollectSnapshotSink,
  kollectEventSink,
  kollectScope,
  kollectClusterScope,
  kollectConnectionTest,
]
const NAMESPACES = [
  { name: 'team-a', labels: { team: 'a' } },
  { name: 'team-b', labels: { team: 'b' } },
  { name: 'kollect-system' },
]

async function anEmbeddedCluster(): Promise<TestCluster> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'west' })
  for (const kind of KINDS) await server.objects.put(kind.crd() as unknown as ApiObject)
  for (const metadata of NAMESPACES) await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata })
  const token = randomUUID()
  const listener = await listenApi({
    tokens: [{ token, user: 'agent', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  const access = {
    server: listener.url,
    ca: listener.caPem,
    verifyTls: true,
    credentials: { kind: 'token' as const, token },
  }
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

async function aRealCluster(): Promise<TestCluster> {
  const server = await startRealApiServer()
  if (!server) throw new Error('no real kube-apiserver')
  const kube = createKubeClient(server.access, { qps: 5_000, burst: 10_000 })
  for (const kind of KINDS) await kube.create(customResourceDefinitions, kind.crd() as unknown as KubeObject)
  for (const metadata of NAMESPACES) await kube.create(whole(namespaces), { metadata })
  for (const { group, version, plural } of KINDS)
    await vi.waitFor(() => kube.request('GET', `/apis/${group}/${version}/${plural}`), {
      timeout: 60_000,
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
