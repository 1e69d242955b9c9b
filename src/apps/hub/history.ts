import { type HistoryStore, openHistory } from '#history'
import type { HistoryConfig } from './config-push.ts'
import type { HubLogger } from './run.ts'

interface Where {
  /** of the embedded store, or of what the VictoriaMetrics driver notes beside it */
  readonly directory: () => string
  readonly logger: HubLogger
}

/** How the collecting role opens its history; nothing where none is kept. */
export function historyOf(
  config: HistoryConfig,
  { directory, logger }: Where,
): { readonly openHistory?: () => Promise<HistoryStore> } {
  switch (config.kind) {
    case 'off':
      return {}
    case 'duckdb':
      return {
        openHistory: () =>
          openHistory({
            kind: 'duckdb',
            directory: directory(),
            retentionMs: config.retentionMs,
            logger: logger.child({ part: 'history' }),
          }),
      }
    case 'victoria':
      return {
        openHistory: () =>
          openHistory({
            kind: 'victoria',
            endpoint: config.endpoint,
            directory: directory(),
            logger: logger.child({ part: 'history' }),
          }),
      }
  }
}

/** How the answering role opens the history another process writes. */
export function historyReader(
  config: HistoryConfig,
  logger: HubLogger,
): { readonly readHistory?: () => Promise<HistoryStore> } {
  if (config.kind !== 'victoria') return {}
  const { endpoint } = config
  return { readHistory: () => openHistory({ kind: 'victoria', endpoint, logger: logger.child({ part: 'history' }) }) }
}
