/**
 * What just changed: changes after they are in state, numbered without a hole, in order, replayable for a bounded while.
 *
 *   ingester → state → publish ──► ring ──► subscribers (the API's streams, alerts)
 *   another process writes Redis → mirror → follow ──► ring ──► subscribers
 *
 * A subscriber that comes back with its last id gets what it missed, or is told to take a new snapshot. Never twice.
 */

export { InProcessEventBus, type InProcessEventsOptions } from './in-process.ts'
export { type ChangeSource, type EventsConfig, openEvents } from './open.ts'
export type * from './types.ts'
