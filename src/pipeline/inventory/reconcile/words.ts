import { KOLLECT_GROUP } from '#kinds'

/** Keeps a deleted inventory until what it wrote is taken away. */
export const INVENTORY_FINALIZER = `${KOLLECT_GROUP}/inventory-cleanup`
/** The same of a roll-up. */
export const CLUSTER_INVENTORY_FINALIZER = `${KOLLECT_GROUP}/cluster-inventory-cleanup`
/** Annotation of a deleted inventory: "true" lets it go, and what it wrote stays. */
export const GIVE_UP_CLEANUP = `${KOLLECT_GROUP}/give-up-cleanup`
/** Annotation of a sink: "true" has it looked at now. */
export const TEST_CONNECTION = `${KOLLECT_GROUP}/test-connection`
/** Annotation of a sink: "true" shows in its status what would be written. */
export const PREVIEW = `${KOLLECT_GROUP}/preview`
