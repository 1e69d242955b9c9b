import type { ApiObject } from '#apiserver'
import type { ClusterOperatorFacts, ClusterVersionFacts } from '../facts.ts'
import { hexOf } from '../random.ts'
import type { ClusterScenario } from '../types.ts'
import { condition, timestamp } from './meta.ts'

/** The operators that make up an OpenShift 4 cluster. */
export const clusterOperatorNames: readonly string[] = [
  'authentication',
  'baremetal',
  'cloud-controller-manager',
  'cloud-credential',
  'cluster-autoscaler',
  'config-operator',
  'console',
  'control-plane-machine-set',
  'csi-snapshot-controller',
  'dns',
  'etcd',
  'image-registry',
  'ingress',
  'insights',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-storage-version-migrator',
  'machine-api',
  'machine-approver',
  'machine-config',
  'marketplace',
  'monitoring',
  'network',
  'node-tuning',
  'openshift-apiserver',
  'openshift-controller-manager',
  'openshift-samples',
  'operator-lifecycle-manager',
  'operator-lifecycle-manager-catalog',
  'operator-lifecycle-manager-packageserver',
  'service-ca',
  'storage',
]

/** How single ClusterOperators go bad: what people read when it happens. */
export const degradations: readonly { readonly name: string; readonly reason: string; readonly message: string }[] = [
  {
    name: 'authentication',
    reason: 'OAuthServerRouteEndpointAccessibleController_SyncError',
    message:
      'OAuthServerRouteEndpointAccessibleControllerDegraded: the route of the sign-in server did not answer: context deadline exceeded',
  },
  {
    name: 'ingress',
    reason: 'IngressDegraded',
    message: 'The "default" ingress controller reports Degraded=True: 1 of 2 replicas of the router are available',
  },
  {
    name: 'monitoring',
    reason: 'UpdatingPrometheusFailed',
    message: 'UpdatingPrometheus: waiting for the Prometheus object to become ready: 1 of 2 pods are not ready',
  },
  {
    name: 'image-registry',
    reason: 'StorageUnavailable',
    message: 'Degraded: the storage bucket of the registry cannot be reached: 503 Slow Down',
  },
  {
    name: 'etcd',
    reason: 'EtcdMembers_UnhealthyMembers',
    message: 'EtcdMembersDegraded: 2 of 3 members are available, one member is unhealthy',
  },
  {
    name: 'machine-config',
    reason: 'RequiredPoolsFailed',
    message: 'Unable to apply configuration: pool worker is not ready, 1 node is reporting degraded status',
  },
]

export const consoleHost = ({ name }: ClusterScenario): string => `console-openshift-console.apps.${name}.example.com`

export function routeObject(scenario: ClusterScenario, createdAt: number): ApiObject {
  const host = consoleHost(scenario)
  return {
    apiVersion: 'route.openshift.io/v1',
    kind: 'Route',
    metadata: {
      name: 'console',
      namespace: 'openshift-console',
      uid: `${hexOf(host, 8)}-0000-4000-a000-${hexOf(`route/${host}`, 12)}`,
      creationTimestamp: timestamp(createdAt),
      labels: { app: 'console' },
    },
    spec: {
      host,
      port: { targetPort: 'https' },
      tls: { insecureEdgeTerminationPolicy: 'Redirect', termination: 'reencrypt' },
      to: { kind: 'Service', name: 'console', weight: 100 },
      wildcardPolicy: 'None',
    },
    status: { ingress: [{ host, routerName: 'default', wildcardPolicy: 'None' }] },
  }
}

export function clusterOperatorObject(operator: ClusterOperatorFacts): ApiObject {
  const { changedAt, reason, message, name } = operator
  const fine = { reason: 'AsExpected', message: 'All is well' }
  const trouble = { reason, message }
  return {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ClusterOperator',
    metadata: {
      name,
      uid: operator.uid,
      generation: 1,
      creationTimestamp: timestamp(operator.createdAt),
      annotations: { 'include.release.openshift.io/self-managed-high-availability': 'true' },
    },
    spec: {},
    status: {
      conditions: [
        condition(
          'Available',
          operator.available,
          operator.available ? operator.createdAt : changedAt,
          operator.available ? fine : trouble,
        ),
        condition('Progressing', operator.progressing, changedAt, operator.progressing ? trouble : fine),
        condition('Degraded', operator.degraded, changedAt, operator.degraded ? trouble : fine),
        condition('Upgradeable', true, operator.createdAt, fine),
      ],
      extension: null,
      relatedObjects: [
        { group: '', resource: 'namespaces', name: `openshift-${name}`, namespace: '' },
        { group: 'apps', resource: 'deployments', name, namespace: `openshift-${name}` },
      ],
      versions: [
        { name: 'operator', version: operator.version },
        { name, version: operator.version },
      ],
    },
  }
}

export const releaseImage = (version: string): string =>
  `quay.io/openshift-release-dev/ocp-release@sha256:${hexOf(version, 64)}`

const release = (version: string, channel: string) => ({
  version,
  image: releaseImage(version),
  channels: [channel],
  url: `https://access.redhat.com/errata/RHSA-2026:${Number.parseInt(hexOf(version, 4), 16) % 10_000}`,
})

export function clusterVersionObject(facts: ClusterVersionFacts): ApiObject {
  const { history, channel, progress, changedAt, createdAt } = facts
  const desired = history[0]?.version ?? ''
  const percent = Math.floor((progress ?? 1) * 100)
  const done = Math.floor((progress ?? 1) * 907)
  return {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ClusterVersion',
    metadata: {
      name: 'version',
      uid: facts.uid,
      generation: history.length + 1,
      creationTimestamp: timestamp(createdAt),
    },
    spec: {
      channel,
      clusterID: facts.clusterId,
      ...(progress === undefined ? {} : { desiredUpdate: { version: desired } }),
    },
    status: {
      availableUpdates: facts.updates.length > 0 ? facts.updates.map((version) => release(version, channel)) : null,
      capabilities: { enabledCapabilities: ['Console', 'Insights', 'Storage', 'marketplace', 'openshift-samples'] },
      conditions: [
        condition('RetrievedUpdates', true, createdAt),
        condition('Upgradeable', true, createdAt),
        condition('Available', true, createdAt, {
          message: `Done applying ${history.find(({ state }) => state === 'Completed')?.version ?? desired}`,
        }),
        condition('Failing', false, createdAt),
        condition('Progressing', progress !== undefined, changedAt, {
          message:
            progress === undefined
              ? `Cluster version is ${desired}`
              : `Working towards ${desired}: ${done} of 907 done (${percent}% complete)`,
        }),
      ],
      desired: release(desired, channel),
      history: history.map(({ version, state, startedAt, completedAt }) => ({
        version,
        state,
        image: releaseImage(version),
        startedTime: timestamp(startedAt),
        completionTime: completedAt === undefined ? null : timestamp(completedAt),
        verified: true,
      })),
      observedGeneration: history.length + 1,
      versionHash: hexOf(desired, 22),
    },
  }
}
