import type { ClusterView } from '../contract.ts'
import { loadOf } from './cluster.ts'
import type { ExportColumn } from './export.ts'

/** The name to join by first, what people call it beside. */
export const clusterNameExports: readonly ExportColumn<Pick<ClusterView, 'name' | 'displayName'>>[] = [
  { id: 'cluster', header: 'Cluster', value: ({ name }) => name },
  { id: 'displayName', header: 'Display name', value: ({ displayName }) => displayName || null },
]

/** Of rows that only name their cluster: what people call it. */
export const displayNameExport = (
  called: (cluster: string) => string | null,
): ExportColumn<{ readonly cluster: string }> => ({
  id: 'displayName',
  header: 'Display name',
  value: ({ cluster }) => called(cluster),
})

interface Of {
  /** null: only how many there are is known */
  readonly ready: number | null
  readonly total: number
}

/** `ready/total` as the two numbers it is. */
export const ofExports = <T>(
  id: string,
  header: string,
  read: (row: T) => Of | null | undefined,
): readonly ExportColumn<T>[] => [
  { id: `${id}Ready`, header: `${header} ready`, value: (row) => read(row)?.ready ?? null },
  { id: `${id}Total`, header: `${header} in all`, value: (row) => read(row)?.total ?? null },
]

type WithPods = Pick<ClusterView, 'pods'>

/** Running pods, and those that are not finished. */
export const podExports: readonly ExportColumn<WithPods>[] = [
  { id: 'podsRunning', header: 'Pods running', value: ({ pods }) => pods?.running ?? null },
  { id: 'podsTotal', header: 'Pods unfinished', value: ({ pods }) => pods && pods.total - pods.succeeded },
]

/** How full, and whether that is measured or asked for. */
export const loadExports = <T>(
  id: string,
  header: string,
  read: (row: T) => ClusterView['cpuCores'],
): readonly ExportColumn<T>[] => [
  { id, header, kind: 'percent', value: (row) => loadOf(read(row))?.ratio ?? null },
  { id: `${id}Basis`, header: `${header} is`, value: (row) => loadOf(read(row))?.basis ?? null },
]

/** Of what part of a cluster the rows are, and when the hub read it. */
export const partExports = (
  cluster: Pick<ClusterView, 'name' | 'displayName'>,
  readAt: number | null,
): readonly ExportColumn<unknown>[] => [
  ...clusterNameExports.map((column) => ({ ...column, value: () => column.value(cluster) })),
  { id: 'asOf', header: 'As of', kind: 'time', value: () => readAt },
]

export const createdExports: readonly ExportColumn<{ readonly createdAt: number | null }>[] = [
  { id: 'createdAt', header: 'Created', kind: 'time', value: ({ createdAt }) => createdAt },
]
