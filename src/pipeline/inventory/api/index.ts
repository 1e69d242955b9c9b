/**
 * The inventory of one agent over HTTP: rows, how inventories and targets stand, and streams of what changes. Read from the rows in memory,
 * `GET` only, off unless asked for.
 *
 *   path → method → parameters → may who asks? → is there anything to read yet? → page, statuses or stream
 *
 * An empty list is only ever the whole truth: while nothing was read yet the answer is 503, and one that may lack rows says so (`complete`).
 * @see docs/reference/inventory-api.md
 */
export type { ApiAccess, Review, Verdict } from './access.ts'
export { InventoryApi, type InventoryApiOptions, type Readable } from './server.ts'
export { InventoryView } from './view.ts'
