/**
 * Inventory of one cluster: what targets choose becomes rows, rows become snapshots of inventories, and those go to sinks, each at its own
 * pace.
 *
 *   watches → targets → rows → journal → schedule of each binding → snapshot → sink
 */
export {
  type ApiAccess,
  InventoryApi,
  type InventoryApiOptions,
  InventoryView,
  type Readable,
  type Review,
  type Verdict,
} from './api/index.ts'
export { InventoryEngine, type InventoryEngineOptions } from './engine.ts'
export { type InventoryInformers, inventoryInformers, inventoryResources, type Stored } from './objects.ts'
export { ReconcileMetrics } from './reconcile-metrics.ts'
export type { RowSink, TargetKey, TargetRows } from './rows.ts'
export { RowStore } from './store/index.ts'
export {
  type CompiledTarget,
  collectTarget,
  type Declarations,
  type Declared,
  declarationsOf,
  declaredIn,
  InventoryTargets,
  type InventoryTargetsOptions,
  kindsOf,
  measureWatches,
  type NeededRole,
  neededRoles,
  type SinkToRead,
  type Target,
  type TargetDefaults,
  type TargetResult,
  underScopes,
} from './targets/index.ts'
