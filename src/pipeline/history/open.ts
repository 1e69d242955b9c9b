import { DuckDbHistory, type DuckDbHistoryOptions } from './duckdb.ts'
import type { HistoryStore } from './types.ts'
import { VictoriaHistory, type VictoriaHistoryOptions } from './victoria.ts'

/** Where history is kept. */
export type HistoryConfig =
  | ({ readonly kind: 'duckdb' } & DuckDbHistoryOptions)
  | ({ readonly kind: 'victoria' } & VictoriaHistoryOptions)

/**
 * Opens the store with what a former process left in it. A VictoriaMetrics that does not answer opens as well: it is
 * `unavailable` until it does.
 * @throws DirectoryLockedError while another process writes there
 * @throws StoreUnavailableError where the file cannot be opened for a reason that is not its content (rights, a full disk)
 */
export function openHistory(config: HistoryConfig): Promise<HistoryStore> {
  return config.kind === 'duckdb' ? DuckDbHistory.open(config) : VictoriaHistory.open(config)
}
