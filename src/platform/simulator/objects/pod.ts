import type { ApiObject } from '#apiserver'
import { hexOf } from '../random.ts'
import { isFinished, type PodFacts, phaseOf } from '../world/facts.ts'
import { condition, managedBy, timestamp } from './meta.ts'

/** A pod as `kubectl get -o json` shows it, some 4.5 KB. Shares what pods of one template have in common. */
export function podObject(pod: PodFacts, hostIp: string | undefined): ApiObject {
  const { template, workload } = pod
  const owner = ownerOf(pod)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      generateName: `${owner.name}-`,
      creationTimestamp: timestamp(pod.createdAt),
      labels: {
        'app.kubernetes.io/name': template.app,
        'app.kubernetes.io/instance': workload.name,
        ...(workload.kind === 'Deployment' ? { 'pod-template-hash': templateHash(pod) } : {}),
      },
      annotations: { 'kubernetes.io/psp': 'restricted', 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9090' },
      ownerReferences: [
        {
          apiVersion: owner.apiVersion,
          kind: owner.kind,
          name: owner.name,
          uid: owner.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        managedBy('kube-controller-manager', 'v1', template.fields.creator, pod.createdAt),
        managedBy('kubelet', 'v1', template.fields.kubelet, pod.stateSince, 'status'),
      ],
    },
    spec: {
      containers: template.containers,
      volumes: template.volumes,
      tolerations: template.tolerations,
      ...(pod.node === undefined ? {} : { nodeName: pod.node }),
      dnsPolicy: 'ClusterFirst',
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
      priority: 0,
      restartPolicy: workload.kind === 'CronJob' ? 'Never' : 'Always',
      schedulerName: 'default-scheduler',
      securityContext: POD_SECURITY,
      serviceAccount: template.app,
      serviceAccountName: template.app,
      terminationGracePeriodSeconds: 30,
    },
    status: podStatus(pod, hostIp),
  }
}

/** Names the revision in the names of its pods. */
export const templateHash = (pod: Pick<PodFacts, 'revision'> & { readonly workload: PodFacts['workload'] }): string =>
  hexOf(`${pod.workload.uid}/${pod.revision}`, 10)

function ownerOf(pod: PodFacts): { apiVersion: string; kind: string; name: string; uid: string } {
  const { kind, name, uid } = pod.workload
  if (kind === 'Deployment') {
    const set = `${name}-${templateHash(pod)}`
    return { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: set, uid: uidOf(`${uid}/${set}`) }
  }
  if (kind === 'CronJob') {
    const job = pod.name.slice(0, pod.name.lastIndexOf('-'))
    return { apiVersion: 'batch/v1', kind: 'Job', name: job, uid: uidOf(`${uid}/${job}`) }
  }
  return { apiVersion: 'apps/v1', kind, name, uid }
}

function uidOf(text: string): string {
  const hex = hexOf(text, 32)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}

const POD_SECURITY = { fsGroup: 65532, runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }

function podStatus(pod: PodFacts, hostIp: string | undefined): Record<string, unknown> {
  const status = {
    phase: phaseOf(pod),
    ...statusReason(pod),
    conditions: podConditions(pod),
    qosClass: 'Burstable',
  }
  if (pod.node === undefined) return status
  const placed = { ...status, hostIP: hostIp, hostIPs: [{ ip: hostIp }], startTime: timestamp(pod.createdAt) }
  if (pod.state === 'evicted') return placed
  const address = pod.state === 'starting' ? {} : { podIP: pod.ip, podIPs: [{ ip: pod.ip }] }
  return {
    ...placed,
    ...address,
    containerStatuses: pod.template.containerNames.map((name) => containerStatus(pod, name)),
  }
}

function statusReason(pod: PodFacts): Record<string, string> {
  if (pod.state === 'evicted')
    return { reason: 'Evicted', message: 'The node was low on resource: memory. Threshold quantity: 100Mi.' }
  if (pod.state === 'lost')
    return { reason: 'NodeLost', message: `Node ${pod.node} which was running pod ${pod.name} is unresponsive` }
  return {}
}

function podConditions(pod: PodFacts): Record<string, unknown>[] {
  const { createdAt, stateSince } = pod
  if (pod.state === 'unschedulable') {
    const message = '0 nodes are available: insufficient cpu. preemption: no victims found for the incoming pod.'
    return [condition('PodScheduled', false, createdAt, { lastProbeTime: null, reason: 'Unschedulable', message })]
  }
  const ready = pod.state === 'running'
  const why = ready ? {} : { reason: isFinished(pod) ? 'PodCompleted' : 'ContainersNotReady' }
  const probe = { lastProbeTime: null }
  return [
    condition('PodReadyToStartContainers', pod.state !== 'evicted', createdAt, probe),
    condition('Initialized', true, createdAt, probe),
    condition('Ready', ready, stateSince, { ...probe, ...why }),
    condition('ContainersReady', ready, stateSince, { ...probe, ...why }),
    condition('PodScheduled', true, createdAt, probe),
  ]
}

function containerStatus(pod: PodFacts, name: string): Record<string, unknown> {
  const { image } = pod.template
  const digest = `sha256:${hexOf(image, 64)}`
  const containerId = `containerd://${hexOf(`${pod.uid}/${name}/${pod.restarts}`, 64)}`
  const started = pod.state !== 'starting' && pod.state !== 'imageMissing'
  return {
    name,
    image,
    imageID: started ? `registry.example.com/platform/${pod.template.app}@${digest}` : '',
    ready: pod.state === 'running',
    started: pod.state === 'running',
    restartCount: pod.restarts,
    ...(started ? { containerID: containerId } : {}),
    state: containerState(pod, containerId),
    lastState: pod.restarts > 0 ? { terminated: terminated(pod, 1, 'Error', containerId) } : {},
  }
}

function containerState(pod: PodFacts, containerId: string): Record<string, unknown> {
  switch (pod.state) {
    case 'running':
    case 'lost':
      return { running: { startedAt: timestamp(pod.stateSince) } }
    case 'crashing':
      return {
        waiting: {
          reason: 'CrashLoopBackOff',
          message: `back-off 40s restarting failed container=${pod.template.app} pod=${pod.name}_${pod.namespace}(${pod.uid})`,
        },
      }
    case 'imageMissing':
      return { waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "${pod.template.image}"` } }
    case 'succeeded':
      return { terminated: terminated(pod, 0, 'Completed', containerId) }
    case 'failed':
      return { terminated: terminated(pod, 1, 'Error', containerId) }
    case 'starting':
    case 'unschedulable':
    case 'evicted':
      return { waiting: { reason: 'ContainerCreating' } }
  }
}

const terminated = (pod: PodFacts, exitCode: number, reason: string, containerID: string) => ({
  exitCode,
  reason,
  containerID,
  startedAt: timestamp(pod.createdAt),
  finishedAt: timestamp(pod.stateSince),
})
