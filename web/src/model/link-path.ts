import type { RowLinkView } from '../contract.ts'
import { clusterPath, namespacePath, workloadPath } from '../router.tsx'

/** Where a link of a row leads: the page of a node, a namespace or a workload, or a row beside its table. */
export function linkPath(cluster: string, { type, id }: RowLinkView): string {
  if (type === 'nodes') return clusterPath(cluster, 'nodes', id)
  if (type === 'namespaces') return namespacePath(cluster, id)
  if (type === 'workloads') return workloadPath(cluster, id)
  return `${clusterPath(cluster, 'types', type)}?${new URLSearchParams({ row: id })}`
}
