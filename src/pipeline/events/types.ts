import type { Change } from '#model'

/** `<generation>-<number>`: numbers rise by one within a generation; a new generation means state was loaded anew. */
export type EventId = string

/** A change with its place in the order of its bus. */
export interface NumberedChange {
  readonly id: EventId
  readonly change: Change
}

/** Changes in their order, from one position on. */
export interface Subscription extends AsyncDisposable {
  /** id of the last event at the moment of subscribing: what a snapshot taken now already holds */
  readonly head: EventId
  /** true when `after` was unknown or too old: take a new snapshot, then follow from `head` */
  readonly reset: boolean
}

/** Changes after they are in state, numbered, in order, replayable for a bounded while. */
export interface EventBus extends AsyncDisposable {
  publish(changes: readonly Change[]): Promise<void>
  head(): EventId
  /**
   * Calls `listener` with everything after `after` (or after head), in order, never twice, in groups.
   * The listener must not wait and not throw: it enqueues.
   */
  subscribe(listener: (events: readonly NumberedChange[]) => void, after?: EventId): Subscription
}
