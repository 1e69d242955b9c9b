import { allPods, fields, instant, items, POD_USAGE, requestsOf, text } from '#collect'
import { type KubeObject, podFacts } from '#kube'
import type { Health, JsonValue } from '#model'
import { defineResource } from './define.ts'
import { createdAt, none, numberIn, once, owner, ownerOf, textOf } from './read.ts'
import type { Read } from './resource-row-builder.ts'

/** What a pod does not get out of without somebody. Other words are steps on a way, such as ContainerCreating. */
const BROKEN = [
  ...['CrashLoopBackOff', 'Error', 'OOMKilled', 'ContainerCannotRun', 'StartError', 'RunContainerError'],
  ...['ImagePullBackOff', 'ErrImagePull', 'ErrImageNeverPull', 'InvalidImageName', 'ImageInspectError'],
  ...['CreateContainerError', 'CreateContainerConfigError', 'CreatePodSandboxError', 'ConfigPathError'],
]

function statusHealth(): Readonly<Record<string, Health>> {
  const broken = [
    ...BROKEN.flatMap((word) => [word, `Init:${word}`]),
    ...['Failed', 'Evicted', 'NodeLost', 'DeadlineExceeded', 'UnexpectedAdmissionError'],
    ...['OutOfcpu', 'OutOfmemory', 'OutOfpods', 'NodeAffinity'],
  ].map((word) => [word, 'unhealthy'] as const)
  return {
    ...Object.fromEntries(broken),
    ...{ Running: 'healthy', Completed: 'healthy', Succeeded: 'healthy' },
    ...{ Unknown: 'unknown', ContainerStatusUnknown: 'unknown' },
  }
}

/** Pods, one row each. What they use moves all the time, and is in a table of its own. */
export const pods = defineResource({
  name: 'pods',
  singular: 'pod',
  shortNames: ['po'],
  title: 'Pods',
  reads: [allPods],
  access: 'pods',
  everyMs: 30_000,
  maxRows: 500_000,
  sort: 'status',
  columns: {
    status: { label: 'Status', kind: 'string', health: statusHealth(), read: (pod) => podStatus(pod) },
    ready: {
      label: 'Ready',
      kind: 'number',
      read: (pod) => containers(pod).filter(({ ready }) => ready === true).length,
    },
    containers: {
      label: 'Containers',
      kind: 'number',
      isWide: true,
      read: (pod) => items(fields(pod.spec).containers).length,
    },
    restarts: {
      label: 'Restarts',
      kind: 'number',
      read: (pod) => sum(pod, ({ restartCount }) => numberIn(restartCount) ?? 0),
    },
    oomKills: {
      label: 'OOM kills',
      kind: 'number',
      isWide: true,
      read: (pod) => sum(pod, (one) => Number(isOomKilled(one))),
    },
    node: { label: 'Node', kind: 'string', refersTo: 'node', read: textOf('spec', 'nodeName') },
    workload: {
      label: 'Workload',
      kind: 'string',
      refersTo: 'object',
      reverse: { title: 'Pods', kinds: ['Deployment', 'StatefulSet', 'DaemonSet', 'Job'] },
      read: workloadOf,
    },
    cpuRequest: {
      label: 'CPU requested',
      kind: 'number',
      unit: 'cores',
      isWide: true,
      read: (pod) => requested(pod).cpuCores,
    },
    memoryRequest: {
      label: 'Memory requested',
      kind: 'number',
      unit: 'bytes',
      isWide: true,
      read: (pod) => requested(pod).memoryBytes,
    },
    createdAt,
    phase: { label: 'Phase', kind: 'string', isExtra: true, read: textOf('status', 'phase') },
    reason: { label: 'Reason', kind: 'string', isExtra: true, read: textOf('status', 'reason') },
    message: { label: 'Message', kind: 'string', isExtra: true, read: (pod) => messageOf(pod) },
    containerRestarts: { label: 'Restarts by container', kind: 'any', isExtra: true, read: containerRestarts },
    lastTermination: { label: 'Last end', kind: 'string', isExtra: true, read: lastTermination },
    owner,
    qos: { label: 'QoS', kind: 'string', isExtra: true, read: textOf('status', 'qosClass') },
    ip: { label: 'IP', kind: 'string', isExtra: true, read: textOf('status', 'podIP') },
    startedAt: {
      label: 'Started',
      kind: 'number',
      unit: 'time',
      isExtra: true,
      read: (pod) => instant(fields(pod.status).startTime),
    },
  },
  measured: {
    source: POD_USAGE,
    columns: {
      cpuUsed: { label: 'CPU used', unit: 'cores' },
      memoryUsed: { label: 'Memory used', unit: 'bytes' },
      diskUsed: { label: 'Disk used', unit: 'bytes', isWide: true },
    },
    sums: ['cpuUsed', 'memoryUsed'],
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    restarts: { function: 'sum', field: 'restarts', groupBy: undefined },
    oomKills: { function: 'sum', field: 'oomKills', groupBy: undefined },
  },
})

const containers = once((pod) => items(fields(pod.status).containerStatuses))
const initContainers = once((pod) => items(fields(pod.status).initContainerStatuses))
const allContainers = once((pod) => [...initContainers(pod), ...containers(pod)])
const sum = (pod: KubeObject, of: (status: Readonly<Record<string, unknown>>) => number) =>
  allContainers(pod).reduce((total, status) => total + of(status), 0)

const stateOf = (status: Readonly<Record<string, unknown>>, name: string) => fields(fields(status.state)[name])
const lastEnd = (status: Readonly<Record<string, unknown>>) => fields(fields(status.lastState).terminated)

/** Its newest end was for lack of memory: the API keeps no more than that one. */
const isOomKilled = (status: Readonly<Record<string, unknown>>) =>
  [stateOf(status, 'terminated'), lastEnd(status)].some(({ reason }) => reason === 'OOMKilled')

/**
 * `[[name, restarts, oomKilled], …]` of regular containers with a status, as compact JSON: equal texts are kept once, and a hub that
 * does not know the column takes it as any text.
 */
function containerRestarts(pod: KubeObject): string | null {
  const list = containers(pod).map((one) => [text(one.name), numberIn(one.restartCount) ?? 0, isOomKilled(one)])
  return list.length === 0 ? null : JSON.stringify(list)
}

const requested = once((pod) => requestsOf(podFacts(pod), none))

/**
 * One word for how a pod is, as kubectl prints it: what keeps it from starting, else how a container ended, else its phase.
 * @see Kubernetes, `kubectl get pods`, column STATUS
 */
function podStatus(pod: KubeObject): string {
  const status = fields(pod.status)
  const phase = text(status.reason) || text(status.phase) || 'Unknown'
  if (pod.metadata.deletionTimestamp !== undefined) return status.reason === 'NodeLost' ? 'Unknown' : 'Terminating'
  return initStatus(pod) ?? containerStatus(pod, phase)
}

function initStatus(pod: KubeObject): string | undefined {
  const specs = items(fields(pod.spec).initContainers)
  const all = initContainers(pod)
  for (const [place, status] of all.entries()) {
    const isSidecar = specs.find(({ name }) => name === status.name)?.restartPolicy === 'Always'
    const ended = stateOf(status, 'terminated')
    if (ended.exitCode === 0 || (isSidecar && status.started === true)) continue
    if (ended.exitCode !== undefined) return `Init:${endOf(ended)}`
    const waiting = text(stateOf(status, 'waiting').reason)
    return waiting && waiting !== 'PodInitializing' ? `Init:${waiting}` : `Init:${place}/${specs.length}`
  }
  return undefined
}

function containerStatus(pod: KubeObject, phase: string): string {
  let said = phase
  let isAnyRunning = false
  for (const status of containers(pod).toReversed()) {
    const waiting = text(stateOf(status, 'waiting').reason)
    const ended = stateOf(status, 'terminated')
    if (waiting) said = waiting
    else if (ended.exitCode !== undefined) said = endOf(ended)
    else if (status.ready === true && Object.keys(stateOf(status, 'running')).length > 0) isAnyRunning = true
  }
  if (said !== 'Completed' || !isAnyRunning) return said
  const isReady = items(fields(pod.status).conditions).some(({ type, status }) => type === 'Ready' && status === 'True')
  return isReady ? 'Running' : 'NotReady'
}

function endOf({ reason, signal, exitCode }: Readonly<Record<string, unknown>>): string {
  if (text(reason)) return text(reason)
  return numberIn(signal) ? `Signal:${numberIn(signal)}` : `ExitCode:${numberIn(exitCode) ?? 0}`
}

/** Why it is not as it should be: of the pod, else of the first container that says something. */
function messageOf(pod: KubeObject): string | null {
  const own = text(fields(pod.status).message)
  if (own) return own
  const said = allContainers(pod).map((one) => text(stateOf(one, 'waiting').message))
  const unscheduled = items(fields(pod.status).conditions).find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  )
  return said.find(Boolean) || text(unscheduled?.message) || null
}

function lastTermination(pod: KubeObject): string | null {
  const ends = [...containers(pod), ...initContainers(pod)]
    .map(lastEnd)
    .filter(({ exitCode }) => exitCode !== undefined)
  if (ends.length === 0) return null
  const last = ends.toSorted((a, b) => (instant(b.finishedAt) ?? 0) - (instant(a.finishedAt) ?? 0))[0]
  return last ? endOf(last) : null
}

/** The workload above the owner: a replica set is named after its deployment, with the hash of its template behind. */
function workloadOf(...[pod, kind]: Parameters<Read>): JsonValue {
  const owner = ownerOf(pod, kind)
  const hash = pod.metadata.labels?.['pod-template-hash']
  if (typeof owner !== 'string' || !hash || !owner.startsWith('ReplicaSet/') || !owner.endsWith(`-${hash}`))
    return owner
  return `Deployment/${owner.slice('ReplicaSet/'.length, -hash.length - 1)}`
}
