import { isKubeError, type KubeClient, type Resource } from '#kube'
import { parseBytes, parseQuantity } from '#model'
import { fields, text } from './read.ts'

interface NodeUsage {
  readonly name: string
  readonly cpuCores: number | undefined
  readonly memoryBytes: number | undefined
}

export type Used = { readonly cpuCores: number; readonly memoryBytes: number }

export const nodeMetrics: Resource<NodeUsage> = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  plural: 'nodes',
  kind: 'NodeMetrics',
  namespaced: false,
  fromJson: (object) => {
    const usage = fields(object.usage)
    return {
      name: object.metadata.name,
      cpuCores: parseQuantity(text(usage.cpu)),
      memoryBytes: parseBytes(text(usage.memory)),
    }
  },
}

/**
 * Measured usage per node, as far as the cluster serves it. A metrics server that is missing, refuses or fails leaves
 * nodes without usage, never without themselves.
 */
export async function measuredUsage(kube: KubeClient, signal: AbortSignal): Promise<ReadonlyMap<string, Used>> {
  const usage = new Map<string, Used>()
  try {
    if (!(await kube.serves(nodeMetrics, signal))) return usage
    for (const { name, cpuCores, memoryBytes } of await kube.listAll(nodeMetrics, { signal })) {
      if (cpuCores !== undefined && memoryBytes !== undefined) usage.set(name, { cpuCores, memoryBytes })
    }
  } catch (error) {
    if (signal.aborted || !isKubeError(error)) throw error
  }
  return usage
}
