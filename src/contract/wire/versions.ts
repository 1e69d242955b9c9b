/** The version of the wire this code speaks best. */
export const WIRE_VERSION = 1
/** The oldest version this code still speaks: the one before, once there is one. */
const OLDEST_VERSION = Math.max(1, WIRE_VERSION - 1)

/** What an end can do beyond the messages of the original. */
export type Capability =
  | 'frames'
  | 'deltas'
  | 'deflate'
  | 'loss'
  | 'plan'
  | 'custom-parts'
  | 'unread-pods'
  | 'steps'
  | 'row-sums'
  | 'register'

/** Everything this code can do, in the order it is told. */
export const capabilities: readonly Capability[] = [
  'frames',
  'deltas',
  'deflate',
  'loss',
  'plan',
  'custom-parts',
  'unread-pods',
  'steps',
  'row-sums',
  'register',
]

/** Versions from `minVersion` to `maxVersion`, and abilities by name; names we do not know are newer than we are. */
export interface Offer {
  readonly minVersion: number
  readonly maxVersion: number
  readonly capabilities: readonly string[]
}

/** What this code offers: put into the Hello of an agent, and what a hub compares a Hello with. */
export const ownOffer: Offer = { minVersion: OLDEST_VERSION, maxVersion: WIRE_VERSION, capabilities }

/** What both ends of a stream speak after the hello. */
export interface Agreement {
  readonly version: number
  /** the ones both ends have */
  readonly capabilities: readonly Capability[]
}

/**
 * The highest version both ends speak, and what both can do.
 * @returns undefined where they have no version in common, or the offer makes no sense: the hub says goodbye with `version`
 */
export function negotiate(offer: Offer, own: Offer = ownOffer): Agreement | undefined {
  const version = Math.min(offer.maxVersion, own.maxVersion)
  if (!(version >= 1 && version >= offer.minVersion && version >= own.minVersion)) return undefined
  const theirs = new Set(offer.capabilities)
  return { version, capabilities: capabilities.filter((one) => own.capabilities.includes(one) && theirs.has(one)) }
}
