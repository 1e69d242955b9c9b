import { type AdmissionRule, type KollectKnown, kollectAdmission } from '#kinds'

/** Of the object that makes the API server of a cluster ask its agent. */
export const INVENTORY_WEBHOOKS = 'clusterpulse-inventory'

/** The rules on writes of inventory's kinds. Without an answer a write is taken: reconcilers judge the same, and say so. */
export const inventoryRules = (known: KollectKnown): readonly AdmissionRule[] =>
  kollectAdmission(known).map((rule) => ({ ...rule, isOptional: true }))
