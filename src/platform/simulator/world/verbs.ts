import { FleetError } from '#model'
import {
  type ClusterOperatorFacts,
  isFinished,
  type NodeFacts,
  type OperatorFacts,
  type PodFacts,
  type WorkloadFacts,
} from '../facts.ts'
import { csvName } from '../objects/operators.ts'
import { AT_ONCE, settle } from './controllers.ts'
import {
  tellCordon,
  tellCrash,
  tellEvicted,
  tellKilling,
  tellNodeBroken,
  tellNodeReady,
  tellScaled,
  tellStarted,
} from './events.ts'
import type { World } from './world.ts'

/** A verb names something the simulated cluster does not have. */
export class NotInWorldError extends FleetError {
  override readonly name = 'NotInWorldError'
  readonly code = 'not_in_world'
  readonly retryable = false

  constructor(what: string, name: string) {
    super(`the simulation has no ${what} named ${JSON.stringify(name)}`)
  }
}

function nodeOf(world: World, name: string): NodeFacts {
  const node = world.nodes.get(name)
  if (!node) throw new NotInWorldError('node', name)
  return node
}

/** The node stops reporting (`lost`), so that its pods go to Unknown; or it says itself that it is not ready (`failing`). */
export function breakNode(world: World, name: string, now: number, how: 'lost' | 'failing' = 'lost'): void {
  const node = nodeOf(world, name)
  if (node.state !== 'ready') return
  node.state = how
  node.stateSince = now
  if (how === 'failing') node.heartbeatAt = now
  world.touch('nodes', name)
  if (how === 'lost')
    for (const pod of world.podsOn(name))
      if (pod.state === 'running' || pod.state === 'crashing') world.setPodState(pod, 'lost', now)
  tellNodeBroken(world, node, now)
}

export function healNode(world: World, name: string, now: number): void {
  const node = nodeOf(world, name)
  if (node.state === 'ready') return
  node.state = 'ready'
  node.stateSince = now
  node.heartbeatAt = now
  world.touch('nodes', name)
  tellNodeReady(world, node, now)
  for (const pod of world.podsOn(name)) if (pod.state === 'lost') world.setPodState(pod, 'running', now)
}

export function setCordon(world: World, name: string, cordoned: boolean, now: number): void {
  const node = nodeOf(world, name)
  if (node.cordoned === cordoned) return
  node.cordoned = cordoned
  world.touch('nodes', name)
  tellCordon(world, node, now)
}

/** The control plane gives up on the pods of a node: what is replaceable is made anew elsewhere. */
export function evictPods(world: World, name: string, now: number, most = Number.POSITIVE_INFINITY): number {
  nodeOf(world, name)
  const leaving = [...world.podsOn(name)].filter((pod) => pod.workload.kind === 'Deployment' && !isFinished(pod))
  for (const pod of leaving.slice(0, most)) {
    tellEvicted(world, pod, now)
    tellKilling(world, pod, now)
    // Some leave a trace, as pods do that the kubelet itself put out.
    if (pod.uid.endsWith('0')) world.setPodState(pod, 'evicted', now)
    else world.removePod(pod)
  }
  return Math.min(most, leaving.length)
}

/** The kubelet reports: only its time changes. */
export function heartbeat(world: World, name: string, now: number): void {
  const node = nodeOf(world, name)
  if (node.state === 'lost') return
  node.heartbeatAt = now
  world.touch('nodes', name)
}

export function scale(world: World, workload: WorkloadFacts, replicas: number, now: number): void {
  const from = workload.replicas
  if (from === replicas) return
  workload.replicas = Math.max(0, replicas)
  tellScaled(world, workload, from, now)
  workload.generation++
  workload.changedAt = now
  world.unsettled.add(workload)
  world.touchWorkload(workload)
}

/** Gives the workload a new image: its pods are replaced bit by bit. */
export function rollOut(world: World, workload: WorkloadFacts, now: number): void {
  const { template } = workload
  const tag = template.image.slice(template.image.lastIndexOf(':') + 1)
  workload.template = world.templates.get({
    app: template.app,
    version: nextPatch(tag),
    cpuCores: template.cpuCores,
    memoryBytes: template.memoryBytes,
    everywhere: false,
    gpus: workload.placement === 'gpu' ? 1 : 0,
    claims: workload.hasClaims,
  })
  workload.revision++
  workload.generation++
  workload.changedAt = now
  if (workload.kind === 'Deployment') world.addReplicaSet(workload, now)
  tellScaled(world, workload, 0, now)
  world.unsettled.add(workload)
  world.touchWorkload(workload)
}

/** Its container ends, by itself or for its memory, and waits to be started again. */
export function crash(world: World, pod: PodFacts, now: number, outOfMemory = false): void {
  if (pod.state !== 'running') return
  pod.restarts++
  pod.outOfMemory = outOfMemory
  world.setPodState(pod, 'crashing', now)
  tellCrash(world, pod, now)
}

/** Grows (or, below zero, shrinks) the largest deployment by so many pods and lets them start. */
export function addPods(world: World, count: number, now: number): void {
  const largest = [...world.deployments.values()].reduce<WorkloadFacts | undefined>(
    (best, workload) =>
      workload.placement !== 'control-plane' && workload.replicas > (best?.replicas ?? 0) ? workload : best,
    undefined,
  )
  if (!largest) throw new NotInWorldError('deployment', 'with replicas')
  const wanted = Math.max(0, largest.replicas + count)
  scale(world, largest, wanted, now)
  for (let rounds = Math.ceil(Math.abs(count) / AT_ONCE) + 1; rounds > 0; rounds--) settle(world, now)
}

/** A crashed pod, or one without its image, runs again; anything else stays as it is. */
export function recoverPod(world: World, pod: PodFacts, now: number): void {
  const alive = world.pods.get(`${pod.namespace}/${pod.name}`) === pod
  if (!alive || (pod.state !== 'crashing' && pod.state !== 'imageMissing')) return
  world.setPodState(pod, 'running', now)
  tellStarted(world, pod, now)
}

export function setOperator(
  world: World,
  name: string,
  change: Pick<OperatorFacts, 'phase' | 'reason' | 'message'> & { readonly version?: string },
  now: number,
): void {
  const found = [...world.operators].find(([, { product }]) => product.name === name)
  if (!found) throw new NotInWorldError('operator', name)
  const [key, operator] = found
  world.touch('csvs', `${operator.namespace}/${csvName(operator)}`)
  Object.assign(operator, change, { changedAt: now })
  world.touch('csvs', `${operator.namespace}/${csvName(operator)}`)
  world.touch('subscriptions', key)
}

export const OPERATOR_FINE = {
  phase: 'Succeeded',
  reason: 'InstallSucceeded',
  message: 'install strategy completed with no errors',
} as const

/** Marks an OpenShift ClusterOperator; what is not named stays. */
export function setClusterOperator(
  world: World,
  name: string,
  change: Partial<
    Pick<ClusterOperatorFacts, 'available' | 'progressing' | 'degraded' | 'reason' | 'message' | 'version'>
  >,
  now: number,
): void {
  const operator = world.clusterOperators.get(name)
  if (!operator) throw new NotInWorldError('ClusterOperator', name)
  Object.assign(operator, change, { changedAt: now })
  world.touch('clusterOperators', name)
}

/** Begins the next update on offer. @returns false where there is none, or one is under way */
export function startUpdate(world: World, now: number): boolean {
  const { version } = world
  const next = version?.updates[0]
  if (!version || next === undefined || version.progress !== undefined) return false
  version.history = [{ version: next, state: 'Partial', startedAt: now, completedAt: undefined }, ...version.history]
  version.progress = 0
  version.changedAt = now
  world.touch('clusterVersions', 'version')
  return true
}

/** @param ratio how far the update is; at 1 it is done */
export function progressUpdate(world: World, ratio: number, now: number): void {
  const { version } = world
  const [running, ...older] = version?.history ?? []
  if (!version || !running || version.progress === undefined) return
  version.progress = Math.max(version.progress, Math.min(ratio, 1))
  if (version.progress >= 1) {
    version.progress = undefined
    version.history = [{ ...running, state: 'Completed' as const, completedAt: now }, ...older].slice(0, 10)
    const rest = version.updates.slice(1)
    version.updates = rest.length > 0 ? rest : [nextPatch(running.version)]
    version.changedAt = now
  }
  world.touch('clusterVersions', 'version')
}

/** `4.20.14` → `4.20.15` */
export const nextPatch = (version: string): string => {
  const parts = version.split('.')
  return [...parts.slice(0, -1), Number(parts.at(-1)) + 1].join('.')
}
