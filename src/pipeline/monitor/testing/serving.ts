import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, type ClusterState, systemClock } from '#model'
import { type Logger, Metrics, silentLogger } from '#runtime'
import type { StateReader } from '#state'
import { HistoryFiles } from '../history/files.ts'
import { type NewPoints, UsageHistory } from '../history/history.ts'
import { Monitor, type MonitorConfig } from '../monitor.ts'
import { SECRET } from './tokens.ts'

/** A state that a test sets. */
export class GivenState implements StateReader {
  #clusters: readonly ClusterState[]
  #version = 1

  constructor(clusters: readonly ClusterState[]) {
    this.#clusters = clusters
  }

  set(...clusters: readonly ClusterState[]): void {
    this.#clusters = clusters.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    this.#version++
  }

  availability = () => ({ state: 'available' }) as const
  version = () => this.#version
  clusters = () => this.#clusters
  cluster = (name: string) => this.#clusters.find((one) => one.name === name)
  alerts = () => []
}

export const config = (more: Partial<MonitorConfig> = {}): MonitorConfig => ({
  address: { host: '127.0.0.1', port: 0 },
  refreshMs: 50,
  defaultCluster: 'local-cluster',
  tokens: { secret: SECRET },
  tenancy: { systemNamespace: 'core', tenantPrefix: 'compute-', ownerLabel: 'user-id' },
  allNamespaces: false,
  corsOrigins: ['dash.example.com'],
  deadBandPoints: 0,
  historyMaxBytes: 2 ** 24,
  maxConnections: 200,
  ...more,
})

export interface ServingWords {
  readonly clock?: Clock
  /** what was measured before */
  readonly past?: readonly NewPoints[]
}

/** A monitor on a free port over a state that the test sets. */
export async function serving(
  clusters: readonly ClusterState[],
  more: Partial<MonitorConfig> = {},
  logger: Logger = silentLogger,
  { clock = systemClock, past = [] }: ServingWords = {},
) {
  const state = new GivenState(clusters)
  const directory = mkdtempSync(join(tmpdir(), 'monitor-'))
  const historyDirectory = join(directory, 'history')
  await keep(past, historyDirectory)
  const metrics = new Metrics({}, { processMetrics: false })
  const monitor = await Monitor.open({
    config: config(more),
    state,
    historyDirectory,
    logger,
    metrics,
    clock,
  })
  return {
    state,
    metrics,
    url: monitor.url,
    async [Symbol.asyncDispose]() {
      await monitor[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function keep(past: readonly NewPoints[], directory: string): Promise<void> {
  if (past.length === 0) return
  const maxBytes = 2 ** 30
  const history = new UsageHistory({ maxBytes, wants: () => true })
  for (const points of past) history.replay(points)
  const options = { directory, history, maxBytes, logger: silentLogger, clock: systemClock }
  await using files = await HistoryFiles.open(options)
  await files.copy()
}
