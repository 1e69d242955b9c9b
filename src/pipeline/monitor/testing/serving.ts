import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ClusterState, systemClock } from '#model'
import { type Logger, Metrics, silentLogger } from '#runtime'
import type { StateReader } from '#state'
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

/** A monitor on a free port over a state that the test sets. */
export async function serving(
  clusters: readonly ClusterState[],
  more: Partial<MonitorConfig> = {},
  logger: Logger = silentLogger,
) {
  const state = new GivenState(clusters)
  const directory = mkdtempSync(join(tmpdir(), 'monitor-'))
  const metrics = new Metrics({}, { processMetrics: false })
  const monitor = await Monitor.open({
    config: config(more),
    state,
    historyDirectory: join(directory, 'history'),
    logger,
    metrics,
    clock: systemClock,
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
