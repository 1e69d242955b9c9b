/** A member cluster with tenants, for clients of Cluster Monitor: two nodes, one of them not ready and not measured, and pods of several owners. */
import { request } from 'node:https'
import type { ClusterAccess } from '#kube'
import { eventually } from './process.ts'

/** Whose namespaces are labelled with his exact id; another's has none. */
export const tenant = { userId: 'aB3dE6', namespaces: ['compute-ab3de6-00000001', 'compute-ab3de6-00000002'] }

const node = (name: string, ready: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: {
    capacity: { cpu: '3920m', memory: '32929636Ki', pods: '110' },
    conditions: [
      { type: 'MemoryPressure', status: 'False' },
      { type: 'Ready', status: ready },
    ],
  },
})

/** Writes nodes, namespaces, pods, and what a metrics server would say of them: as custom resources, which an API serves alike. */
export async function fillWithTenants({ server, ca, credentials }: ClusterAccess): Promise<void> {
  const token = credentials.kind === 'token' ? credentials.token : ''
  const post = (path: string, body: object): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const asked = request(`${server}${path}`, { method: 'POST', ca, headers }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
      })
      asked.on('error', reject).end(JSON.stringify(body))
    })
  const made = (path: string, body: object) =>
    eventually(
      () => post(path, body),
      (status) => status === 201 || status === 409,
      60_000,
    )
  for (const [plural, kind, scope] of [
    ['nodes', 'NodeMetrics', 'Cluster'],
    ['pods', 'PodMetrics', 'Namespaced'],
  ])
    await made('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: {
        name: `${plural}.metrics.k8s.io`,
        annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
      },
      spec: {
        ...{ group: 'metrics.k8s.io', scope, names: { plural, kind } },
        versions: [
          {
            ...{ name: 'v1beta1', served: true, storage: true },
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    })
  await made('/api/v1/nodes', node('n1', 'True'))
  await made('/api/v1/nodes', node('n2', 'Unknown'))
  const measured = '/apis/metrics.k8s.io/v1beta1'
  await made(`${measured}/nodes`, {
    apiVersion: 'metrics.k8s.io/v1beta1',
    kind: 'NodeMetrics',
    metadata: { name: 'n1' },
    usage: { cpu: '523456789n', memory: '8232409Ki' },
  })
  const pods: readonly (readonly [
    namespace: string,
    name: string,
    node: string,
    labels?: Readonly<Record<string, string>>,
  ])[] = [
    ['core', 'api', 'n1'],
    ['kube-system', 'dns', 'n1'],
    ['compute-ab3de6-00000001', 'container', 'n1', { 'user-id': tenant.userId }],
    ['compute-ab3de6-00000002', 'container', 'n2', { 'user-id': tenant.userId }],
    ['compute-other1-00000003', 'container', 'n1'],
  ]
  for (const [namespace, name, nodeName, labels = {}] of pods) {
    await made('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } })
    await made(`/api/v1/namespaces/${namespace}/pods`, {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
      spec: { nodeName, containers: [{ name: 'one', image: 'example/one' }] },
    })
    await made(`${measured}/namespaces/${namespace}/pods`, {
      ...{ apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetrics', metadata: { name, namespace } },
      containers: [
        { name: 'one', usage: { cpu: '1n', memory: '10Mi' } },
        { name: 'two', usage: { cpu: '250m', memory: '1.5Gi' } },
      ],
    })
  }
}
