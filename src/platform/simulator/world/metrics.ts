import type { ApiObject } from '#apiserver'
import { isFinished, type NodeFacts, type PodFacts } from '../facts.ts'
import { timestamp } from '../objects/meta.ts'
import { capacityBytes } from '../objects/node.ts'
import { hash } from '../random.ts'
import { demandOf, wave } from '../rhythm.ts'
import type { World } from './world.ts'

export interface Usage {
  readonly cpuCores: number
  readonly memoryBytes: number
}

/** How often metrics.k8s.io has new numbers: more often than most, so that who looks sees them move. */
const RESOLUTION_MS = 5_000

/** By what its application is asked for at this hour, with some unrest. */
export function podUsage(pod: PodFacts, now: number): Usage {
  if (pod.state !== 'running') return { cpuCores: 0, memoryBytes: 0 }
  const { template } = pod.kin
  const seed = hash(pod.uid)
  const unrest = 1 + 0.18 * wave(seed, now, 90_000) + 0.12 * wave(seed + 1, now, 600_000)
  const memory = 0.45 + 0.35 * template.appetite + 0.06 * wave(seed + 2, now, 1_800_000)
  return {
    cpuCores: template.cpuCores * template.appetite * demandOf(template.app, now) * unrest,
    memoryBytes: template.memoryBytes * memory,
  }
}

/** Its pods and what the machine needs itself; never more than the machine has. */
export function nodeUsage(world: World, node: NodeFacts, now: number): Usage {
  let cpuCores = 0.12 + 0.03 * wave(node.index, now, 60_000)
  let memoryBytes = 900 * 2 ** 20
  for (const pod of world.podsOn(node.name)) {
    const usage = podUsage(pod, now)
    cpuCores += usage.cpuCores
    memoryBytes += usage.memoryBytes
  }
  return {
    cpuCores: Math.min(cpuCores, node.pool.cpuCores * 0.98),
    memoryBytes: Math.min(memoryBytes, capacityBytes(node) * 0.97),
  }
}

const usageText = ({ cpuCores, memoryBytes }: Usage) => ({
  cpu: `${Math.round(cpuCores * 1e9)}n`,
  memory: `${Math.round(memoryBytes / 1024)}Ki`,
})

const atResolution = (now: number): number => Math.floor(now / RESOLUTION_MS) * RESOLUTION_MS

/** NodeMetrics as metrics-server answers; a node that does not report has none. */
export function nodeMetrics(world: World, now: number): ApiObject[] {
  const at = atResolution(now)
  return [...world.nodes.values()]
    .filter(({ state }) => state !== 'lost')
    .map((node) => ({
      apiVersion: 'metrics.k8s.io/v1beta1',
      kind: 'NodeMetrics',
      metadata: { name: node.name, creationTimestamp: timestamp(now) },
      timestamp: timestamp(at),
      window: '20.04s',
      usage: usageText(nodeUsage(world, node, at)),
    }))
}

/** PodMetrics of what runs. */
export function podMetrics(world: World, now: number): ApiObject[] {
  const at = atResolution(now)
  return [...world.pods.values()]
    .filter((pod) => pod.state === 'running' && !isFinished(pod))
    .map((pod) => ({
      apiVersion: 'metrics.k8s.io/v1beta1',
      kind: 'PodMetrics',
      metadata: { name: pod.name, namespace: pod.namespace, creationTimestamp: timestamp(now) },
      timestamp: timestamp(at),
      window: '17.42s',
      containers: containersOf(pod, at),
    }))
}

/** Each has its share. */
function containersOf(pod: PodFacts, at: number) {
  const { containerNames } = pod.kin.template
  const { cpuCores, memoryBytes } = podUsage(pod, at)
  const share = { cpuCores: cpuCores / containerNames.length, memoryBytes: memoryBytes / containerNames.length }
  return containerNames.map((name) => ({ name, usage: usageText(share) }))
}
