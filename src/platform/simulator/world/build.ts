import { minutes, seconds } from '#model'
import type { JobFacts, PodState, WorkloadFacts } from '../facts.ts'
import { businessApps, cronApps, gpuApps, statefulApps, systemApps } from '../objects/apps.ts'
import { backoffLimitOf, scheduledBefore } from '../objects/jobs.ts'
import { allocatableBytes, allocatableCores } from '../objects/node.ts'
import { clusterOperatorNames } from '../objects/openshift.ts'
import { type OperatorProduct, operatorCatalogue } from '../objects/operator-catalogue.ts'
import type { TemplateCatalogue } from '../objects/pod-template.ts'
import { templateHash } from '../objects/workloads.ts'
import { hash, Random, uuidFrom } from '../random.ts'
import type { ClusterScenario, NodePool } from '../types.ts'
import { tellClaim, tellCrash, tellImageMissing, tellUnschedulable } from './events.ts'
import { nextPatch } from './verbs.ts'
import { World } from './world.ts'

const HOUR = minutes(60)
const DAY = 24 * HOUR

/** Makes the world of one cluster as it is at its start. The same seed, scenario and time make the same world. */
export function buildWorld(
  scenario: ClusterScenario,
  { seed, now, templates }: { seed: number; now: number; templates: TemplateCatalogue },
): World {
  const world = new World(scenario, new Random(`${seed}/${scenario.name}`), templates)
  const bornAt = now - world.random.int(120, 700) * DAY
  addNodes(world, bornAt, now)
  const workloads = planWorkloads(world, bornAt, now)
  // Namespaces first: an API store refuses objects in unknown ones.
  addNamespaces(world, workloads, bornAt)
  for (const workload of workloads) world.addWorkload(workload)
  addOperators(world, bornAt, now)
  if (scenario.distribution === 'openshift') addOpenshift(world, bornAt, now)
  for (const workload of workloads) addPods(world, workload, now)
  troubleClaims(world, now)
  tellTroubles(world, now)
  world.unsettled.clear()
  return world
}

function addNodes(world: World, bornAt: number, now: number): void {
  const { random, scenario } = world
  let index = 0
  for (const pool of scenario.pools) {
    for (let number = 0; number < pool.count; number++) {
      const createdAt = Math.floor(random.between(bornAt, bornAt + (now - bornAt) * 0.7))
      world.addNode({
        name: nodeName(world, pool, number),
        uid: random.uuid(),
        index,
        pool,
        zone: `${scenario.region}${'abc'[index % 3]}`,
        createdAt,
        state: 'ready',
        cordoned: false,
        stateSince: Math.min(createdAt + seconds(40), now),
        heartbeatAt: now - random.int(0, minutes(4)),
        requestedCores: 0,
        requestedBytes: 0,
        podCount: 0,
      })
      index++
    }
  }
}

function nodeName({ scenario, random }: World, pool: NodePool, number: number): string {
  if (scenario.distribution === 'openshift' && pool.role !== 'control-plane')
    return `${scenario.name}-${pool.role}-${scenario.region}${'abc'[number % 3]}-${random.suffix(5)}-${number}`
  return `${scenario.name}-${pool.role === 'control-plane' ? 'control' : pool.role}-${number}`
}

interface Wish {
  readonly kind: WorkloadFacts['kind']
  readonly namespace: string
  readonly app: string
  readonly placement: WorkloadFacts['placement']
  readonly replicas: number
}

interface Has {
  readonly hasClaims: boolean
  readonly hasService: boolean
}

/** Distributes exactly the scenario's number of pods over workloads as clusters of this sort run them. */
function planWorkloads(world: World, bornAt: number, now: number): WorkloadFacts[] {
  const { scenario, random } = world
  const hasPool = (role: NodePool['role']) => scenario.pools.some((pool) => pool.role === role && pool.count > 0)
  const common: NodePool['role'] = hasPool('worker') ? 'worker' : (scenario.pools[0]?.role ?? 'worker')
  const wishes: Wish[] = []
  let left = scenario.pods
  const wish = (kind: Wish['kind'], namespace: string, app: string, placement: Wish['placement'], replicas: number) => {
    const granted = Math.min(replicas, left)
    if (granted <= 0) return
    left -= granted
    wishes.push({ kind, namespace, app, placement, replicas: granted })
  }

  const system = systemApps(scenario)
  for (const [namespace, app] of system.everywhere)
    if (scenario.pods - left + world.nodes.size <= scenario.pods * 0.4)
      wish('DaemonSet', namespace, app, 'everywhere', world.nodes.size)
  for (const [namespace, app] of system.central)
    if (left > scenario.pods * 0.5)
      wish('Deployment', namespace, app, hasPool('control-plane') ? 'control-plane' : common, 2)
  for (const [namespace, app] of system.infra)
    if (left > scenario.pods * 0.45) wish('Deployment', namespace, app, hasPool('infra') ? 'infra' : common, 2)
  if (hasPool('gpu')) for (const app of gpuApps) wish('Deployment', 'ml', app, 'gpu', Math.ceil(left * 0.05))
  for (const [namespace, app] of cronApps) if (left > 30) wish('CronJob', namespace, app, common, random.int(1, 3))
  for (const [namespace, app] of statefulApps) if (left > 20) wish('StatefulSet', namespace, app, common, 3)
  addBusiness(
    world,
    wishes,
    () => left,
    (namespace, app, replicas) => wish('Deployment', namespace, app, common, replicas),
  )
  const has = budgets(scenario)
  return wishes.map((one) => workloadOf(world, { ...one, ...has(one) }, wishes, bornAt, now))
}

/** Who gets a Service, and whose pods get volumes, as long as there are any. */
function budgets({ services = Number.POSITIVE_INFINITY, storage }: ClusterScenario) {
  let [servicesLeft, claimsLeft] = [services, storage?.claims ?? Number.POSITIVE_INFINITY]
  return ({ kind, replicas }: Wish): Has => {
    const hasClaims = kind === 'StatefulSet' && replicas <= claimsLeft
    const hasService = (kind === 'StatefulSet' || kind === 'Deployment') && servicesLeft > 0
    if (hasClaims) claimsLeft -= replicas
    if (hasService) servicesLeft--
    return { hasClaims, hasService }
  }
}

/** Fills up with applications; in large clusters the same ones in namespaces per team. */
function addBusiness(
  { random, scenario }: World,
  wishes: readonly Wish[],
  left: () => number,
  wish: (namespace: string, app: string, replicas: number) => void,
): void {
  const apps = Object.entries(businessApps).flatMap(([namespace, names]) =>
    names.map((app) => [namespace, app] as const),
  )
  const usual = Math.max(2, Math.min(8, Math.round(scenario.pods / 60)))
  for (let round = 0; left() > 0; round++) {
    const first = random.int(0, apps.length - 1)
    for (let at = 0; at < apps.length && left() > 0; at++) {
      const [namespace, app] = apps[(first + at) % apps.length] ?? ['default', 'app']
      wish(round === 0 ? namespace : `${namespace}-${round + 1}`, app, random.int(1, usual * 2 - 1))
    }
    if (wishes.length > 50_000) return
  }
}

function workloadOf(world: World, wish: Wish & Has, all: readonly Wish[], bornAt: number, now: number): WorkloadFacts {
  const { random, templates } = world
  const createdAt = Math.floor(random.between(bornAt, now - 2 * DAY))
  const everywhere = wish.placement === 'everywhere'
  const share = everywhere ? { cores: 0.02, bytes: 64 * 2 ** 20 } : shareOf(world, wish.placement, all)
  const size = 0.5 + (hash(`size/${wish.app}`) % 100) / 100
  const thirst = 0.8 + (hash(`thirst/${wish.app}`) % 40) / 100
  // What the system runs on nodes of its own is few and must fit for certain.
  const load = ['worker', 'gpu'].includes(wish.placement) ? world.scenario.load : Math.min(world.scenario.load, 0.5)
  const gpu = wish.placement === 'gpu' ? 1 : 0
  const uid = random.uuid()
  return {
    kind: wish.kind,
    name: wish.app,
    namespace: wish.namespace,
    uid,
    hasClaims: wish.hasClaims,
    serviceUid: wish.hasService ? uuidFrom(`${uid}/service`) : undefined,
    createdAt,
    placement: wish.placement,
    usualReplicas: wish.replicas,
    replicas: wish.replicas,
    template: templates.get({
      app: wish.app,
      version: `${1 + (hash(wish.app) % 4)}.${hash(`minor/${wish.app}`) % 20}.${hash(`patch/${wish.app}`) % 9}`,
      cpuCores: Math.min(share.cores * load * size, 4),
      memoryBytes: Math.min(share.bytes * load * size * thirst, 32 * 2 ** 30),
      everywhere,
      gpus: gpu,
      claims: wish.hasClaims,
    }),
    revision: random.int(1, 40),
    generation: random.int(1, 60),
    changedAt: Math.floor(random.between(createdAt, now - HOUR)),
  }
}

/** What one pod may take so that pods of this placement just fill its nodes. */
function shareOf(world: World, placement: NodePool['role'], all: readonly Wish[]): { cores: number; bytes: number } {
  const nodes = [...world.nodes.values()].filter(({ pool }) => pool.role === placement)
  const pods = all.filter((wish) => wish.placement === placement).reduce((sum, { replicas }) => sum + replicas, 0)
  const one = nodes[0]
  if (!one || pods === 0) return { cores: 0.1, bytes: 2 ** 27 }
  return { cores: (allocatableCores(one) * nodes.length) / pods, bytes: (allocatableBytes(one) * nodes.length) / pods }
}

function addPods(world: World, workload: WorkloadFacts, now: number): void {
  const { random } = world
  const nodes = [...world.nodes.values()]
  for (let number = 0; number < workload.replicas; number++) {
    const oldest = Math.max(workload.createdAt, now - 30 * DAY)
    const drawn = Math.floor(random.between(oldest, now - minutes(2)))
    const job =
      workload.kind === 'CronJob' ? world.addJob(workload, scheduledBefore(workload, now, number + 1)) : undefined
    const createdAt = job?.scheduledAt ?? drawn
    const pod = world.addPod(workload, podName(world, workload, number, job?.name), createdAt, job)
    const node = workload.kind === 'DaemonSet' ? nodes[number] : world.findNode(workload)
    if (!node) continue // stays Pending, as it would
    const claim = world.claimOf(pod)
    if (claim) world.setClaimPhase(claim, 'Bound')
    world.bind(pod, node, createdAt)
    pod.restarts = random.chance(0.06) && !job ? random.int(1, 12) : 0
    pod.outOfMemory = hash(`memory/${pod.uid}`) % 3 === 0
    const since = Math.min(createdAt + seconds(random.int(3, 40)), now)
    const state = stateAtStart(world, workload)
    if (state === 'crashing') pod.restarts += 3 + (hash(`restarts/${pod.uid}`) % 40)
    world.setPodState(pod, state, since)
    if (job) endJob(job, state === 'failed' ? 'failed' : 'complete', since)
  }
}

function stateAtStart({ random }: World, { kind }: WorkloadFacts): PodState {
  if (kind === 'CronJob') return random.chance(0.9) ? 'succeeded' : 'failed'
  if (kind === 'DaemonSet') return 'running'
  return random.chance(0.008) ? 'crashing' : random.chance(0.004) ? 'imageMissing' : 'running'
}

function endJob(job: JobFacts, state: 'complete' | 'failed', endedAt: number): void {
  Object.assign(job, { state, endedAt, failed: state === 'failed' ? backoffLimitOf(job.cronJob) + 1 : 0 })
}

/** What is still said of what is wrong at the start; of all the rest the hour is over. */
function tellTroubles(world: World, now: number): void {
  for (const pod of world.pods.values()) {
    if (pod.state === 'crashing') tellCrash(world, pod, now)
    else if (pod.state === 'imageMissing') tellImageMissing(world, pod, now)
    else if (pod.state === 'unschedulable') tellUnschedulable(world, pod, now)
  }
  for (const claim of world.claims.values()) if (claim.phase === 'Lost') tellClaim(world, claim, now)
}

/** What is wrong with storage on purpose: volumes that are gone, and claims that wait for a pod to use them. */
function troubleClaims(world: World, now: number): void {
  const { lost = 0, unused = 0 } = world.scenario.storage ?? {}
  for (const claim of [...world.claims.values()].slice(0, lost)) world.setClaimPhase(claim, 'Lost')
  for (const { name, namespace } of [...world.deployments.values()].slice(-unused || Number.POSITIVE_INFINITY))
    world.addClaim({ name: `${name}-scratch`, namespace, app: name, labels: {} }, now - DAY)
}

function podName(world: World, workload: WorkloadFacts, number: number, job?: string): string {
  const { kind, name, revision } = workload
  if (kind === 'Deployment') return world.freePodName(workload, `${name}-${templateHash(workload, revision)}`)
  if (kind === 'StatefulSet') return `${name}-${number}`
  return world.freePodName(workload, job ?? name)
}

function addNamespaces(world: World, workloads: readonly WorkloadFacts[], bornAt: number): void {
  const { random, scenario } = world
  const used = [
    ...systemApps(scenario).namespaces,
    ...workloads.map(({ namespace }) => namespace),
    ...productsOf(scenario).map(({ namespace }) => namespace),
  ]
  for (const name of new Set(used)) {
    const system = name.startsWith('openshift') || name.startsWith('kube-') || name === 'default'
    const labels = { 'pod-security.kubernetes.io/enforce': system ? 'privileged' : 'restricted' }
    const team = system ? {} : { team: name.replace(/-\d+$/, '') }
    world.namespaces.set(name, {
      name,
      uid: random.uuid(),
      createdAt: bornAt + random.int(0, HOUR),
      labels: { ...labels, ...team },
    })
    world.touch('namespaces', name)
  }
}

const productsOf = ({ operators }: ClusterScenario): readonly OperatorProduct[] =>
  operatorCatalogue.filter(({ name }) => operators.includes(name))

function addOperators(world: World, bornAt: number, now: number): void {
  for (const product of productsOf(world.scenario)) {
    const createdAt = Math.floor(world.random.between(bornAt, now - DAY))
    const key = `${product.namespace}/${product.name}`
    world.operators.set(key, {
      product,
      namespace: product.namespace,
      uid: world.random.uuid(),
      createdAt,
      version: product.version,
      phase: 'Succeeded',
      reason: 'InstallSucceeded',
      message: 'install strategy completed with no errors',
      changedAt: Math.floor(world.random.between(createdAt, now)),
    })
    world.touch('subscriptions', key)
    world.touch('csvs', `${product.namespace}/${product.name}.v${product.version}`)
  }
}

function addOpenshift(world: World, bornAt: number, now: number): void {
  const { random, scenario } = world
  const version = scenario.openshiftVersion ?? '4.20.0'
  const changedAt = now - random.int(3, 20) * DAY
  for (const name of clusterOperatorNames) {
    const facts = { available: true, progressing: false, degraded: false, reason: 'AsExpected', message: '' }
    const createdAt = bornAt + random.int(0, HOUR)
    world.clusterOperators.set(name, { name, uid: random.uuid(), createdAt, version, ...facts, changedAt })
    world.touch('clusterOperators', name)
  }
  world.version = {
    uid: random.uuid(),
    clusterId: random.uuid(),
    channel: `stable-${version.split('.').slice(0, 2).join('.')}`,
    createdAt: bornAt,
    history: pastVersions(version, bornAt, changedAt),
    updates: [nextPatch(version), nextPatch(nextPatch(version))],
    progress: undefined,
    changedAt,
  }
  world.touch('clusterVersions', 'version')
}

/** The running version and the two patches before it. */
function pastVersions(version: string, bornAt: number, changedAt: number) {
  const [major, minor, patch] = version.split('.').map(Number)
  return [0, 1, 2]
    .filter((back) => (patch ?? 0) >= back)
    .map((back) => {
      const startedAt = Math.max(bornAt, changedAt - back * 35 * DAY - HOUR)
      return {
        version: `${major}.${minor}.${(patch ?? 0) - back}`,
        state: 'Completed' as const,
        startedAt,
        completedAt: Math.min(startedAt + HOUR, changedAt),
      }
    })
}
