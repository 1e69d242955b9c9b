import type { NodeSnapshot } from './snapshots.ts'

/** What a node says of taking pods. */
export type Readiness = Pick<NodeSnapshot, 'ready' | 'unschedulable'>

/**
 * Whether a node is to be counted as not ready. A collector of the original says of a cordoned node that it is cordoned and
 * nothing of its readiness: to drain a node is no trouble.
 */
export const isNotReady = ({ ready, unschedulable }: Readiness): boolean =>
  ready === 'notReady' || (ready === 'unknown' && !unschedulable)
