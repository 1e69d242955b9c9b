import { type Absence, absenceOfRead, type ClusterView, type RowType, unfinishedPods } from '../contract.ts'
import { loadOf } from './cluster.ts'
import type { ExportColumn } from './export.ts'

/** The name to join by first, what people call it beside. */
export const clusterNameExports: readonly ExportColumn<Pick<ClusterView, 'name' | 'displayName'>>[] = [
  { id: 'cluster', header: 'Cluster', value: ({ name }) => name },
  { id: 'displayName', header: 'Display name', value: ({ displayName }) => displayName || null, absence: 'none' },
]

/** Of rows that only name their cluster: what people call it. */
export const displayNameExport = (
  called: (cluster: string) => string | null,
): ExportColumn<{ readonly cluster: string }> => ({
  id: 'displayName',
  header: 'Display name',
  value: ({ cluster }) => called(cluster),
  absence: 'none',
})

type WithParts = Pick<ClusterView, 'parts' | 'filtered'>

/** Why there is no number of this type of a cluster. */
export const absenceOfType =
  (type: RowType) =>
  ({ parts, filtered }: WithParts): Absence =>
    absenceOfRead(parts[type], filtered)

interface Of {
  /** null: only how many there are is known */
  readonly ready: number | null
  readonly total: number
}

/** `ready/total` as the two numbers it is. */
export const ofExports = <T extends WithParts>(
  id: string,
  header: string,
  read: (row: T) => Of | null | undefined,
  type: RowType,
): readonly ExportColumn<T>[] => [
  {
    id: `${id}Ready`,
    header: `${header} ready`,
    value: (row) => read(row)?.ready ?? null,
    absence: absenceOfType(type),
  },
  {
    id: `${id}Total`,
    header: `${header} in all`,
    value: (row) => read(row)?.total ?? null,
    absence: absenceOfType(type),
  },
]

type WithPods = Pick<ClusterView, 'pods'> & WithParts

/** Running pods, and those that are not finished. */
export const podExports: readonly ExportColumn<WithPods>[] = [
  {
    id: 'podsRunning',
    header: 'Pods running',
    value: ({ pods }) => pods?.running ?? null,
    absence: absenceOfType('node'),
  },
  {
    id: 'podsTotal',
    header: 'Pods unfinished',
    value: ({ pods }) => pods && unfinishedPods(pods),
    absence: absenceOfType('node'),
  },
]

/** How full, and whether that is measured or asked for. */
export const loadExports = <T extends WithParts>(
  id: string,
  header: string,
  read: (row: T) => ClusterView['cpuCores'],
): readonly ExportColumn<T>[] => [
  { id, header, kind: 'percent', value: (row) => loadOf(read(row))?.ratio ?? null, absence: absenceOfType('node') },
  {
    id: `${id}Basis`,
    header: `${header} is`,
    value: (row) => loadOf(read(row))?.basis ?? null,
    absence: absenceOfType('node'),
  },
]
