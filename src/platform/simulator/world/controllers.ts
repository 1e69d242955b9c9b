import { minutes, seconds } from '#model'
import { isFinished, type JobFacts, type PodFacts, type WorkloadFacts } from '../facts.ts'
import { backoffLimitOf, KEPT, ttlSecondsOf } from '../objects/jobs.ts'
import { templateHash } from '../objects/workloads.ts'
import { hash } from '../random.ts'
import {
  EVENT_TTL_MS,
  tellClaim,
  tellJobEnded,
  tellPodMade,
  tellPodRemoved,
  tellScheduled,
  tellStarted,
  tellUnschedulable,
} from './events.ts'
import type { World } from './world.ts'

/** How many pods of one workload are made or removed at one time. */
export const AT_ONCE = 5
/** Finished pods that stay, per workload, before the oldest are collected. */
const KEEP_FINISHED = 3
/** How long one can read of an evicted pod. */
const KEEP_EVICTED_MS = minutes(10)

/**
 * What scheduler, kubelets and controllers do between two happenings: pods that wait get nodes and start, replicas
 * are made and removed until their number is right, rollouts go on. Safe to repeat; without work it costs nothing.
 */
export function settle(world: World, now: number): void {
  for (const workload of [...world.unsettled]) {
    world.unsettled.delete(workload)
    if (workload.kind === 'Deployment' || workload.kind === 'StatefulSet') reconcileReplicas(world, workload, now)
    if (workload.kind !== 'CronJob') collectFinished(world, workload)
  }
  for (const job of [...world.jobs.values()]) runJob(world, job, now)
  for (const pod of world.evicted) {
    if (now - pod.stateSince < KEEP_EVICTED_MS) break
    world.removePod(pod)
  }
  for (const pod of [...world.waiting]) schedule(world, pod, now)
  for (const pod of [...world.waiting]) start(world, pod, now)
  world.forgetEvents(Number.POSITIVE_INFINITY, now - EVENT_TTL_MS)
}

function schedule(world: World, pod: PodFacts, now: number): void {
  if (pod.node !== undefined) return
  const node = hasVolume(world, pod, now) ? world.findNode(pod.workload) : undefined
  if (!node) {
    tellUnschedulable(world, pod, now)
    return
  }
  world.bind(pod, node, now)
  tellScheduled(world, pod, now)
}

/** How long it takes to make a volume. */
const PROVISION_MS = seconds(3)

/** A volume is made when the first pod needs it, and the pod waits for it. */
function hasVolume(world: World, pod: PodFacts, now: number): boolean {
  const claim = world.claimOf(pod)
  if (!claim || claim.phase === 'Bound') return true
  if (claim.stuck) tellClaim(world, claim, now)
  if (claim.phase === 'Lost' || claim.stuck || now - pod.createdAt < PROVISION_MS) return false
  world.setClaimPhase(claim, 'Bound')
  tellClaim(world, claim, now)
  return true
}

/** Runs of a hundred that fail, and of one that is known for it. */
const FAILING = 8
const FAILING_OFTEN = { name: 'reindex', percent: 60 }
const FIRST_RETRY_MS = seconds(10)

/** A Job makes a pod, another one after a pause if it fails, and is deleted some time after its end. */
function runJob(world: World, job: JobFacts, now: number): void {
  const { cronJob, endedAt } = job
  if (endedAt !== undefined) {
    if (now - endedAt >= seconds(ttlSecondsOf(cronJob) ?? Number.POSITIVE_INFINITY)) world.removeJob(job)
    return
  }
  const pod = [...world.podsOf(cronJob)].find((one) => one.job === job && !isFinished(one))
  if (!pod) {
    if (job.retryAt <= now)
      tellPodMade(world, world.addPod(cronJob, world.freePodName(cronJob, job.name), now, job), now)
    return
  }
  const takes = seconds(6 + (hash(`takes/${pod.uid}`) % 15))
  if (pod.state !== 'running' || now - pod.stateSince < takes) return
  const percent = cronJob.name === FAILING_OFTEN.name ? FAILING_OFTEN.percent : FAILING
  if (hash(`end/${pod.uid}`) % 100 >= percent) {
    world.setPodState(pod, 'succeeded', now)
    endJob(world, job, 'complete', now)
    return
  }
  world.setPodState(pod, 'failed', now)
  job.failed++
  job.retryAt = now + FIRST_RETRY_MS * 2 ** (job.failed - 1)
  if (job.failed > backoffLimitOf(cronJob)) endJob(world, job, 'failed', now)
}

/** Of each CronJob a few Jobs stay that ended well, and fewer that did not. */
function endJob(world: World, job: JobFacts, state: 'complete' | 'failed', now: number): void {
  job.state = state
  job.endedAt = now
  world.touchJob(job)
  tellJobEnded(world, job, now)
  const ended = [...world.jobs.values()].filter((one) => one.cronJob === job.cronJob && one.state === state)
  for (const old of ended.slice(0, -KEPT[state])) world.removeJob(old)
}

/** Containers take two to six seconds to start, longer where the dice of the pod say so. */
function start(world: World, pod: PodFacts, now: number): void {
  if (pod.state !== 'starting' || pod.node === undefined) return
  const takes = seconds(2 + (pod.uid.charCodeAt(0) % 5))
  if (now - pod.stateSince < takes || world.nodes.get(pod.node)?.state !== 'ready') return
  world.setPodState(pod, 'running', now)
  tellStarted(world, pod, now)
}

function reconcileReplicas(world: World, workload: WorkloadFacts, now: number): void {
  const pods = [...world.podsOf(workload)].filter((pod) => !isFinished(pod))
  const missing = workload.replicas - pods.length
  if (missing > 0) {
    for (let made = 0; made < Math.min(missing, AT_ONCE); made++)
      tellPodMade(world, world.addPod(workload, nextName(world, workload), now), now)
    if (missing > AT_ONCE) world.unsettled.add(workload)
    return
  }
  if (missing < 0) {
    for (const pod of surplus(workload, pods, Math.min(-missing, AT_ONCE))) remove(world, pod, now)
    return
  }
  rollOn(world, workload, pods, now)
}

/** Replaces a quarter of the old pods, once all pods are ready. */
function rollOn(world: World, workload: WorkloadFacts, pods: readonly PodFacts[], now: number): void {
  const old = pods.filter(({ revision }) => revision !== workload.revision)
  if (old.length === 0 || pods.some((pod) => pod.revision === workload.revision && pod.state !== 'running')) return
  const share = Math.max(1, Math.floor(workload.replicas / 4))
  for (const pod of old.slice(0, share)) remove(world, pod, now)
}

function remove(world: World, pod: PodFacts, now: number): void {
  tellPodRemoved(world, pod, now)
  world.removePod(pod)
}

function surplus(workload: WorkloadFacts, pods: readonly PodFacts[], count: number): PodFacts[] {
  const ordinal = (pod: PodFacts) => Number(pod.name.slice(pod.name.lastIndexOf('-') + 1))
  // A StatefulSet gives up its highest ordinals; others what runs worst, then what is youngest.
  const order =
    workload.kind === 'StatefulSet'
      ? (a: PodFacts, b: PodFacts) => ordinal(b) - ordinal(a)
      : (a: PodFacts, b: PodFacts) =>
          Number(a.state === 'running') - Number(b.state === 'running') || b.createdAt - a.createdAt
  return [...pods].sort(order).slice(0, count)
}

function nextName(world: World, workload: WorkloadFacts): string {
  if (workload.kind === 'Deployment')
    return world.freePodName(workload, `${workload.name}-${templateHash(workload, workload.revision)}`)
  let ordinal = 0
  while (world.pods.has(`${workload.namespace}/${workload.name}-${ordinal}`)) ordinal++
  return `${workload.name}-${ordinal}`
}

function collectFinished(world: World, workload: WorkloadFacts): void {
  const finished = [...world.podsOf(workload)].filter(isFinished)
  if (finished.length <= KEEP_FINISHED) return
  finished.sort((a, b) => a.stateSince - b.stateSince)
  for (const pod of finished.slice(0, finished.length - KEEP_FINISHED)) world.removePod(pod)
}
