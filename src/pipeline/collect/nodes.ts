import { isKubeError, type KubeClient } from '#kube'
import type { NodeSnapshot } from '#model'
import { type NodeFacts, nodes, pods } from './facts.ts'
import { measuredUsage, nodeMetrics, type Used } from './node-metrics.ts'
import { type NodeLoad, PodSums } from './pod-sums.ts'
import type { Collector } from './types.ts'

/**
 * Nodes of one cluster with the sums of their pods, and the pods of the whole cluster. Paged lists, no watch: time is
 * linear in pods, memory in nodes and namespaces. Without nodes a cluster is not known, so the round fails with this.
 */
export const nodeCollector: Collector = {
  name: 'nodes',
  types: ['node', 'podSummary'],
  reads: [nodes, pods, nodeMetrics],
  critical: true,
  everyMs: 0,
  async collect({ kube, onMalformed }, signal) {
    const [found, sums, usage] = await Promise.all([
      kube.listAll(nodes, { signal }),
      podSums(kube, onMalformed, signal),
      measuredUsage(kube, signal),
    ])
    return {
      node: found.map((node) => nodeSnapshot(node, sums.node(node.name), usage.get(node.name))),
      podSummary: [sums.summary()],
    }
  },
}

/** A list may expire between two pages (a slow cluster, a compacted store): then it is added up anew, twice at most. */
async function podSums(
  kube: KubeClient,
  onMalformed: ((text: string) => void) | undefined,
  signal: AbortSignal,
): Promise<PodSums> {
  for (let attempt = 0; ; attempt++) {
    const sums = new PodSums(onMalformed)
    try {
      for await (const page of kube.list(pods, { signal })) for (const pod of page.items) sums.add(pod)
      return sums
    } catch (error) {
      if (attempt === 2 || !isKubeError(error, 'expired')) throw error
    }
  }
}

export function nodeSnapshot(node: NodeFacts, load: NodeLoad, used: Used | undefined): NodeSnapshot {
  return { ...node, ...load, used: used ?? null }
}
