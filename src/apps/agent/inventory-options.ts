import type { InventoryView } from '#inventory'
import type { KubeClient } from '#kube'
import type { ClusterName, RowFeed } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { CollectionSettings } from '../inventory-settings.ts'
import type { AgentConfig } from './config.ts'

/** What inventory of a cluster needs to run. */
export interface InventoryRunOptions {
  readonly settings: CollectionSettings
  readonly webhooks: AgentConfig['webhooks']
  readonly cluster: ClusterName
  readonly kube: KubeClient
  /** private folder for what sinks keep */
  readonly directory: string
  readonly metrics: Metrics
  readonly logger: Logger
  readonly signal: AbortSignal
}

/** How inventory is doing, for probes. */
export interface InventoryReport {
  /** `waiting`: the cluster does not have its kinds, or does not let us read them; `reading`: first lists are on their way */
  readonly phase: 'waiting' | 'reading' | 'running'
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
