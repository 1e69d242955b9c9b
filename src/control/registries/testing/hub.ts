import { type Condition, Manager } from '#controller'
import { type RegistryConnectionSpec, type RegistryConnectionStatus, registryConnection } from '#kinds'
import { type KubeClient, type KubeObject, secrets } from '#kube'
import { MemoryRegistries, type RegistryStore } from '#registry'
import { type Logger, silentLogger } from '#runtime'
import { type HubApi, hubApis, until } from '../../../../test/hub-apis.ts'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { registryReconcilers } from '../controllers.ts'
import { registryResource } from '../registry-resource.ts'

export const NAMESPACE = 'clusterpulse'

export type TestApi = HubApi
export const { both: apis, anEmbedded: anEmbeddedApi } = hubApis({
  kinds: [registryConnection],
  namespaces: [NAMESPACE, 'elsewhere'],
})
export { until }

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
