/**
 * Cluster Monitor's interface, for one cluster and for the fleet: its documents, history, tokens and tenancy.
 *
 *   token → Principal + generated policies → access view → documents of the state → answers, streams
 */
export {
  type ConditionDocument,
  isStale,
  NODE_USAGE,
  type NodeDocument,
  type NodeSnapshotDocument,
  nodeDocuments,
  nodeSnapshot,
  POD_USAGE,
  type PodDocument,
  type PodSnapshotDocument,
  podDocuments,
  rfc3339,
  type SnapshotTimes,
  timestampOf,
} from './documents.ts'
export { Monitor, type MonitorConfig, type MonitorOptions, wantedNamespaces } from './monitor.ts'
export type { TenancyRules } from './tenancy.ts'
export type { OneTimeNames } from './tickets.ts'
