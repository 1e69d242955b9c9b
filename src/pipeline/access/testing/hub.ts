import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { expect, vi } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { type MonitorAccessPolicySpec, type MonitorAccessPolicyStatus, monitorAccessPolicy } from '#kinds'
import {
  type ClusterAccess,
  createKubeClient,
  customResourceDefinitions,
  type KubeClient,
  type KubeObject,
  namespaces,
  whole,
} from '#kube'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { accessPolicyResource } from '../policy-resource.ts'

export const NAMESPACE = 'clusterpulse'

/** An API server with the kind of access policies and the hub's namespace. */
export interface TestHub extends AsyncDisposable {
  readonly kube: KubeClient
  readonly access: ClusterAccess
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
  await server.objects.put(monitorAccessPolicy.crd() as unknown as ApiObject)
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
    access,
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
  await kube.create(customResourceDefinitions, monitorAccessPolicy.crd() as unknown as KubeObject)
  for (const name of [NAMESPACE, 'elsewhere']) await kube.create(whole(namespaces), { metadata: { name } })
  await vi.waitFor(async () => expect(await kube.listAll(accessPolicyResource)).toEqual([]), {
    timeout: 20_000,
    interval: 50,
  })
  return {
    kube,
    access: server.access,
    async [Symbol.asyncDispose]() {
      await kube[Symbol.asyncDispose]()
      await server.stop()
    },
  }
}

export const allowDevelopers: MonitorAccessPolicySpec = {
  identity: { subjects: { groups: ['developers'] }, priority: 100 },
  access: { effect: 'Allow', enabled: true },
  scope: {
    clusters: { default: 'none', rules: [{ selector: { matchNames: ['dev-*'] }, permissions: { view: true } }] },
  },
}

/** The example of a spec, with some parts as given. */
export const aSpec = (over: Partial<MonitorAccessPolicySpec> = {}): MonitorAccessPolicySpec => ({
  ...allowDevelopers,
  ...over,
})

/** A spec that no schema refuses and no compilation accepts. */
export const aFaultySpec = (effect: 'Allow' | 'Deny' = 'Allow'): MonitorAccessPolicySpec =>
  aSpec({
    access: { effect, enabled: true },
    scope: { clusters: { default: 'none', rules: [{ selector: { matchPattern: '(unclosed' } }] } },
  })

/** Creates the policy, or changes its spec. */
export async function declare(
  { kube }: TestHub,
  name: string,
  spec: MonitorAccessPolicySpec = allowDevelopers,
  namespace = NAMESPACE,
): Promise<KubeObject> {
  const key = { name, namespace }
  for (;;) {
    const known = await kube.get(accessPolicyResource, key)
    if (!known) {
      const { apiVersion, kind } = monitorAccessPolicy
      return kube.create(accessPolicyResource, { apiVersion, kind, metadata: key, spec })
    }
    try {
      return await kube.replace(accessPolicyResource, { ...known, spec })
    } catch (error) {
      // The status was written meanwhile.
      if ((error as { reason?: string }).reason !== 'conflict') throw error
    }
  }
}

export const undeclare = ({ kube }: TestHub, name: string) =>
  kube.delete(accessPolicyResource, { name, namespace: NAMESPACE })

export async function statusOf({ kube }: TestHub, name: string): Promise<MonitorAccessPolicyStatus> {
  const object = await kube.get(accessPolicyResource, { name, namespace: NAMESPACE })
  return (object?.status ?? {}) as MonitorAccessPolicyStatus // served under our schema
}

/** The columns of `kubectl get`, without the age. */
export async function tableOf({ access }: TestHub): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { credentials, ca } = access
  const { group, version, plural } = accessPolicyResource
  const url = `${access.server}/apis/${group}/${version}/namespaces/${NAMESPACE}/${plural}`
  const asking = request(url, {
    ...(ca !== undefined && { ca }),
    ...(credentials.kind === 'certificate' && { cert: credentials.cert, key: credentials.key }),
    headers: {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      ...(credentials.kind === 'token' && { authorization: `Bearer ${credentials.token}` }),
    },
  }).end()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  const table = JSON.parse(await text(answer)) as {
    columnDefinitions: { name: string; priority: number }[]
    rows: { cells: unknown[] }[]
  }
  const shown = table.columnDefinitions.flatMap(({ name, priority }, i) =>
    priority === 0 && name !== 'Age' ? [{ name, i }] : [],
  )
  return table.rows.map(({ cells }) => Object.fromEntries(shown.map(({ name, i }) => [name, cells[i]])))
}

/** Waits until it holds. */
export const until = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 20_000, interval: 20 })
