import type { ApiObject } from '#apiserver'
import type { WorkloadFacts } from '../world/facts.ts'
import { condition, fieldsOf, managedBy, timestamp } from './meta.ts'

/** Pods of a workload as its status counts them. */
export interface ReplicaCounts {
  readonly replicas: number
  readonly updated: number
  readonly ready: number
}

export function deploymentObject(workload: WorkloadFacts, counts: ReplicaCounts): ApiObject {
  const labels = { 'app.kubernetes.io/name': workload.template.app, 'app.kubernetes.io/instance': workload.name }
  const available = counts.ready >= workload.replicas * 0.75
  const complete = counts.updated >= workload.replicas && counts.ready >= workload.replicas
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: workload.name,
      namespace: workload.namespace,
      uid: workload.uid,
      generation: workload.generation,
      creationTimestamp: timestamp(workload.createdAt),
      labels: { ...labels, 'app.kubernetes.io/managed-by': 'Helm' },
      annotations: { 'deployment.kubernetes.io/revision': String(workload.revision) },
      managedFields: [
        managedBy('helm', 'apps/v1', SPEC_FIELDS, workload.createdAt),
        managedBy('kube-controller-manager', 'apps/v1', STATUS_FIELDS, workload.changedAt, 'status'),
      ],
    },
    spec: {
      replicas: workload.replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      template: {
        metadata: { labels },
        spec: {
          containers: workload.template.containers,
          volumes: workload.template.volumes,
          serviceAccountName: workload.template.app,
        },
      },
    },
    status: {
      observedGeneration: workload.generation,
      replicas: counts.replicas,
      updatedReplicas: counts.updated,
      readyReplicas: counts.ready,
      availableReplicas: counts.ready,
      ...(counts.ready < workload.replicas ? { unavailableReplicas: workload.replicas - counts.ready } : {}),
      conditions: [
        condition('Available', available, workload.changedAt, {
          reason: available ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
          message: `Deployment ${available ? 'has' : 'does not have'} minimum availability.`,
        }),
        condition('Progressing', true, workload.changedAt, {
          reason: complete ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
          message: complete ? 'ReplicaSet has successfully progressed.' : 'ReplicaSet is progressing.',
        }),
      ],
    },
  }
}

const SPEC_FIELDS = fieldsOf(
  ['replicas', 'selector', 'strategy>type', 'template>spec>containers'].map((f) => `spec>${f}`),
)
const STATUS_FIELDS = fieldsOf(
  ['availableReplicas', 'conditions', 'observedGeneration', 'readyReplicas', 'replicas'].map((f) => `status>${f}`),
)
