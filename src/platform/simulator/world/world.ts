import { invariant } from '#model'
import {
  type ClaimFacts,
  type ClusterOperatorFacts,
  type ClusterVersionFacts,
  type EventFacts,
  isFinished,
  type JobFacts,
  type NamespaceFacts,
  type NodeFacts,
  type OperatorFacts,
  type PodFacts,
  type PodState,
  podKey,
  type ReplicaSetFacts,
  type WorkloadFacts,
} from '../facts.ts'
import { eventName, eventNamespace } from '../objects/event.ts'
import {
  allocatableBytes,
  allocatableCores,
  maxPods,
  type NodeSurroundings,
  nodeSurroundings,
} from '../objects/node.ts'
import { podKin } from '../objects/pod.ts'
import type { PodKin, TemplateCatalogue } from '../objects/pod-template.ts'
import type { WorldResource } from '../objects/resources.ts'
import { CLAIM_NAME, volumeNameOf } from '../objects/storage.ts'
import { labelsOf, replicaSetOf } from '../objects/workloads.ts'
import { type Random, uuidFrom } from '../random.ts'
import type { ClusterScenario } from '../types.ts'

/** One thing that must be written to, or removed from, the API store. */
export interface WorldChange {
  readonly resource: WorldResource
  readonly key: string
}

/**
 * The facts of one simulated cluster and the only way to change them. Keeps the sums and indexes right, and remembers
 * what changed since it was last asked, each thing once. Knows no time and no chance of its own: callers say `now`.
 */
export class World {
  readonly scenario: ClusterScenario
  readonly random: Random
  readonly templates: TemplateCatalogue
  readonly nodes = new Map<string, NodeFacts>()
  readonly pods = new Map<string, PodFacts>()
  readonly workloads: WorkloadFacts[] = []
  readonly deployments = new Map<string, WorkloadFacts>()
  readonly statefulSets = new Map<string, WorkloadFacts>()
  readonly daemonSets = new Map<string, WorkloadFacts>()
  readonly cronJobs = new Map<string, WorkloadFacts>()
  /** those of Deployments, the newest last */
  readonly replicaSets = new Map<string, ReplicaSetFacts>()
  readonly jobs = new Map<string, JobFacts>()
  /** workloads that are reached by name */
  readonly services = new Map<string, WorkloadFacts>()
  readonly claims = new Map<string, ClaimFacts>()
  /** the claims that have a volume, by its name */
  readonly volumes = new Map<string, ClaimFacts>()
  readonly namespaces = new Map<string, NamespaceFacts>()
  /** the one that was said last is the last */
  readonly events = new Map<string, EventFacts>()
  readonly operators = new Map<string, OperatorFacts>()
  readonly clusterOperators = new Map<string, ClusterOperatorFacts>()
  version: ClusterVersionFacts | undefined
  /** workloads whose controllers have something to do */
  readonly unsettled = new Set<WorkloadFacts>()
  /** pods that wait for a node or for their containers */
  readonly waiting = new Set<PodFacts>()
  /** pods that were put out and whose trace is still there, oldest first */
  readonly evicted = new Set<PodFacts>()
  readonly #nodesByRole = new Map<string, readonly NodeFacts[]>()
  readonly #kin = new Map<WorkloadFacts, { readonly revision: number; readonly kin: PodKin }>()
  readonly #podsByNode = new Map<string, Set<PodFacts>>()
  readonly #podsByWorkload = new Map<WorkloadFacts, Set<PodFacts>>()
  readonly #changes = new Map<string, WorldChange>()
  readonly #changedWorkloads = new Set<WorkloadFacts>()
  readonly #replicaSetsOf = new Map<WorkloadFacts, string[]>()
  #surroundings: NodeSurroundings | undefined
  #addresses = 0

  constructor(scenario: ClusterScenario, random: Random, templates: TemplateCatalogue) {
    this.scenario = scenario
    this.random = random
    this.templates = templates
  }

  get surroundings(): NodeSurroundings {
    const apps = new Set(this.workloads.map(({ template }) => template.app))
    this.#surroundings ??= nodeSurroundings(this.scenario, [...apps], this.templates)
    return this.#surroundings
  }

  podsOn(node: string): ReadonlySet<PodFacts> {
    return this.#podsByNode.get(node) ?? NONE
  }

  podsOf(workload: WorkloadFacts): ReadonlySet<PodFacts> {
    return this.#podsByWorkload.get(workload) ?? NONE
  }

  /** Must be called after every change of facts outside this class. */
  touch(resource: WorldResource, key: string): void {
    const id = `${resource}/${key}`
    if (!this.#changes.has(id)) this.#changes.set(id, { resource, key })
  }

  /** Says it, or says it again, but not more often than every so many ms; the oldest make room. */
  tell(said: Omit<EventFacts, 'count' | 'firstAt' | 'lastAt'>, now: number, everyMs = 0): void {
    const key = `${eventNamespace(said)}/${eventName(said)}`
    const known = this.events.get(key)
    if (known && now - known.lastAt < everyMs) return
    this.events.delete(key)
    this.events.set(key, { ...said, firstAt: known?.firstAt ?? now, count: (known?.count ?? 0) + 1, lastAt: now })
    this.touch('events', key)
    if (this.events.size > MAX_EVENTS) this.forgetEvents(1)
  }

  /** @param count of the oldest, or of those that were said last before then */
  forgetEvents(count: number, before = Number.POSITIVE_INFINITY): void {
    for (const [key, { lastAt }] of this.events) {
      if (count-- <= 0 || lastAt >= before) return
      this.events.delete(key)
      this.touch('events', key)
    }
  }

  /** What changed since the last call, in the order it began to change. */
  takeChanges(): WorldChange[] {
    for (const workload of this.#changedWorkloads) {
      this.touch(RESOURCES[workload.kind], podKey(workload))
      for (const key of this.#replicaSetsOf.get(workload) ?? []) this.touch('replicaSets', key)
    }
    this.#changedWorkloads.clear()
    const changes = [...this.#changes.values()]
    this.#changes.clear()
    return changes
  }

  addNode(node: NodeFacts): void {
    invariant(!this.nodes.has(node.name), 'node names are unique')
    this.nodes.set(node.name, node)
    this.#nodesByRole.clear()
    this.touch('nodes', node.name)
  }

  addWorkload(workload: WorkloadFacts): void {
    this.workloads.push(workload)
    const key = podKey(workload)
    this[RESOURCES[workload.kind]].set(key, workload)
    this.touchWorkload(workload)
    if (workload.kind === 'Deployment') this.addReplicaSet(workload, workload.changedAt)
    if (workload.serviceUid === undefined || this.services.has(key)) return
    this.services.set(key, workload)
    this.touch('services', key)
  }

  touchWorkload(workload: WorkloadFacts): void {
    this.#changedWorkloads.add(workload)
  }

  /** The revision a Deployment has now; older ones but the last go once they have no pods. */
  addReplicaSet(workload: WorkloadFacts, now: number): void {
    const { revision, template, namespace } = workload
    const key = `${namespace}/${replicaSetOf(workload, revision).name}`
    this.replicaSets.set(key, { workload, revision, template, createdAt: now })
    const all = [...(this.#replicaSetsOf.get(workload) ?? []), key]
    const busy = new Set([...this.podsOf(workload)].map((pod) => pod.revision))
    const kept = all.filter((one, at) => at >= all.length - 2 || busy.has(this.replicaSets.get(one)?.revision ?? 0))
    for (const one of all.filter((each) => !kept.includes(each))) {
      this.replicaSets.delete(one)
      this.touch('replicaSets', one)
    }
    this.#replicaSetsOf.set(workload, kept)
    this.touchWorkload(workload)
  }

  addJob(cronJob: WorkloadFacts, scheduledAt: number): JobFacts {
    const name = `${cronJob.name}-${Math.floor(scheduledAt / 60_000)}`
    const uid = uuidFrom(`${cronJob.uid}/${name}`)
    const job: JobFacts = {
      name,
      uid,
      cronJob,
      scheduledAt,
      state: 'running',
      endedAt: undefined,
      failed: 0,
      retryAt: 0,
    }
    this.jobs.set(`${cronJob.namespace}/${name}`, job)
    this.touchJob(job)
    return job
  }

  touchJob({ cronJob, name }: JobFacts): void {
    this.touch('jobs', `${cronJob.namespace}/${name}`)
    this.touchWorkload(cronJob)
  }

  /** A Job goes with its pods. */
  removeJob(job: JobFacts): void {
    for (const pod of [...this.podsOf(job.cronJob)]) if (pod.job === job) this.removePod(pod)
    this.jobs.delete(`${job.cronJob.namespace}/${job.name}`)
    this.touchJob(job)
  }

  /** The claim a pod mounts, if it has one of its own. */
  claimOf({ workload, namespace, name }: PodFacts): ClaimFacts | undefined {
    return workload.hasClaims ? this.claims.get(`${namespace}/${CLAIM_NAME}-${name}`) : undefined
  }

  addClaim(facts: Pick<ClaimFacts, 'name' | 'namespace' | 'app' | 'labels'>, now: number): ClaimFacts {
    const key = podKey(facts)
    const uid = uuidFrom(`${this.scenario.name}/${key}/${now}`)
    const claim: ClaimFacts = { ...facts, uid, createdAt: now, phase: 'Pending', stuck: false }
    this.claims.set(key, claim)
    this.touch('claims', key)
    return claim
  }

  /** Bound: a volume is made for it. Lost: its volume is gone. */
  setClaimPhase(claim: ClaimFacts, phase: 'Bound' | 'Lost'): void {
    claim.phase = phase
    const volume = volumeNameOf(claim)
    if (phase === 'Bound') this.volumes.set(volume, claim)
    else this.volumes.delete(volume)
    this.touch('volumes', volume)
    this.touch('claims', podKey(claim))
  }

  removeClaim(claim: ClaimFacts): void {
    this.claims.delete(podKey(claim))
    this.touch('claims', podKey(claim))
    if (this.volumes.delete(volumeNameOf(claim))) this.touch('volumes', volumeNameOf(claim))
  }

  /** Makes a pod that waits for its node; `place` or `settle` find it one. */
  addPod(workload: WorkloadFacts, name: string, now: number, job?: JobFacts): PodFacts {
    const address = this.#addresses++
    const pod: PodFacts = {
      name,
      namespace: workload.namespace,
      uid: this.random.uuid(),
      workload,
      kin: this.#kinOf(workload),
      revision: workload.revision,
      job,
      createdAt: now,
      node: undefined,
      ip: ['10', 128 + ((address >> 16) % 64), (address >> 8) & 255, address & 255].join('.'),
      state: 'unschedulable',
      stateSince: now,
      restarts: 0,
      outOfMemory: false,
    }
    const key = podKey(pod)
    invariant(!this.pods.has(key), `pod names are unique: ${key}`)
    this.pods.set(key, pod)
    into(this.#podsByWorkload, workload, pod)
    this.waiting.add(pod)
    this.touch('pods', key)
    this.#touchOwner(pod)
    if (workload.hasClaims && !this.claimOf(pod)) {
      const { namespace, name: app } = workload
      this.addClaim({ name: `${CLAIM_NAME}-${name}`, namespace, app, labels: labelsOf(workload) }, now)
    }
    return pod
  }

  /** The statuses of its owners count it. */
  #touchOwner({ workload, job }: PodFacts): void {
    if (job) this.touchJob(job)
    else this.touchWorkload(workload)
  }

  #kinOf(workload: WorkloadFacts): PodKin {
    const known = this.#kin.get(workload)
    if (known?.revision === workload.revision) return known.kin
    const kin = podKin(workload)
    this.#kin.set(workload, { revision: workload.revision, kin })
    return kin
  }

  freePodName(workload: WorkloadFacts, stem: string): string {
    for (;;) {
      const name = [stem, this.random.suffix(5)].join('-')
      if (!this.pods.has(`${workload.namespace}/${name}`)) return name
    }
  }

  /** Binds a waiting pod to a node, whose sums then hold it. */
  bind(pod: PodFacts, node: NodeFacts, now: number): void {
    invariant(pod.node === undefined, 'a pod is bound once')
    pod.node = node.name
    into(this.#podsByNode, node.name, pod)
    this.#hold(pod, node, 1)
    this.setPodState(pod, 'starting', now)
  }

  setPodState(pod: PodFacts, state: PodState, now: number): void {
    if (pod.state === state) return
    const held = !isFinished(pod)
    pod.state = state
    pod.stateSince = now
    const node = pod.node === undefined ? undefined : this.nodes.get(pod.node)
    if (node && held && isFinished(pod)) this.#hold(pod, node, -1)
    if (state === 'starting' || state === 'unschedulable') this.waiting.add(pod)
    else this.waiting.delete(pod)
    if (state === 'evicted') this.evicted.add(pod)
    this.touch('pods', podKey(pod))
    this.#touchOwner(pod)
    this.unsettled.add(pod.workload)
  }

  removePod(pod: PodFacts): void {
    const key = podKey(pod)
    if (!this.pods.delete(key)) return
    this.waiting.delete(pod)
    this.evicted.delete(pod)
    this.#podsByWorkload.get(pod.workload)?.delete(pod)
    if (pod.node !== undefined) {
      this.#podsByNode.get(pod.node)?.delete(pod)
      const node = this.nodes.get(pod.node)
      if (node && !isFinished(pod)) this.#hold(pod, node, -1)
    }
    this.touch('pods', key)
    this.#touchOwner(pod)
    this.unsettled.add(pod.workload)
  }

  /** Whether the scheduler would put another pod of this workload there. */
  fits(workload: WorkloadFacts, node: NodeFacts): boolean {
    if (workload.placement === 'everywhere') return true
    const { cpuCores, memoryBytes } = workload.template
    return (
      node.state === 'ready' &&
      !node.cordoned &&
      node.pool.role === workload.placement &&
      node.podCount < maxPods(this.scenario) &&
      node.requestedCores + cpuCores <= allocatableCores(node) &&
      node.requestedBytes + memoryBytes <= allocatableBytes(node)
    )
  }

  /** A node with room: the least loaded of two drawn at random, else any; undefined when none fits. */
  findNode(workload: WorkloadFacts): NodeFacts | undefined {
    const all = this.#nodesOf(workload.placement)
    let best: NodeFacts | undefined
    for (let attempt = 0; attempt < 2; attempt++) {
      const node = this.random.pick(all)
      if (node && this.fits(workload, node) && (!best || load(node) < load(best))) best = node
    }
    return best ?? all.find((node) => this.fits(workload, node))
  }

  #nodesOf(placement: WorkloadFacts['placement']): readonly NodeFacts[] {
    let nodes = this.#nodesByRole.get(placement)
    if (!nodes) {
      nodes = [...this.nodes.values()].filter(({ pool }) => pool.role === placement)
      this.#nodesByRole.set(placement, nodes)
    }
    return nodes
  }

  #hold(pod: PodFacts, node: NodeFacts, sign: 1 | -1): void {
    node.podCount += sign
    node.requestedCores += sign * pod.kin.template.cpuCores
    node.requestedBytes += sign * pod.kin.template.memoryBytes
  }
}

/** Of one cluster: as many as a large one says in some minutes. */
const MAX_EVENTS = 1000

const RESOURCES = {
  Deployment: 'deployments',
  StatefulSet: 'statefulSets',
  DaemonSet: 'daemonSets',
  CronJob: 'cronJobs',
} as const satisfies Record<WorkloadFacts['kind'], WorldResource>

const NONE: ReadonlySet<PodFacts> = new Set()
const load = (node: NodeFacts): number => node.requestedCores / node.pool.cpuCores

function into<K, V>(index: Map<K, Set<V>>, key: K, value: V): void {
  const set = index.get(key)
  if (set) set.add(value)
  else index.set(key, new Set([value]))
}
