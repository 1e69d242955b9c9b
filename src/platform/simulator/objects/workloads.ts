import type { ApiObject } from '#apiserver'
import type { ReplicaSetFacts, WorkloadFacts } from '../facts.ts'
import { hexOf, uuidFrom } from '../random.ts'
import type { ClusterScenario } from '../types.ts'
import { condition, fieldsOf, managedBy, timestamp } from './meta.ts'
import type { PodTemplate } from './pod-template.ts'
import { CLAIM_NAME, claimSpec } from './storage.ts'

/** Pods of a workload as its status counts them. */
export interface ReplicaCounts {
  readonly replicas: number
  readonly updated: number
  readonly ready: number
}

/** Names a revision in the names of its pods. */
export const templateHash = ({ uid }: WorkloadFacts, revision: number): string => hexOf(`${uid}/${revision}`, 10)

/** The ReplicaSet of a revision. */
export function replicaSetOf(workload: WorkloadFacts, revision: number): { name: string; uid: string } {
  const name = `${workload.name}-${templateHash(workload, revision)}`
  return { name, uid: uuidFrom(`${workload.uid}/${name}`) }
}

export const ownerReference = (apiVersion: string, owner: { kind: string; name: string; uid: string }) => ({
  apiVersion,
  kind: owner.kind,
  name: owner.name,
  uid: owner.uid,
  controller: true,
  blockOwnerDeletion: true,
})

export const labelsOf = ({ template, name }: WorkloadFacts): Record<string, string> => ({
  'app.kubernetes.io/name': template.app,
  'app.kubernetes.io/instance': name,
})

const metadataOf = (workload: WorkloadFacts) => ({
  name: workload.name,
  namespace: workload.namespace,
  uid: workload.uid,
  generation: workload.generation,
  creationTimestamp: timestamp(workload.createdAt),
  labels: { ...labelsOf(workload), 'app.kubernetes.io/managed-by': 'Helm' },
  managedFields: [
    managedBy('helm', 'apps/v1', SPEC_FIELDS, workload.createdAt),
    managedBy('kube-controller-manager', 'apps/v1', STATUS_FIELDS, workload.changedAt, 'status'),
  ],
})

/** The template of the pods as people wrote it. */
export const podTemplateOf = (template: PodTemplate, labels: Record<string, string>, spec: object = {}) => ({
  metadata: { labels },
  spec: {
    ...TEMPLATE_SPEC,
    containers: template.containers,
    volumes: template.volumes,
    serviceAccountName: template.app,
    serviceAccount: template.app,
    ...spec,
  },
})

const TEMPLATE_SPEC = {
  dnsPolicy: 'ClusterFirst',
  restartPolicy: 'Always',
  schedulerName: 'default-scheduler',
  securityContext: {},
  terminationGracePeriodSeconds: 30,
}

export function deploymentObject(workload: WorkloadFacts, counts: ReplicaCounts): ApiObject {
  const labels = labelsOf(workload)
  const available = counts.ready >= workload.replicas * 0.75
  const complete = counts.updated >= workload.replicas && counts.ready >= workload.replicas
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      ...metadataOf(workload),
      annotations: { 'deployment.kubernetes.io/revision': String(workload.revision) },
    },
    spec: {
      replicas: workload.replicas,
      selector: { matchLabels: labels },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      template: podTemplateOf(workload.template, labels),
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

/** One revision of a Deployment. It wants as many pods as it has, and the newest what the others leave. */
export function replicaSetObject(set: ReplicaSetFacts, counts: ReplicaCounts): ApiObject {
  const { workload, revision, template } = set
  const { name, uid } = replicaSetOf(workload, revision)
  const labels = { ...labelsOf(workload), 'pod-template-hash': templateHash(workload, revision) }
  const wanted = revision === workload.revision ? Math.max(counts.replicas, workload.replicas) : counts.replicas
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name,
      namespace: workload.namespace,
      uid,
      generation: 1,
      creationTimestamp: timestamp(set.createdAt),
      labels,
      annotations: {
        'deployment.kubernetes.io/desired-replicas': String(workload.replicas),
        'deployment.kubernetes.io/revision': String(revision),
      },
      ownerReferences: [ownerReference('apps/v1', { kind: 'Deployment', name: workload.name, uid: workload.uid })],
    },
    spec: { replicas: wanted, selector: { matchLabels: labels }, template: podTemplateOf(template, labels) },
    status: {
      observedGeneration: 1,
      replicas: counts.replicas,
      ...(counts.replicas > 0 ? { fullyLabeledReplicas: counts.replicas } : {}),
      ...(counts.ready > 0 ? { readyReplicas: counts.ready, availableReplicas: counts.ready } : {}),
    },
  }
}

export function daemonSetObject(workload: WorkloadFacts, counts: ReplicaCounts): ApiObject {
  const labels = labelsOf(workload)
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: {
      ...metadataOf(workload),
      annotations: { 'deprecated.daemonset.template.generation': String(workload.revision) },
    },
    spec: {
      selector: { matchLabels: labels },
      template: podTemplateOf(workload.template, labels, { tolerations: workload.template.tolerations }),
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      revisionHistoryLimit: 10,
    },
    status: {
      observedGeneration: workload.generation,
      currentNumberScheduled: counts.replicas,
      desiredNumberScheduled: counts.replicas,
      numberMisscheduled: 0,
      numberReady: counts.ready,
      numberAvailable: counts.ready,
      updatedNumberScheduled: counts.updated,
      ...(counts.ready < counts.replicas ? { numberUnavailable: counts.replicas - counts.ready } : {}),
    },
  }
}

export function statefulSetObject(
  workload: WorkloadFacts,
  counts: ReplicaCounts,
  scenario: ClusterScenario,
): ApiObject {
  const labels = labelsOf(workload)
  const revision = `${workload.name}-${templateHash(workload, workload.revision)}`
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: metadataOf(workload),
    spec: {
      replicas: workload.replicas,
      selector: { matchLabels: labels },
      serviceName: workload.name,
      template: podTemplateOf(workload.template, labels),
      ...(workload.hasClaims
        ? {
            volumeClaimTemplates: [
              {
                apiVersion: 'v1',
                kind: 'PersistentVolumeClaim',
                metadata: { name: CLAIM_NAME },
                spec: claimSpec(scenario, workload.name),
                status: { phase: 'Pending' },
              },
            ],
          }
        : {}),
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    },
    status: {
      observedGeneration: workload.generation,
      replicas: counts.replicas,
      readyReplicas: counts.ready,
      availableReplicas: counts.ready,
      currentReplicas: counts.updated,
      updatedReplicas: counts.updated,
      currentRevision: revision,
      updateRevision: revision,
      collisionCount: 0,
    },
  }
}

const SPEC_FIELDS = fieldsOf(
  ['replicas', 'selector', 'strategy>type', 'template>spec>containers'].map((f) => `spec>${f}`),
)
const STATUS_FIELDS = fieldsOf(['conditions', 'observedGeneration', 'replicas'].map((f) => `status>${f}`))
