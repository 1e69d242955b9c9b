import { comparePositions, type Delivery, type Position, type Receipt, type Writing } from '../sink.ts'

/** The newest snapshot of an inventory that a sink of events is known to hold. */
export interface HeldSnapshot {
  readonly position: Position
  readonly checksum: string
  readonly complete: boolean
  /** which process wrote it */
  readonly writer: string
  /** whether all of its parts are there */
  readonly isWhole: boolean
}

/** Of a delivery that need not be written: what is told of it, and what is held then. Undefined: it must be written. */
export function knownBy(
  held: HeldSnapshot | undefined,
  { writing, position, checksum, complete }: Delivery,
  writer: string,
): { readonly receipt: Receipt; readonly held: HeldSnapshot } | undefined {
  if (!held) return undefined
  const nothing = { written: 0, removed: 0, bytes: 0 }
  const order = comparePositions(held.position, position)
  if (order > 0) {
    const conflict = `${held.writer || 'another process'} writes ${nameOf(writing)} as well, and started later: nothing of this one is written; give one of the two clusters another name (CLUSTER_NAME, or spec.cluster of the sink)`
    return { held, receipt: { ...nothing, position: held.position, ...(held.writer !== writer && { conflict }) } }
  }
  const isSame = held.checksum === checksum && held.complete === complete
  if (!held.isWhole || (order !== 0 && !isSame)) return undefined
  return { held: { ...held, position }, receipt: { ...nothing, position } }
}

/** What is held once a delivery was written. */
export const heldAfter = ({ position, checksum, complete }: Delivery, writer: string): HeldSnapshot => ({
  ...{ position, checksum, complete, writer },
  isWhole: true,
})

/** One text per inventory of a cluster, and the key of its messages. */
export const keyOf = ({ cluster, namespace, inventory }: Writing): string => `${cluster}/${namespace}/${inventory}`

const nameOf = ({ cluster, namespace, inventory }: Writing): string =>
  `the inventory ${namespace === '' ? '' : `${namespace}/`}${inventory} of ${cluster}`
