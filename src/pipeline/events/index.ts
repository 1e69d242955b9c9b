/**
 * What just changed: steps from one state to the next, named, in order, replayable for a bounded while.
 *
 *   ingester → state → publish ──► ring ──► subscribers (the API's streams, alerts)
 *   another process writes Redis → mirror → follow ──► ring ──► subscribers
 *
 * A subscriber that comes back with its last id, to this process or to another that follows the same Redis, gets what it missed, or
 * is told to take a new snapshot. Never twice (docs/adr/0023-one-numbering-of-events.md).
 */

export { InProcessEventBus, type InProcessEventsOptions } from './in-process.ts'
export { type EventsConfig, openEvents, type StepSource } from './open.ts'
export type * from './types.ts'
