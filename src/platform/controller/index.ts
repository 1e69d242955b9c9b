/**
 * What makes hub objects true: informers keep a copy of the objects, work queues hand their keys to reconcilers, a manager
 * starts both in order, and leader election sees to it that only one process does.
 *
 *   API server → Informer → (trigger) → WorkQueue → Reconciler → outcome: done | again after … | thrown: back-off
 *
 * A reconciler gets a key, never an event, and never runs twice at once for one key. A restart is nothing special.
 */
export { ApiPulse } from './api-pulse.ts'
export { type Condition, setCondition } from './conditions.ts'
export {
  Controller,
  type ControllerOptions,
  onReferredChange,
  onSpecChange,
  type Reconciled,
  type Trigger,
} from './controller.ts'
export {
  CAUGHT_UP_MS,
  changesSpec,
  Informer,
  type InformerOptions,
  keyOf,
  lastingTrouble,
  type ObjectChange,
  type ObjectSource,
  type Troubled,
} from './informer.ts'
export { InformerIndex } from './informer-index.ts'
export { LeaderElection, type LeaderElectionOptions, type Lease } from './leader-election.ts'
export { Manager, type ManagerOptions } from './manager.ts'
export { againAfter, done, type Outcome, type Reconciler } from './types.ts'
export { keyText, WorkQueue, type WorkQueueOptions } from './work-queue.ts'
