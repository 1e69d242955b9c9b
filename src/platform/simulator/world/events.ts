import { minutes } from '#model'
import type { ClaimFacts, EventFacts, EventObject, JobFacts, NodeFacts, PodFacts, WorkloadFacts } from '../facts.ts'
import { replicaSetOf } from '../objects/workloads.ts'
import type { World } from './world.ts'

/*
 * What the components of a cluster say of its life, in their own words. Each is told by the code that makes it happen.
 */

/** An API server keeps them for an hour. */
export const EVENT_TTL_MS = minutes(60)

const podObject = ({ namespace, name, uid }: PodFacts): EventObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
})
// Kubelets and controllers name a node by its name, where others have the uid.
const nodeObject = ({ name }: NodeFacts): EventObject => ({
  ...{ apiVersion: 'v1', kind: 'Node', namespace: '', name, uid: name },
})
const claimObject = ({ namespace, name, uid }: ClaimFacts): EventObject => ({
  ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
})
const workloadObject = ({ kind, namespace, name, uid }: WorkloadFacts): EventObject => ({
  ...{ apiVersion: kind === 'CronJob' ? 'batch/v1' : 'apps/v1', kind, namespace, name, uid },
})
const jobObject = ({ cronJob, name, uid }: JobFacts): EventObject => ({
  ...{ apiVersion: 'batch/v1', kind: 'Job', namespace: cronJob.namespace, name, uid },
})

type Said = Pick<EventFacts, 'reason' | 'message' | 'component'> & { readonly host?: string | undefined }

const normal = (world: World, about: EventObject, said: Said, now: number): void =>
  world.tell({ about, isWarning: false, ...said, host: said.host }, now)
const warning = (world: World, about: EventObject, said: Said, now: number, everyMs?: number): void =>
  world.tell({ about, isWarning: true, ...said, host: said.host }, now, everyMs)

/** How often it is said again that something goes on. */
const SAID_AGAIN_MS = minutes(1)

const kubelet = ({ node }: PodFacts) => ({ component: 'kubelet', host: node })
const SCHEDULER = { component: 'default-scheduler' }

// ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

export function tellScheduled(world: World, pod: PodFacts, now: number): void {
  const message = `Successfully assigned ${pod.namespace}/${pod.name} to ${pod.node}`
  normal(world, podObject(pod), { reason: 'Scheduled', message, ...SCHEDULER }, now)
}

/** The scheduler tries again and again, and says so now and then. */
export function tellUnschedulable(world: World, pod: PodFacts, now: number): void {
  const claim = world.claimOf(pod)
  const nodes = world.nodes.size
  const message =
    claim && claim.phase !== 'Bound'
      ? `0/${nodes} nodes are available: pod has unbound immediate PersistentVolumeClaims.`
      : `0/${nodes} nodes are available: ${nodes} Insufficient cpu or memory.`
  warning(world, podObject(pod), { reason: 'FailedScheduling', message, ...SCHEDULER }, now, SAID_AGAIN_MS)
}

export function tellStarted(world: World, pod: PodFacts, now: number): void {
  const { app, image } = pod.kin.template
  const about = podObject(pod)
  const pulled = `Container image "${image}" already present on machine`
  normal(world, about, { reason: 'Pulled', message: pulled, ...kubelet(pod) }, now)
  normal(world, about, { reason: 'Created', message: `Created container: ${app}`, ...kubelet(pod) }, now)
  normal(world, about, { reason: 'Started', message: `Started container ${app}`, ...kubelet(pod) }, now)
}

export function tellKilling(world: World, pod: PodFacts, now: number): void {
  if (pod.node === undefined) return
  const message = `Stopping container ${pod.kin.template.app}`
  normal(world, podObject(pod), { reason: 'Killing', message, ...kubelet(pod) }, now)
}

/** The kernel tells of the node, the kubelet of the pod. */
export function tellCrash(world: World, pod: PodFacts, now: number): void {
  const { app } = pod.kin.template
  const node = pod.node === undefined ? undefined : world.nodes.get(pod.node)
  if (pod.outOfMemory && node) {
    const message = `Memory cgroup out of memory: Killed process of container ${app}`
    warning(
      world,
      nodeObject(node),
      { reason: 'OOMKilling', message, component: 'kernel-monitor', host: node.name },
      now,
    )
  }
  const message = `Back-off restarting failed container ${app} in pod ${pod.name}_${pod.namespace}(${pod.uid})`
  warning(world, podObject(pod), { reason: 'BackOff', message, ...kubelet(pod) }, now)
}

export function tellImageMissing(world: World, pod: PodFacts, now: number): void {
  const { image } = pod.kin.template
  const about = podObject(pod)
  const failed = `Failed to pull image "${image}": not found`
  warning(world, about, { reason: 'Failed', message: failed, ...kubelet(pod) }, now)
  normal(world, about, { reason: 'BackOff', message: `Back-off pulling image "${image}"`, ...kubelet(pod) }, now)
}

export function tellEvicted(world: World, pod: PodFacts, now: number): void {
  const message = `Marking for deletion Pod ${pod.namespace}/${pod.name}`
  normal(
    world,
    podObject(pod),
    { reason: 'TaintManagerEviction', message, component: 'taint-eviction-controller' },
    now,
  )
}

// ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const NODE_CONTROLLER = { component: 'node-controller' }

export function tellNodeBroken(world: World, node: NodeFacts, now: number): void {
  const { name, state } = node
  const said = { reason: 'NodeNotReady', message: `Node ${name} status is now: NodeNotReady` }
  const component = state === 'failing' ? { component: 'kubelet', host: name } : NODE_CONTROLLER
  warning(world, nodeObject(node), { ...said, ...component }, now)
  if (state === 'failing') return
  for (const pod of world.podsOn(name))
    if (pod.state === 'lost')
      warning(world, podObject(pod), { reason: 'NodeNotReady', message: 'Node is not ready', ...NODE_CONTROLLER }, now)
}

export function tellNodeReady(world: World, node: NodeFacts, now: number): void {
  const message = `Node ${node.name} status is now: NodeReady`
  normal(world, nodeObject(node), { reason: 'NodeReady', message, component: 'kubelet', host: node.name }, now)
}

export function tellCordon(world: World, node: NodeFacts, now: number): void {
  const reason = node.cordoned ? 'NodeNotSchedulable' : 'NodeSchedulable'
  const message = `Node ${node.name} status is now: ${reason}`
  normal(world, nodeObject(node), { reason, message, component: 'kubelet', host: node.name }, now)
}

// ── workloads ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What makes and removes the pods of a workload: of a Deployment its replica set. */
function makerOf({ workload, revision, job }: PodFacts): readonly [about: EventObject, component: string] {
  if (job) return [jobObject(job), 'job-controller']
  if (workload.kind !== 'Deployment') return [workloadObject(workload), `${workload.kind.toLowerCase()}-controller`]
  const set = { ...workloadObject(workload), kind: 'ReplicaSet', ...replicaSetOf(workload, revision) }
  return [set, 'replicaset-controller']
}

export function tellPodMade(world: World, pod: PodFacts, now: number): void {
  const [about, component] = makerOf(pod)
  normal(world, about, { reason: 'SuccessfulCreate', message: `Created pod: ${pod.name}`, component }, now)
}

export function tellPodRemoved(world: World, pod: PodFacts, now: number): void {
  const [about, component] = makerOf(pod)
  normal(world, about, { reason: 'SuccessfulDelete', message: `Deleted pod: ${pod.name}`, component }, now)
  tellKilling(world, pod, now)
}

export function tellScaled(world: World, workload: WorkloadFacts, from: number, now: number): void {
  if (workload.kind !== 'Deployment') return
  const { name } = replicaSetOf(workload, workload.revision)
  const how = workload.replicas > from ? 'up' : 'down'
  const message = `Scaled ${how} replica set ${name} from ${from} to ${workload.replicas}`
  normal(
    world,
    workloadObject(workload),
    { reason: 'ScalingReplicaSet', message, component: 'deployment-controller' },
    now,
  )
}

export function tellJobMade(world: World, { cronJob, name }: JobFacts, now: number): void {
  const said = { reason: 'SuccessfulCreate', message: `Created job ${name}`, component: 'cronjob-controller' }
  normal(world, workloadObject(cronJob), said, now)
}

export function tellJobEnded(world: World, job: JobFacts, now: number): void {
  const component = 'job-controller'
  if (job.state === 'complete')
    normal(world, jobObject(job), { reason: 'Completed', message: 'Job completed', component }, now)
  else {
    const message = 'Job has reached the specified backoff limit'
    warning(world, jobObject(job), { reason: 'BackoffLimitExceeded', message, component }, now)
  }
}

// ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const PROVISIONER = { component: 'csi-provisioner' }

export function tellClaim(world: World, claim: ClaimFacts, now: number): void {
  const about = claimObject(claim)
  if (claim.phase === 'Bound') {
    const message = `Successfully provisioned volume for claim ${claim.namespace}/${claim.name}`
    normal(world, about, { reason: 'ProvisioningSucceeded', message, ...PROVISIONER }, now)
  } else if (claim.phase === 'Lost') {
    const message = 'Bound claim has lost its PersistentVolume. Data on the volume is lost!'
    warning(world, about, { reason: 'ClaimLost', message, component: 'persistentvolume-controller' }, now)
  } else if (claim.stuck) {
    const message = 'failed to provision volume: rpc error: code = ResourceExhausted desc = out of capacity'
    warning(world, about, { reason: 'ProvisioningFailed', message, ...PROVISIONER }, now, SAID_AGAIN_MS)
  }
}
