import { MAX_WATCHES } from '#collect'
import { wantedNamespaces } from '#monitor'
import { resources } from '#resources'
import { type ConfigReader, configReader } from '#runtime'
import type { Address, CollectionConfig, Env, ReadResult } from './config.ts'
import { askedKubelets, complete, logLevel, parsedAddress } from './config.ts'
import { type MonitorSettings, monitorSettings } from './config-monitor.ts'
import { type PublishConfig, publishing } from './config-publish.ts'
import { type IngesterConfig, ingester } from './config-push.ts'

/** What `cluster-monitor` is told by its flags, as they were written. */
export interface ClusterMonitorFlags {
  readonly addr?: string
  readonly refresh?: string
  readonly apiServer?: string
  readonly logService?: string
  readonly logSource?: string
  readonly nats?: string
  readonly kubeconfig?: string
  readonly context?: string
}

export interface ClusterMonitorConfig {
  readonly logLevel: ReturnType<typeof logLevel>
  readonly dataDir: string
  readonly monitor: MonitorSettings
  readonly collection: CollectionConfig
  /** undefined: nothing is published */
  readonly publish: PublishConfig | undefined
  /** off: it reads its cluster itself */
  readonly ingester: IngesterConfig
  /** of the cluster, instead of the one the service account names */
  readonly apiServer?: string
  readonly kubeconfig?: string
  readonly context?: string
}

const DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/
const UNIT_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 3.6e6 }
/** What the rounds of a hub take at the least, ms. */
const LEAST_ROUND_MS = 30_000
const LEAST_REFRESH_MS = 100
const LEAST_PUBLISH_MS = 1000
const LEAST_RETRY_MS = 1000
const NATS = 'nats://nats:4222'

/** Reads `5s`, `1m30s`, `1.5h` as the original's flags take them. @returns ms; undefined where it is none */
export function parseFlagDuration(text: string): number | undefined {
  const unsigned = text.replace(/^[+-]/, '')
  const sign = text.startsWith('-') ? -1 : 1
  if (unsigned === '0') return 0
  if (!DURATION.test(unsigned)) return undefined
  const parts = [...unsigned.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)]
  return sign * parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (UNIT_MS[unit] ?? Number.NaN), 0)
}

/** @throws ConfigError naming every fault */
export function readClusterMonitorConfig(env: Env, flags: ClusterMonitorFlags): ReadResult<ClusterMonitorConfig> {
  const read = configReader({ ...env, NATS_URL: flags.nats ?? env.NATS_URL ?? NATS })
  return complete(read, describe(read, flags))
}

/** Its settings, for the reference page. */
export function clusterMonitorSettings() {
  const read = configReader({})
  describe(read, {})
  return read.settings()
}

function describe(read: ConfigReader, flags: ClusterMonitorFlags): ClusterMonitorConfig {
  const fallback: Address = { host: '0.0.0.0', port: 8080 }
  const address = flags.addr === undefined ? fallback : parsedAddress(read, '-addr', flags.addr)
  const refreshMs = parseFlagDuration(flags.refresh ?? '5s')
  if (refreshMs === undefined)
    read.fault(`-refresh is ${JSON.stringify(flags.refresh)}; it must be a duration such as 5s or 1m30s`)
  else if (refreshMs < LEAST_REFRESH_MS)
    read.fault(`-refresh is ${flags.refresh}; it must be 100ms or more, as the cluster is read that often`)
  const { apiServer, kubeconfig, context } = flags
  if (apiServer && kubeconfig !== undefined)
    read.fault('-api-server is for the credentials of a pod; with --kubeconfig the file says where the server is')
  if (context !== undefined && kubeconfig === undefined) read.fault('--context needs --kubeconfig')
  const periodMs = refreshMs ?? LEAST_ROUND_MS
  const monitor = monitorSettings(read, { address, refreshMs: periodMs, all: false })
  const publish = publishing(read)
  return {
    logLevel: logLevel(read, 'info'),
    dataDir: read.text('DATA_DIR', { default: './data/cluster-monitor', meaning: 'folder of state and history' }),
    monitor,
    publish: publish && {
      ...publish,
      periodMs: Math.max(LEAST_PUBLISH_MS, periodMs),
      isNamespaceWanted: wantedNamespaces(monitor),
    },
    collection: {
      intervalMs: Math.max(LEAST_ROUND_MS, periodMs),
      operatorScanIntervalMs: 3_600_000,
      resources: resources.filter(({ typeName }) => typeName === 'pods'),
      usageRefreshMs: periodMs,
      retryMs: Math.max(LEAST_RETRY_MS, periodMs),
      // The original has no watches, nor its role the right to one.
      relisting: { everyMs: periodMs, resources: ['nodes', 'namespaces', 'pods'] },
      // The role that the original is deployed with allows this way and no other.
      kubelets: askedKubelets(read, 'proxy'),
      connectTimeoutMs: 10_000,
      snapshotTtlMs: 600_000,
      seriesRetentionMs: 3_600_000,
      concurrency: 1,
      maxWatches: MAX_WATCHES,
      readOnlyMembers: true,
      outboundAllow: [],
    },
    ingester: { ...ingester(configReader({}), 'up'), enabled: false },
    ...(apiServer && { apiServer }),
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(context !== undefined && { context }),
  }
}
