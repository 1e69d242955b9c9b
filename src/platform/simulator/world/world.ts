import { invariant } from '#model'
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
import type { Random } from '../random.ts'
import type { ClusterScenario } from '../types.ts'
import {
  type ClusterOperatorFacts,
  type ClusterVersionFacts,
  isFinished,
  type NamespaceFacts,
  type NodeFacts,
  type OperatorFacts,
  type PodFacts,
  type PodState,
  podKey,
  type WorkloadFacts,
} from './facts.ts'

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
  readonly namespaces = new Map<string, NamespaceFacts>()
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

  /** What changed since the last call, in the order it began to change. */
  takeChanges(): WorldChange[] {
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
    if (workload.kind === 'Deployment') this.deployments.set(podKey(workload), workload)
    this.touchWorkload(workload)
  }

  touchWorkload(workload: WorkloadFacts): void {
    if (workload.kind === 'Deployment') this.touch('deployments', podKey(workload))
  }

  /** Makes a pod that waits for its node; `place` or `settle` find it one. */
  addPod(workload: WorkloadFacts, name: string, now: number): PodFacts {
    const address = this.#addresses++
    const pod: PodFacts = {
      name,
      namespace: workload.namespace,
      uid: this.random.uuid(),
      workload,
      kin: this.#kinOf(workload),
      revision: workload.revision,
      createdAt: now,
      node: undefined,
      ip: ['10', 128 + ((address >> 16) % 64), (address >> 8) & 255, address & 255].join('.'),
      state: 'unschedulable',
      stateSince: now,
      restarts: 0,
    }
    const key = podKey(pod)
    invariant(!this.pods.has(key), `pod names are unique: ${key}`)
    this.pods.set(key, pod)
    into(this.#podsByWorkload, workload, pod)
    this.waiting.add(pod)
    this.touch('pods', key)
    this.touchWorkload(workload)
    return pod
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
    this.touchWorkload(pod.workload)
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
    this.touchWorkload(pod.workload)
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

const NONE: ReadonlySet<PodFacts> = new Set()
const load = (node: NodeFacts): number => node.requestedCores / node.pool.cpuCores

function into<K, V>(index: Map<K, Set<V>>, key: K, value: V): void {
  const set = index.get(key)
  if (set) set.add(value)
  else index.set(key, new Set([value]))
}
