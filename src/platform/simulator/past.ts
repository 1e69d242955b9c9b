import type { DeploymentSnapshot, NodeSnapshot, PodCounts, SnapshotOf, SnapshotType } from '#model'
import { minutes } from '#model'
import { type Trouble, troubleAt } from './past-troubles.ts'
import { hash } from './random.ts'
import { usualDemand, waveOf } from './rhythm.ts'

const HOUR = minutes(60)
const DAY = 24 * HOUR

/** What numbers are made of, and where the node stands: a thousand pictures need not carry the rest. */
type NodeThen = Pick<
  NodeSnapshot,
  'name' | 'labels' | 'roles' | 'ready' | 'unschedulable' | 'capacity' | 'allocatable' | 'requested' | 'used' | 'pods'
>

/** All items of each type that was read of one cluster at one time. */
export type Picture = { readonly [T in Exclude<SnapshotType, 'node'>]?: readonly SnapshotOf<T>[] } & {
  readonly node?: readonly NodeThen[]
}

/** What grew in a month: usage and requests by a fifth, things by a tenth. */
const GROWTH = 0.2
const NEW_THINGS = 0.1
/** Requests and pods grow when something is released. */
const RELEASE_EVERY_MS = 36 * HOUR

/**
 * What a cluster of the demo was like, made of what it is: the same nodes, with the rhythm they live in, less of
 * everything the longer ago, and the troubles of `past-troubles.ts`. At `known` it is what it is.
 */
export class Past {
  readonly #cluster: string
  readonly #now: Picture
  readonly #known: number
  /** of each node */
  readonly #unrest = new Map<string, (at: number) => Unrest>()
  /** of each node when the picture was true */
  readonly #unrestNow = new Map<string, Unrest>()
  /** of each name from 0 to 1, which of those that are there now came last */
  readonly #newness = new Map<string, number>()

  /** @param known when the picture was true, ms; what is asked for is before it */
  constructor(cluster: string, now: Picture, known: number) {
    this.#cluster = cluster
    this.#now = {
      ...now,
      ...(now.clusterOperator && {
        clusterOperator: now.clusterOperator.map((operator) => ({ ...operator, ...plainOperator })),
      }),
    }
    this.#known = known
    for (const { name } of now.node ?? []) {
      const unrest = unrestOf(name)
      this.#unrest.set(name, unrest)
      this.#unrestNow.set(name, unrest(known))
    }
  }

  at(at: number): Picture {
    const trouble = troubleAt(this.#cluster, this.#known - at)
    const { node, podSummary, namespace, deployment, operator, clusterOperator } = this.#now
    const busy = usualDemand(at) / usualDemand(this.#known)
    const size = this.#released(at) * (1 + 0.06 * (busy - 1))
    const lost = new Set((node ?? []).filter((one) => trouble.loses(one)).map(({ name }) => name))
    const left = node ? (node.length - lost.size) / Math.max(1, node.length) : 1
    return {
      ...(node && {
        node: node.map((one) =>
          lost.has(one.name) ? silent(one) : this.#node(one, { at, busy, size, left, trouble }),
        ),
      }),
      ...(podSummary && {
        podSummary: podSummary.map((pods) => {
          const counts = podsThen(pods.counts, size)
          return { ...pods, byNamespace: {}, counts: troubled(counts, Math.round(counts.running * trouble.waiting)) }
        }),
      }),
      ...(namespace && { namespace: this.#thoseOf(namespace, at) }),
      ...(deployment && {
        deployment: waitingOf(this.#thoseOf(deployment, at), trouble.waiting),
      }),
      ...(operator && { operator: this.#thoseOf(operator, at) }),
      ...(clusterOperator && { clusterOperator }),
    }
  }

  #node(
    node: NodeThen,
    { at, busy, size, left, trouble }: { at: number; busy: number; size: number; left: number; trouble: Trouble },
  ): NodeThen {
    const { name, labels, roles, capacity, allocatable, requested, used, pods } = node
    const now = this.#unrestNow.get(node.name) ?? CALM
    const then = this.#unrest.get(node.name)?.(at) ?? CALM
    // Those that are left carry what the others did.
    const more = (size / left) * trouble.rush
    const cpu = more * busy * (then.cpu / now.cpu)
    const memory = (0.6 + 0.4 * more) * (then.memory / now.memory) * trouble.leak
    return {
      name,
      labels,
      roles,
      ready: 'ready',
      unschedulable: false,
      capacity,
      allocatable,
      requested: requested && {
        cpuCores: atMost(requested.cpuCores * more, 0.98, allocatable.cpuCores),
        memoryBytes: Math.round(atMost(requested.memoryBytes * more, 0.98, allocatable.memoryBytes)),
      },
      used: used && {
        cpuCores: atMost(used.cpuCores * cpu, 0.97, allocatable.cpuCores),
        memoryBytes: Math.round(atMost(used.memoryBytes * memory, 0.96, allocatable.memoryBytes)),
      },
      pods: pods && podsThen(pods, more),
    }
  }

  /** Those that were there: what is new came one after the other. */
  #thoseOf<T extends { readonly name: string }>(items: readonly T[], at: number): readonly T[] {
    const gone = (NEW_THINGS * (this.#known - at)) / (30 * DAY)
    return items.filter(({ name }) => this.#newnessOf(name) >= gone)
  }

  #newnessOf(name: string): number {
    const known = this.#newness.get(name)
    if (known !== undefined) return known
    const newness = hash(`new/${name}`) / 2 ** 32
    this.#newness.set(name, newness)
    return newness
  }

  #released(at: number): number {
    const ago = Math.floor((this.#known - at) / RELEASE_EVERY_MS) * RELEASE_EVERY_MS
    return 1 - (GROWTH * ago) / (30 * DAY)
  }
}

const atMost = (amount: number, share: number, limit: number | null): number =>
  Math.min(amount, share * (limit ?? Infinity))

/** @param share of those that wait, from 0 to 1; always the same ones */
const waitingOf = (deployments: readonly DeploymentSnapshot[], share: number): readonly DeploymentSnapshot[] =>
  share === 0
    ? deployments
    : deployments.map((one) => (hash(one.name) / 2 ** 32 < share ? { ...one, ready: 0, available: 0 } : one))

/** Factors of what a node has in use. */
interface Unrest {
  readonly cpu: number
  readonly memory: number
}

const CALM: Unrest = { cpu: 1, memory: 1 }

function unrestOf(node: string): (at: number) => Unrest {
  const [cpu, hour, memory] = [
    waveOf(`${node}/cpu`, minutes(4)),
    waveOf(`${node}/hour`, HOUR),
    waveOf(`${node}/memory`, minutes(40)),
  ]
  return (at) => ({ cpu: 1 + 0.05 * cpu(at) + 0.08 * hour(at), memory: 1 + 0.03 * memory(at) })
}

/** What no number is made of. */
const plainOperator = {
  ...{ conditions: [], versions: [], relatedObjects: [] },
  ...{ available: true, progressing: false, degraded: false },
}

/** A node whose kubelet says nothing: its pods are where they were, and nobody knows how they are. */
function silent(node: NodeThen): NodeThen {
  const lost = ({ total, succeeded, failed }: PodCounts) => total - succeeded - failed
  const pods = node.pods && { ...node.pods, running: 0, pending: 0, unknown: lost(node.pods) }
  return { ...node, ready: 'unknown', used: null, pods }
}

function podsThen({ running, pending, failed, succeeded, unknown }: PodCounts, size: number): PodCounts {
  const then = Math.round(running * size)
  const total = then + pending + failed + succeeded + unknown
  return { total, running: then, pending, failed, succeeded, unknown }
}

const troubled = (counts: PodCounts, waiting: number): PodCounts =>
  summed({ ...counts, running: counts.running - waiting, pending: counts.pending + waiting })

const summed = (counts: PodCounts): PodCounts => {
  const { running, pending, failed, succeeded, unknown } = counts
  return { ...counts, total: running + pending + failed + succeeded + unknown }
}
