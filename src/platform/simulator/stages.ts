import { minutes, seconds } from '#model'
import type { NodeFacts, PodFacts, WorkloadFacts } from './facts.ts'
import { scheduledBefore } from './objects/jobs.ts'
import { degradations } from './objects/openshift.ts'
import type { Random } from './random.ts'
import { settle } from './world/controllers.ts'
import { tellClaim, tellJobMade, tellPodRemoved } from './world/events.ts'
import {
  breakNode,
  crash,
  evictPods,
  healNode,
  heartbeat,
  nextPatch,
  OPERATOR_FINE,
  progressUpdate,
  recoverPod,
  rollOut,
  scale,
  setClusterOperator,
  setCordon,
  setOperator,
  startUpdate,
} from './world/verbs.ts'
import type { World } from './world/world.ts'

/** What a stage plays on. `now` is the time of its current step. */
export interface Scene {
  readonly world: World
  readonly random: Random
  readonly now: number
}

/**
 * One thing that happens in the life of a cluster, told step by step: each value it yields is the pause until its next
 * step, in ms. Between two steps anything else may have happened; a stage therefore looks again before it acts.
 */
export type Stage = (scene: Scene) => Generator<number, void, void>

/** Workers that may go without harm: at least two others stay. */
function spareNode({ world, random }: Scene): NodeFacts | undefined {
  const ready = [...world.nodes.values()].filter(
    ({ state, cordoned, pool }) => state === 'ready' && !cordoned && pool.role !== 'control-plane',
  )
  return ready.length > 2 ? random.pick(ready) : undefined
}

const deployments = (world: World): WorkloadFacts[] => [...world.deployments.values()]

const runningPods = (world: World, workload: WorkloadFacts): PodFacts[] =>
  [...world.podsOf(workload)].filter(({ state }) => state === 'running')

/** A node stops answering, loses its replaceable pods after a while, and comes back after one to two minutes. */
function* nodeLost(scene: Scene) {
  const node = spareNode(scene)
  if (!node) return
  breakNode(scene.world, node.name, scene.now)
  yield seconds(25)
  for (let round = 0; round < 3; round++) {
    if (node.state !== 'ready') evictPods(scene.world, node.name, scene.now, 8)
    yield seconds(scene.random.int(12, 22))
  }
  healNode(scene.world, node.name, scene.now)
}

/** The kubelet says itself that it is not ready; pods keep running. Shorter than a lost node. */
function* nodeFailing(scene: Scene) {
  const node = spareNode(scene)
  if (!node) return
  breakNode(scene.world, node.name, scene.now, 'failing')
  yield seconds(scene.random.int(40, 70))
  healNode(scene.world, node.name, scene.now)
}

/** Maintenance: cordon, drain in portions, some minutes of work, back in service. */
function* nodeMaintenance(scene: Scene) {
  const node = spareNode(scene)
  if (!node) return
  setCordon(scene.world, node.name, true, scene.now)
  yield seconds(12)
  for (let portion = 0; portion < 12; portion++) {
    if (!node.cordoned || evictPods(scene.world, node.name, scene.now, 4) === 0) break
    yield seconds(3)
  }
  yield seconds(scene.random.int(30, 90))
  setCordon(scene.world, node.name, false, scene.now)
}

/** A new image for one of the larger deployments. */
function* deploymentRollout(scene: Scene) {
  const found = scene.random.weighted(deployments(scene.world), ({ replicas }) => (replicas > 1 ? replicas : 0))
  if (found) rollOut(scene.world, found, scene.now)
  yield 0
}

/** A bad release: some pods of a deployment crash again and again, then a fix is rolled out. */
function* crashLoop(scene: Scene) {
  const { world, random } = scene
  const workload = random.weighted(deployments(world), ({ replicas }) => (replicas > 1 ? 1 : 0))
  if (!workload) return
  const ill = runningPods(world, workload).slice(0, random.int(1, 3))
  const outOfMemory = random.chance(0.5)
  for (const pod of ill) crash(world, pod, scene.now, outOfMemory)
  for (let again = 0; again < 3; again++) {
    yield seconds(random.int(10, 18))
    for (const pod of ill) {
      recoverPod(world, pod, scene.now)
      if (again < 2 && world.pods.has(`${pod.namespace}/${pod.name}`)) crash(world, pod, scene.now, outOfMemory)
    }
  }
}

/** More load than usual: an application grows at once and shrinks again. */
function* scaleBurst(scene: Scene) {
  const { world, random } = scene
  const workload = random.pick(deployments(world))
  if (!workload) return
  scale(world, workload, workload.usualReplicas + random.int(2, 6), scene.now)
  yield seconds(random.int(40, 90))
  scale(world, workload, workload.usualReplicas, scene.now)
}

/** An operator of OLM fails, is installed anew and is well again, sometimes in its next version. */
function* operatorFails(scene: Scene) {
  const { world, random } = scene
  const operator = random.pick([...world.operators.values()].filter(({ phase }) => phase === 'Succeeded'))
  if (!operator) return
  const { name } = operator.product
  const failed = {
    phase: 'Failed',
    reason: 'InstallCheckFailed',
    message: `install timeout: deployment ${name}-controller-manager is not ready`,
  } as const
  setOperator(world, name, failed, scene.now)
  yield seconds(random.int(40, 80))
  const version = random.chance(0.5) ? nextPatch(operator.version) : operator.version
  setOperator(
    world,
    name,
    {
      phase: 'Installing',
      reason: 'InstallWaiting',
      message: 'installing: waiting for deployment to become ready',
      version,
    },
    scene.now,
  )
  yield seconds(random.int(15, 30))
  setOperator(world, name, OPERATOR_FINE, scene.now)
}

/** A part of OpenShift degrades and recovers. */
function* clusterOperatorDegrades(scene: Scene) {
  const { world, random } = scene
  const trouble = random.pick(degradations.filter(({ name }) => world.clusterOperators.get(name)?.degraded === false))
  if (!trouble) return
  const { name, reason, message } = trouble
  setClusterOperator(world, name, { degraded: true, reason, message }, scene.now)
  yield seconds(random.int(35, 60))
  if (random.chance(0.3)) {
    setClusterOperator(world, name, { available: false }, scene.now)
    yield seconds(random.int(15, 30))
  }
  setClusterOperator(
    world,
    name,
    {
      degraded: false,
      progressing: true,
      available: true,
      reason: 'Recovering',
      message: 'Waiting for the last replica',
    },
    scene.now,
  )
  yield seconds(random.int(8, 15))
  setClusterOperator(world, name, { progressing: false, reason: 'AsExpected', message: '' }, scene.now)
}

/** OpenShift moves to the next patch: percent by percent, operator by operator. */
function* clusterUpdate(scene: Scene) {
  const { world } = scene
  if (!startUpdate(world, scene.now)) return
  const version = world.version?.history[0]?.version ?? ''
  const names = [...world.clusterOperators.keys()]
  for (const [done, name] of names.entries()) {
    yield seconds(3)
    setClusterOperator(world, name, { version }, scene.now)
    progressUpdate(world, ((done + 1) / names.length) * 0.98, scene.now)
  }
  yield seconds(6)
  progressUpdate(world, 1, scene.now)
}

/** A StatefulSet grows, and for a while no volume can be made for its new pod. */
function* volumePending(scene: Scene) {
  const { world, random } = scene
  const grows = random.pick([...world.statefulSets.values()].filter(({ hasClaims }) => hasClaims))
  if (!grows) return
  scale(world, grows, grows.usualReplicas + 1, scene.now)
  yield seconds(2)
  const [claim] = [...world.podsOf(grows)].map((pod) => world.claimOf(pod)).filter((one) => one?.phase === 'Pending')
  if (claim) claim.stuck = true
  yield seconds(random.int(40, 70))
  if (claim) claim.stuck = false
  yield seconds(random.int(20, 40))
  scale(world, grows, grows.usualReplicas, scene.now)
}

/** A volume is gone: its claim says so until both and their pod are made anew. */
function* volumeLost(scene: Scene) {
  const { world, random } = scene
  const mounted = [...world.pods.values()].filter(
    (pod) => pod.state === 'running' && world.claimOf(pod)?.phase === 'Bound',
  )
  const pod = random.pick(mounted)
  const claim = pod && world.claimOf(pod)
  if (!pod || !claim) return
  world.setClaimPhase(claim, 'Lost')
  tellClaim(world, claim, scene.now)
  yield seconds(random.int(60, 100))
  world.removeClaim(claim)
  world.removePod(pod)
}

/** Small changes without end: scale by one, a pod replaced, a container started again. */
export function* churn(scene: Scene, meanMs: number): Generator<number, void, void> {
  const { world, random } = scene
  yield random.between(0, meanMs)
  for (;;) {
    const roll = random.ratio()
    if (roll < 0.4) nudge(scene)
    else if (roll < 0.75) replaceOne(scene)
    else yield* restartOne(scene)
    settle(world, scene.now)
    yield random.exponential(meanMs) + 200
  }
}

function nudge({ world, random, now }: Scene): void {
  const workload = random.pick(deployments(world))
  if (!workload) return
  // Pulled back to the usual number, so that the cluster keeps its size.
  const step = random.chance(0.5) ? 1 : -1
  const wanted = workload.replicas === workload.usualReplicas ? workload.replicas + step : workload.usualReplicas
  scale(world, workload, Math.max(1, wanted), now)
}

function replaceOne({ world, random, now }: Scene): void {
  const workload = random.pick(deployments(world))
  const pod = workload && random.pick(runningPods(world, workload))
  if (!pod) return
  tellPodRemoved(world, pod, now)
  world.removePod(pod)
}

function* restartOne(scene: Scene): Generator<number, void, void> {
  const { world, random } = scene
  const workload = random.pick(deployments(world))
  const pod = workload && random.pick(runningPods(world, workload))
  if (!pod) return
  crash(world, pod, scene.now, random.chance(0.3))
  yield seconds(random.int(5, 15))
  recoverPod(world, pod, scene.now)
}

/** Once a minute the CronJobs whose time it is make their Jobs, unless the last one still runs. */
export function* cronJobs(scene: Scene): Generator<number, void, void> {
  const { world } = scene
  for (;;) {
    yield minutes(1) - (scene.now % minutes(1))
    for (const cronJob of world.cronJobs.values()) {
      const due = scheduledBefore(cronJob, scene.now)
      const isBusy = [...world.jobs.values()].some((job) => job.cronJob === cronJob && job.state === 'running')
      if (due + minutes(1) > scene.now && !isBusy) tellJobMade(world, world.addJob(cronJob, due), scene.now)
    }
  }
}

/** Controllers and kubelets at work: as often as one would notice. */
export function* controllers(scene: Scene): Generator<number, void, void> {
  for (;;) {
    settle(scene.world, scene.now)
    yield seconds(1)
  }
}

/** Each node reports every five minutes, one after the other. */
export function* heartbeats(scene: Scene): Generator<number, void, void> {
  const names = [...scene.world.nodes.keys()]
  for (let at = 0; names.length > 0; at++) {
    yield minutes(5) / names.length
    const name = names[at % names.length]
    if (name !== undefined) heartbeat(scene.world, name, scene.now)
  }
}

/** The happenings, with how often each is chosen, and how many of it may run in one cluster at once. */
export const stages: Readonly<Record<string, { readonly play: Stage; readonly weight: number }>> = {
  nodeLost: { play: nodeLost, weight: 3 },
  nodeFailing: { play: nodeFailing, weight: 2 },
  nodeMaintenance: { play: nodeMaintenance, weight: 2 },
  deploymentRollout: { play: deploymentRollout, weight: 4 },
  crashLoop: { play: crashLoop, weight: 4 },
  scaleBurst: { play: scaleBurst, weight: 3 },
  operatorFails: { play: operatorFails, weight: 3 },
  clusterOperatorDegrades: { play: clusterOperatorDegrades, weight: 3 },
  clusterUpdate: { play: clusterUpdate, weight: 1 },
  volumePending: { play: volumePending, weight: 2 },
  volumeLost: { play: volumeLost, weight: 1 },
}
