/**
 * Demand that decides a rate. State changes are always live; what nodes and pods use moves for every one of them all the time, and is
 * read often only where somebody looks.
 *
 *   routes, streams, consumers → look(cluster) → Looks ⇄ marks in Redis ⇄ Looks → UsageRates → loops of the hub, plans of agents
 *
 * A look holds for half a minute, so nobody has to take it back. The sum of what is refreshed so fast is bounded.
 */
export { type Attention, LOOK_MS, Looks, type LooksOptions } from './attention.ts'
export { MAX_ROWS_PER_SECOND, type UsageRates, type UsageRatesOptions, usageRates } from './usage-rates.ts'
