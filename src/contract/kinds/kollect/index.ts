/**
 * The kinds of inventory, as Kollect has them: what is read (profiles, targets), what is put together (inventories), where it
 * goes (sinks), and what bounds it (scopes). Names, fields and defaults are those of `kollect.dev/v1alpha1`, so that manifests
 * written for it apply unchanged.
 */
export { kollectAdmission } from './admission.ts'
export { refusedKollectKinds } from './cluster-sinks.ts'
export { type KollectConnectionTest, type KollectConnectionTestSpec, kollectConnectionTest } from './connection-test.ts'
export { type KollectDatabaseSink, type KollectDatabaseSinkSpec, kollectDatabaseSink } from './database-sink.ts'
export { type KollectEventSink, type KollectEventSinkSpec, kollectEventSink } from './event-sink.ts'
export { goDurationMs, type KollectKnown, type KollectSemantics, kollectFaults } from './faults/index.ts'
export {
  type KollectClusterInventory,
  type KollectClusterInventorySpec,
  type KollectClusterInventoryStatus,
  type KollectInventory,
  type KollectInventorySpec,
  type KollectInventoryStatus,
  kollectClusterInventory,
  kollectInventory,
} from './inventory.ts'
export * from './names.ts'
export type { GroupVersionKind, SinkRef } from './parts.ts'
export { type KollectAttribute, type KollectProfile, type KollectProfileSpec, kollectProfile } from './profile.ts'
export {
  type KollectClusterScope,
  type KollectClusterScopeSpec,
  type KollectScope,
  type KollectScopeSpec,
  kollectClusterScope,
  kollectScope,
} from './scope.ts'
export {
  type KollectSinkStatus,
  type KollectSnapshotSink,
  type KollectSnapshotSinkSpec,
  kollectSnapshotSink,
} from './snapshot-sink.ts'
export {
  type KollectClusterTarget,
  type KollectClusterTargetSpec,
  type KollectClusterTargetStatus,
  type KollectTarget,
  type KollectTargetSpec,
  type KollectTargetStatus,
  kollectClusterTarget,
  kollectTarget,
} from './target.ts'
