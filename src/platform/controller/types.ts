import type { ObjectKey } from '#kube'

/** What a reconcile asks for next. */
export type Outcome = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number }
/** Nothing is left to do for the key until it changes. */
export const done: Outcome = { kind: 'done' }
/** The key is worked on again after so many ms, changed or not. */
export const againAfter = (afterMs: number): Outcome => ({ kind: 'again', afterMs })

/** Makes the world match one object. Gets a key, never an event; safe to repeat; never runs twice at once for one key. */
export interface Reconciler {
  readonly name: string
  /** A throw is retried with exponential back-off and jitter. */
  reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome>
}
