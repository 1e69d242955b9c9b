import { isKubeError, type KubeClient, nodeMetrics } from '#kube'
import { parseBytes, parseQuantity } from '#model'
import { fields, text } from './read.ts'

export type Used = { readonly cpuCores: number; readonly memoryBytes: number }

/**
 * Measured usage per node, as far as the cluster serves it. A metrics server that is missing, refuses or fails leaves
 * nodes without usage, never without themselves.
 */
export async function measuredUsage(kube: KubeClient, signal: AbortSignal): Promise<ReadonlyMap<string, Used>> {
  const usage = new Map<string, Used>()
  try {
    if (!(await kube.serves(nodeMetrics, signal))) return usage
    for (const { metadata, usage: measured } of await kube.listAll(nodeMetrics, { signal })) {
      const cpuCores = parseQuantity(text(fields(measured).cpu))
      const memoryBytes = parseBytes(text(fields(measured).memory))
      if (cpuCores !== undefined && memoryBytes !== undefined) usage.set(metadata.name, { cpuCores, memoryBytes })
    }
  } catch (error) {
    if (signal.aborted || !isKubeError(error)) throw error
  }
  return usage
}
