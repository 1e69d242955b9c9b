import { randomUUID } from 'node:crypto'
import { expect, vi } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { type Condition, Manager } from '#controller'
import { type RegistryConnectionSpec, type RegistryConnectionStatus, registryConnection } from '#kinds'
import {
  createKubeClient,
  customResourceDefinitions,
  type KubeClient,
  type KubeObject,
  namespaces,
  secrets,
  whole,
} from '#kube'
import { MemoryRegistries, type RegistryStore } from '#registry'
import { type Logger, silentLogger } from '#runtime'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { registryReconcilers } from '../controllers.ts'
import { registryResource } from '../registry-resource.ts'

export const NAMESPACE = 'clusterpulse'

export interface TestApi extends AsyncDisposable {
  readonly kube: KubeClient
}

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

export async function anEmbeddedApi(): Promise<TestApi> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  await server.objects.put(registryConnection.crd() as unknown as ApiObject)
  for (const name of [NAMESPACE, 'elsewhere'])
    await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
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
  await kube.create(customResourceDefinitions, registryConnection.crd() as unknown as KubeObject)
  for (const name of [NAMESPACE, 'elsewhere']) await kube.create(whole(namespaces), { metadata: { name } })
  await vi.waitFor(async () => expect(await kube.listAll(registryResource)).toEqual([]), {
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

/** A hub that watches registries, with time that stands still until a test moves it. */
export interface TestHub extends AsyncDisposable {
  readonly kube: KubeClient
  readonly store: RegistryStore
  readonly clock: ManualClock
  /** every line of the log, as text */
  readonly lines: readonly string[]
  start(): Promise<void>
  stop(): Promise<void>
}

export async function aHub(api: TestApi, store?: RegistryStore): Promise<TestHub> {
  const clock = new ManualClock(Date.now())
  const used = store ?? (await MemoryRegistries.open({ clock }))
  const lines: string[] = []
  const say = (facts: object, sentence: string) => void lines.push(`${sentence} ${JSON.stringify(facts)}`)
  const logger: Logger = { ...silentLogger, debug: say, info: say, warn: say, error: say, child: () => logger }
  let manager: Manager | undefined
  const hub: TestHub = {
    kube: api.kube,
    store: used,
    clock,
    lines,
    async start() {
      const controllers = registryReconcilers({
        hub: api.kube,
        namespace: NAMESPACE,
        store: used,
        logger,
        clock,
        random: () => 0.5, // in the middle of the jitter: on the interval
      })
      manager = new Manager({ controllers, logger: silentLogger })
      await manager.start()
    },
    async stop() {
      await manager?.stop()
    },
    async [Symbol.asyncDispose]() {
      await manager?.stop()
      await used[Symbol.asyncDispose]()
    },
  }
  return hub
}

const { apiVersion } = { apiVersion: `${registryConnection.group}/${registryConnection.version}` }

export const declare = (
  { kube }: Pick<TestHub, 'kube'>,
  name: string,
  spec: RegistryConnectionSpec,
): Promise<KubeObject> =>
  kube.create(registryResource, {
    apiVersion,
    kind: 'RegistryConnection',
    metadata: { name, namespace: NAMESPACE },
    spec,
  })

export async function change({ kube }: TestHub, name: string, spec: Partial<RegistryConnectionSpec>): Promise<void> {
  await kube.patch(registryResource, { name, namespace: NAMESPACE }, { spec }, { kind: 'merge' })
}

export const undeclare = ({ kube }: Pick<TestHub, 'kube'>, name: string) =>
  kube.delete(registryResource, { name, namespace: NAMESPACE })

export async function putSecret(
  { kube }: Pick<TestHub, 'kube'>,
  name: string,
  values: Readonly<Record<string, string>>,
  namespace = NAMESPACE,
): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  )
  const known = await kube.get(secrets, { name, namespace })
  if (known) await kube.replace(secrets, { ...known, data })
  else await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data })
}

export async function statusOf({ kube }: Pick<TestHub, 'kube'>, name: string): Promise<RegistryConnectionStatus> {
  const object = await kube.get(registryResource, { name, namespace: NAMESPACE })
  return (object?.status ?? {}) as RegistryConnectionStatus // served under our schema
}

export const condition = (status: RegistryConnectionStatus, type: string): Condition | undefined =>
  ((status.conditions ?? []) as readonly Condition[]).find((one) => one.type === type)

/** Waits until it holds. */
export const until = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 20_000, interval: 20 })
