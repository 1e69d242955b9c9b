import { ORIGINAL_ORIGIN } from '#model'

/** The rounds of the hub itself: it numbers them without holes, and an old one is worth nothing. */
export const PULL = ''

/** Who declares what the hub itself did not see; no agent's buffer has this name. */
export const HUB_ORIGIN = 'hub'

/** Whether the numbers were given by an agent, in the order in which it collected. */
export const isAgent = (origin: string): boolean =>
  origin !== PULL && origin !== HUB_ORIGIN && origin !== ORIGINAL_ORIGIN
