import type { ApiObject, ManagedFieldsEntry } from '#apiserver'
import { isFinished, type PodFacts, phaseOf, type WorkloadFacts } from '../facts.ts'
import { hexOf } from '../random.ts'
import { jobLabels } from './jobs.ts'
import { condition, managedBy, timestamp } from './meta.ts'
import type { PodKin } from './pod-template.ts'
import { CLAIM_NAME } from './storage.ts'
import { labelsOf, ownerReference, replicaSetOf, templateHash } from './workloads.ts'

export function podKin(workload: WorkloadFacts): PodKin {
  const { template, kind, name, uid, revision, changedAt } = workload
  const hash = templateHash(workload, revision)
  const owner =
    kind === 'Deployment' ? { kind: 'ReplicaSet', ...replicaSetOf(workload, revision) } : { kind, name, uid }
  return {
    template,
    generateName: `${owner.name}-`,
    labels: Object.freeze({
      ...labelsOf(workload),
      ...(kind === 'Deployment' ? { 'pod-template-hash': hash } : {}),
      ...(kind === 'StatefulSet' || kind === 'DaemonSet' ? { 'controller-revision-hash': hash } : {}),
    }),
    managedFields: Object.freeze([
      managedBy('kube-controller-manager', 'v1', template.fields.creator, changedAt),
      managedBy('kubelet', 'v1', template.fields.kubelet, changedAt, 'status'),
    ]),
    ownerReferences: kind === 'CronJob' ? undefined : Object.freeze([ownerReference('apps/v1', owner)]),
  }
}

/** A pod as `kubectl get -o json` shows it, some 5 KB. Shares what pods of its kin have in common. */
export function podObject(pod: PodFacts, hostIp: string | undefined): ApiObject {
  const { kin, job } = pod
  const created = timestamp(pod.createdAt)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      generateName: job ? `${job.name}-` : kin.generateName,
      creationTimestamp: created,
      labels: job ? jobLabels(job) : (kin.labels as Record<string, string>),
      annotations: ANNOTATIONS,
      ownerReferences: (job ? [ownerReference('batch/v1', { kind: 'Job', ...job })] : kin.ownerReferences) as unknown[],
      managedFields: kin.managedFields as ManagedFieldsEntry[],
    },
    spec: {
      ...(job ? JOB_SPEC : SPEC),
      containers: kin.template.containers,
      volumes: pod.workload.hasClaims ? [claimVolume(pod), ...kin.template.volumes] : kin.template.volumes,
      tolerations: kin.template.tolerations,
      serviceAccount: kin.template.app,
      serviceAccountName: kin.template.app,
      ...(pod.node === undefined ? {} : { nodeName: pod.node }),
    },
    status: podStatus(pod, hostIp, { created, since: timestamp(pod.stateSince) }),
  }
}

const claimVolume = ({ name }: PodFacts) => ({
  name: CLAIM_NAME,
  persistentVolumeClaim: { claimName: `${CLAIM_NAME}-${name}` },
})

const ANNOTATIONS = Object.freeze({ 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9090' })

const SPEC = {
  dnsPolicy: 'ClusterFirst',
  enableServiceLinks: true,
  preemptionPolicy: 'PreemptLowerPriority',
  priority: 0,
  restartPolicy: 'Always',
  schedulerName: 'default-scheduler',
  securityContext: Object.freeze({ fsGroup: 65532, runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }),
  terminationGracePeriodSeconds: 30,
}
const JOB_SPEC = { ...SPEC, restartPolicy: 'Never' }

/** Its times as text: drawn once, used often. */
interface PodTimes {
  readonly created: string
  readonly since: string
}

function podStatus(pod: PodFacts, hostIp: string | undefined, times: PodTimes): Record<string, unknown> {
  const status = {
    phase: phaseOf(pod),
    ...statusReason(pod),
    conditions: podConditions(pod, times),
    qosClass: 'Burstable',
  }
  if (pod.node === undefined) return status
  const placed = { ...status, hostIP: hostIp, hostIPs: [{ ip: hostIp }], startTime: times.created }
  if (pod.state === 'evicted') return placed
  const address = pod.state === 'starting' ? {} : { podIP: pod.ip, podIPs: [{ ip: pod.ip }] }
  const containerStatuses = pod.kin.template.containerNames.map((name) => containerStatus(pod, name, times))
  return { ...placed, ...address, containerStatuses }
}

function statusReason(pod: PodFacts): Record<string, string> {
  if (pod.state === 'evicted')
    return { reason: 'Evicted', message: 'The node was low on resource: memory. Threshold quantity: 100Mi.' }
  if (pod.state === 'lost')
    return { reason: 'NodeLost', message: `Node ${pod.node} which was running pod ${pod.name} is unresponsive` }
  return {}
}

function podConditions(pod: PodFacts, { created, since }: PodTimes): Record<string, unknown>[] {
  if (pod.state === 'unschedulable') {
    const message = '0 nodes are available: insufficient cpu. preemption: no victims found for the incoming pod.'
    return [condition('PodScheduled', false, created, { lastProbeTime: null, reason: 'Unschedulable', message })]
  }
  const ready = pod.state === 'running'
  const reason = ready ? undefined : isFinished(pod) ? 'PodCompleted' : 'ContainersNotReady'
  return [
    podCondition('PodReadyToStartContainers', pod.state !== 'evicted', created),
    podCondition('Initialized', true, created),
    podCondition('Ready', ready, since, reason),
    podCondition('ContainersReady', ready, since, reason),
    podCondition('PodScheduled', true, created),
  ]
}

/** `condition` for what every pod has five times: a fill of twenty thousand makes a hundred thousand of them. */
function podCondition(type: string, status: boolean, lastTransitionTime: string, reason?: string) {
  const said = { lastProbeTime: null, type, status: status ? 'True' : 'False', lastTransitionTime }
  return reason === undefined ? said : { ...said, reason }
}

function containerStatus(pod: PodFacts, name: string, times: PodTimes): Record<string, unknown> {
  const { template } = pod.kin
  const containerID = containerIdOf(pod, name)
  const started = pod.state !== 'starting' && pod.state !== 'imageMissing'
  return {
    name,
    image: template.image,
    imageID: started ? template.imageId : '',
    ready: pod.state === 'running',
    started: pod.state === 'running',
    restartCount: pod.restarts,
    ...(started ? { containerID } : {}),
    state: containerState(pod, containerID, times),
    lastState: pod.restarts > 0 ? { terminated: lastEnd(pod, containerID, times) } : NOTHING,
  }
}

const NOTHING = {}
const containerIdOf = ({ uid, restarts }: PodFacts, name: string): string =>
  ['containerd://', hexOf(`${uid}/${name}/${restarts}`, 64)].join('')

function containerState(pod: PodFacts, containerID: string, times: PodTimes): Record<string, unknown> {
  const { template } = pod.kin
  switch (pod.state) {
    case 'running':
    case 'lost':
      return { running: { startedAt: times.since } }
    case 'crashing':
      return {
        waiting: {
          reason: 'CrashLoopBackOff',
          message: `back-off 40s restarting failed container=${template.app} pod=${pod.name}_${pod.namespace}(${pod.uid})`,
        },
      }
    case 'imageMissing':
      return { waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "${template.image}"` } }
    case 'succeeded':
      return { terminated: terminated(0, 'Completed', containerID, times) }
    case 'failed':
      return { terminated: terminated(1, 'Error', containerID, times) }
    case 'starting':
    case 'unschedulable':
    case 'evicted':
      return { waiting: { reason: 'ContainerCreating' } }
  }
}

/** Killed by the kernel for its memory, or ended by itself. */
const lastEnd = ({ outOfMemory }: PodFacts, containerID: string, times: PodTimes) =>
  outOfMemory ? terminated(137, 'OOMKilled', containerID, times) : terminated(1, 'Error', containerID, times)

const terminated = (exitCode: number, reason: string, containerID: string, { created, since }: PodTimes) => ({
  exitCode,
  reason,
  containerID,
  startedAt: created,
  finishedAt: since,
})
