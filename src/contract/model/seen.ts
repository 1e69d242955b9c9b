import type { NodeSnapshot, PodSummary, SnapshotOf, SnapshotType } from './snapshots.ts'

/**
 * A snapshot as far as somebody may see it. Rows that are hidden are not there at all; in a row that is shown, what is
 * counted over hidden things is null, as is what was measured where measurements are not for them.
 */
export type SeenNode = NodeSnapshot
/** `unscheduled` is null where pods are hidden. */
export type SeenPodSummary = Omit<PodSummary, 'unscheduled'> & { readonly unscheduled: number | null }

interface SeenTypes {
  node: SeenNode
  podSummary: SeenPodSummary
}
/** A snapshot of this type as far as somebody may see it. */
export type SeenOf<T extends SnapshotType> = T extends keyof SeenTypes ? SeenTypes[T] : SnapshotOf<T>
