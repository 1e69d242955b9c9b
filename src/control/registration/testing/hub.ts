import { type Condition, Manager } from '#controller'
import {
  clusterConnection,
  type Kind,
  managedCluster,
  managedClusterAddOn,
  managedClusterSet,
  managedClusterSetBinding,
  manifestWork,
  ocmAdmission,
} from '#kinds'
import { isKubeError, type KubeClient, type Resource } from '#kube'
import type { Clock } from '#model'
import { silentLogger } from '#runtime'
import { type HubApi, hubApis, until } from '../../../../test/hub-apis.ts'
import { type RegistrationOptions, registrationReconcilers } from '../controllers.ts'
import { type ManagedCluster, managedClusters } from '../objects.ts'
import { SomeFleet } from './fleet.ts'

export const HUB_NAMESPACE = 'clusterpulse'
const kinds: readonly Kind<unknown, unknown>[] = [
  ...[clusterConnection, managedCluster, managedClusterSet, managedClusterSetBinding],
  ...[managedClusterAddOn, manifestWork],
]

export type TestApi = HubApi
export const { both: apis, anEmbedded: anEmbeddedApi } = hubApis({
  kinds,
  embedded: { defaultRoles: true, admission: ocmAdmission },
})
export { until }

/** A hub that looks after members. */
export interface TestHub extends AsyncDisposable {
  readonly kube: KubeClient
  readonly fleet: SomeFleet
  stop(): Promise<void>
}

export async function aHub(
  { kube }: Pick<TestApi, 'kube'>,
  over: Partial<RegistrationOptions> & { readonly clock?: Clock; readonly fleet?: SomeFleet } = {},
): Promise<TestHub> {
  const { fleet = new SomeFleet(), ...options } = over
  const controllers = registrationReconcilers({
    hub: kube,
    namespace: HUB_NAMESPACE,
    state: fleet,
    events: fleet.events,
    logger: silentLogger,
    ...(options.clock && { steady: options.clock }),
    ...options,
  })
  const manager = new Manager({ controllers, logger: silentLogger })
  await manager.start()
  return { kube, fleet, stop: () => manager.stop(), [Symbol.asyncDispose]: () => manager.stop() }
}

/** A cluster asks, as its agent writes it; or is accepted from the start. */
export const aMember = (
  { kube }: Pick<TestApi, 'kube'>,
  name: string,
  {
    accepted = true,
    transport,
    ...spec
  }: { accepted?: boolean; transport?: string; leaseDurationSeconds?: number } = {},
): Promise<ManagedCluster> =>
  kube.create(managedClusters, {
    apiVersion: 'cluster.open-cluster-management.io/v1',
    kind: 'ManagedCluster',
    metadata: { name, ...(transport && { annotations: { 'clusterpulse.io/transport': transport } }) },
    spec: { hubAcceptsClient: accepted, ...spec },
  })

export const change = ({ kube }: Pick<TestApi, 'kube'>, name: string, patch: object): Promise<ManagedCluster> =>
  kube.patch(managedClusters, { name }, patch, { kind: 'merge' })

export async function memberOf({ kube }: Pick<TestApi, 'kube'>, name: string): Promise<ManagedCluster> {
  const member = await kube.get(managedClusters, { name })
  if (!member) throw new Error(`no ManagedCluster ${name}`)
  return member
}

/** status and reason of a condition of it */
export async function said(api: Pick<TestApi, 'kube'>, name: string, type: string): Promise<string | undefined> {
  const conditions: readonly Condition[] = (await memberOf(api, name)).status?.conditions ?? []
  const one = conditions.find((condition) => condition.type === type)
  return one && `${one.status} ${one.reason}`
}

export async function exists<T>(
  { kube }: Pick<TestApi, 'kube'>,
  resource: Resource<T>,
  name: string,
  namespace?: string,
): Promise<boolean> {
  try {
    return (await kube.get(resource, { name, ...(namespace !== undefined && { namespace }) })) !== undefined
  } catch (error) {
    if (isKubeError(error, 'not_found')) return false
    throw error
  }
}

/** Whether members of the group may, as the API server says. */
export async function may(
  { kube }: Pick<TestApi, 'kube'>,
  group: string,
  resourceAttributes: Readonly<Record<string, string>>,
): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: 'agent', groups: [group, 'system:authenticated'], resourceAttributes },
  }
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
  const answer = await kube.request('POST', path, { body, contentType: 'application/json' })
  return (answer as { status: { allowed: boolean } }).status.allowed
}
