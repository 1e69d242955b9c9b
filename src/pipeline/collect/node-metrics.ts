import type { KubeObject } from '#kube'
import { parseBytes, parseQuantity } from '#model'
import { fields, text } from './read.ts'

export type Used = { readonly cpuCores: number; readonly memoryBytes: number }

/** Usage per node, as measured; what cannot be read, or is less than nothing, is not known. */
export function usedBy(measured: readonly KubeObject[]): ReadonlyMap<string, Used> {
  const used = new Map<string, Used>()
  for (const { metadata, usage } of measured) {
    const cpuCores = parseQuantity(text(fields(usage).cpu))
    const memoryBytes = parseBytes(text(fields(usage).memory))
    if (cpuCores === undefined || memoryBytes === undefined || cpuCores < 0 || memoryBytes < 0) continue
    used.set(metadata.name, { cpuCores, memoryBytes })
  }
  return used
}
