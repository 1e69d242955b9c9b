import {
  accessForContext,
  createKubeClient,
  type KubeClient,
  type KubeObject,
  loadKubeconfig,
  type Resource,
} from '#kube'

type Known = { readonly name: string; readonly uid: string | undefined; readonly spec: unknown }

/** What a hub must serve as it was, or not at all. */
export interface Access {
  readonly policies: readonly Known[]
  readonly connections: readonly Known[]
}

const NAMESPACE = 'clusterpulse'
const group = { group: 'clusterpulse.io', version: 'v1alpha1', namespaced: true }
const policies: Resource = { ...group, plural: 'monitoraccesspolicies', kind: 'MonitorAccessPolicy' }
const clusterConnections: Resource = { ...group, plural: 'clusterconnections', kind: 'ClusterConnection' }

async function withHub<T>(kubeconfig: string, use: (kube: KubeClient) => Promise<T>): Promise<T> {
  await using kube = createKubeClient(await accessForContext(await loadKubeconfig([kubeconfig])))
  return await use(kube)
}

const list = (resource: Resource) => (kubeconfig: string) =>
  withHub(kubeconfig, async (kube): Promise<readonly Known[]> => {
    const items = await kube.listAll(resource, { namespace: NAMESPACE })
    return items.map(({ metadata: { name, uid }, ...rest }) => ({ name, uid, spec: (rest as { spec?: unknown }).spec }))
  })

export const connections = { list: list(clusterConnections) }
export const accessPolicies = {
  list: list(policies),
  add: (kubeconfig: string, name: string) =>
    withHub(kubeconfig, (kube) =>
      kube.create(policies, {
        apiVersion: 'clusterpulse.io/v1alpha1',
        kind: 'MonitorAccessPolicy',
        metadata: { name, namespace: NAMESPACE },
        spec: {
          identity: { subjects: { groups: [name] }, priority: 100 },
          access: { effect: 'Allow' },
          scope: { clusters: { rules: [{ selector: { matchNames: ['*'] }, permissions: { view: true } }] } },
        },
      } as KubeObject),
    ),
}
