import { snapshotKinds } from '../../src/pipeline/resources/index.ts'

/** By which column rows of each kind come where nobody asks for another. */
export const usualOrders = Object.fromEntries(snapshotKinds.map(({ id, sort }) => [id, sort]))
