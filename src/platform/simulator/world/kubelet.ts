import { ApiError } from '#apiserver'
import { isFinished, type NodeFacts, type PodFacts } from '../facts.ts'
import { timestamp } from '../objects/meta.ts'
import { diskBytes } from '../objects/node.ts'
import { hash } from '../random.ts'
import { wave } from '../rhythm.ts'
import { nodeUsage, podUsage } from './metrics.ts'
import type { World } from './world.ts'

const MIB = 2 ** 20
/** How often a kubelet measures disks. */
const RESOLUTION_MS = 10_000
/** What the machine and its images take. */
const SYSTEM_BYTES = 14_000 * MIB

/**
 * What the kubelet of a node answers at a path: its summary, and that it is well.
 * @throws ApiError where there is no such node, or it is lost
 */
export function kubeletAnswer(world: World, name: string, path: string, now: number): object | undefined {
  const node = world.nodes.get(name)
  if (!node) throw new ApiError('NotFound', `nodes "${name}" not found`, { name, kind: 'nodes' })
  if (node.state === 'lost')
    throw new ApiError('ServiceUnavailable', `error trying to reach service: dial tcp: node ${name} does not answer`)
  return path === '/stats/summary' ? summary(world, node, now) : undefined
}

/** @see Kubernetes, kubelet `stats/v1alpha1` Summary */
function summary(world: World, node: NodeFacts, now: number): object {
  const at = Math.floor(now / RESOLUTION_MS) * RESOLUTION_MS
  const time = timestamp(at)
  const pods = [...world.podsOn(node.name)].filter((pod) => !isFinished(pod))
  const capacityBytes = diskBytes
  const usedBytes = nodeDisk(node, pods, at)
  const { cpuCores, memoryBytes } = nodeUsage(world, node, at)
  return {
    node: {
      nodeName: node.name,
      startTime: timestamp(node.createdAt),
      cpu: { time, usageNanoCores: Math.round(cpuCores * 1e9) },
      memory: { time, workingSetBytes: Math.round(memoryBytes) },
      fs: { time, capacityBytes, usedBytes, availableBytes: capacityBytes - usedBytes },
    },
    pods: pods.map((pod) => ({
      podRef: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
      startTime: timestamp(pod.createdAt),
      cpu: { time, usageNanoCores: Math.round(podUsage(pod, at).cpuCores * 1e9) },
      memory: { time, workingSetBytes: Math.round(podUsage(pod, at).memoryBytes) },
      'ephemeral-storage': { time, capacityBytes, usedBytes: podDisk(pod, at) },
    })),
  }
}

/** Logs and what else it writes: more the longer it runs, up to a point, with some unrest. */
function podDisk(pod: PodFacts, at: number): number {
  const seed = hash(pod.uid)
  const most = (20 + (seed % 400)) * MIB
  const grown = 1 - Math.exp(-Math.max(0, at - pod.createdAt) / 86_400_000)
  return Math.round(most * (0.1 + 0.8 * grown + 0.05 * wave(seed + 3, at, 300_000)))
}

/** With everything its pods keep; never more than there is. */
function nodeDisk(node: NodeFacts, pods: readonly PodFacts[], at: number): number {
  const own = SYSTEM_BYTES * (1 + 0.1 * wave(`disk ${node.name}`, at, 3_600_000))
  const used = pods.reduce((sum, pod) => sum + podDisk(pod, at), own)
  return Math.round(Math.min(used, diskBytes * 0.95))
}
