/** What a hub is told of the rows of its cluster. */
export { InventoryFeed } from './inventory-feed.ts'
