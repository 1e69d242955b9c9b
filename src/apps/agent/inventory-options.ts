import type { InventoryView } from '#inventory'
import type { KubeClient } from '#kube'
import type { ClusterName, RowFeed } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { CollectionSettings } from '../inventory-settings.ts'

/** What inventory of a cluster needs to run. */
export interface InventoryRunOptions {
  readonly settings: CollectionSettings
  readonly cluster: ClusterName
  /** who writes, in sinks: the same after a restart, and of all replicas of one agent */
  readonly process: string
  readonly kube: KubeClient
  /** private folder for what sinks keep */
  readonly directory: string
  readonly metrics: Metrics
  readonly logger: Logger
  readonly signal: AbortSignal
  /** as that of a SinkContext */
  readonly mustLead?: (() => void) | undefined
}

/** How inventory is doing, for probes. */
export interface InventoryReport {
  /**
   * `waiting`: the cluster does not have its kinds, or does not let us read them; `standby`: another replica collects; `reading`: first
   * lists are on their way
   */
  readonly phase: 'waiting' | 'standby' | 'reading' | 'running'
  readonly message?: string
}

/** Inventory of the cluster beside us, from targets to sinks. */
export interface RunningInventory extends AsyncDisposable {
  report(): InventoryReport
  /** what may be read of it; undefined: its objects are being read for the first time */
  view(): InventoryView | undefined
  /** its rows, for a hub */
  readonly feed: RowFeed
}
