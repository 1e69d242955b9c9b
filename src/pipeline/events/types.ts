import type { Change } from '#model'

/**
 * Names the state after a step, in every process of the hub that follows the same store; opaque. In one process alone, or over a
 * store that cannot say so, ids of another process are unknown.
 */
export type EventId = string

/** A change, and the step that it belongs to. All changes of a step have its id. */
export interface NumberedChange {
  readonly id: EventId
  readonly change: Change
}

/** Changes in their order, from one position on. */
export interface Subscription extends AsyncDisposable {
  /** id of the last step at the moment of subscribing: what a snapshot taken now already holds */
  readonly head: EventId
  /** true when `after` was unknown or too old: take a new snapshot, then follow from `head` */
  readonly reset: boolean
}

/** Changes after they are in state, in steps, in order, replayable for a bounded while. */
export interface EventBus extends AsyncDisposable {
  /** One step of this process. To be called in the turn in which state moves, so that what subscribers read is that step's state. */
  publish(changes: readonly Change[]): Promise<void>
  /** id of the last step: of the state that can be read now */
  head(): EventId
  /**
   * Calls `listener` with everything after `after` (or after head), in order, never twice, in groups of whole steps. While it runs,
   * the state that can be read is exactly that of the last id of the group, except for what was missed, which comes in one group
   * whose last id is the head. The listener must not wait and not throw: it enqueues.
   */
  subscribe(listener: (events: readonly NumberedChange[]) => void, after?: EventId): Subscription
}
