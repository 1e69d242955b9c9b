import type { AuditConfig } from '#audit'
import { isKubeletWay, type KubeletWay, kubeletWays, MAX_WATCHES, type Relisting } from '#collect'
import type { BuiltInResource } from '#metricsource'
import type { ResourceListSettings } from '#model'
import { resources } from '#resources'
import { type ConfigReader, configReader, type LogLevel, parseLogLevel } from '#runtime'
import { type WebhooksConfig, webhooks } from '../webhooks-config.ts'
import { type AccessConfig, access, audit, outboundAllow } from './config-access.ts'
import { type AuthorityConfig, type ControlPlaneConfig, controlPlane, memberCa } from './config-control-plane.ts'
import { resourceLists } from './config-lists.ts'
import { type MembersConfig, membership, showsMembers } from './config-members.ts'
import { hubMonitor, type MonitorSettings } from './config-monitor.ts'
import { type PublishConfig, publishing } from './config-publish.ts'
import { type HistoryConfig, history, type IngesterConfig, ingester, logMaxBytes, optional } from './config-push.ts'

/** Redis as the documented variables give it; a `REDIS_URL` wins over the parts. */
export interface RedisConfig {
  readonly host: string
  readonly port: number
  readonly db: number
  readonly username?: string
  readonly password?: string
  readonly tls: boolean
}

export type Env = Readonly<Record<string, string | undefined>>

export interface CollectionConfig {
  readonly intervalMs: number
  readonly operatorScanIntervalMs: number
  /** kinds of rows that are read of every cluster */
  readonly resources: readonly BuiltInResource[]
  /** time between two readings of what nodes and pods use, where somebody looks */
  readonly usageRefreshMs: number
  /** a cluster in trouble is asked again after so long; absent: as others are, once or twice a minute */
  readonly retryMs?: number
  /** what is listed between rounds as well where it cannot be watched; absent: nothing */
  readonly relisting?: Relisting
  /** how kubelets are asked for disks; undefined: not at all */
  readonly kubelets: KubeletWay | undefined
  readonly connectTimeoutMs: number
  readonly snapshotTtlMs: number
  readonly seriesRetentionMs: number
  readonly concurrency: number
  /** watches that one process keeps open over all clusters; what is beyond is polled */
  readonly maxWatches: number
  /** nothing is changed on members, such as their agents */
  readonly readOnlyMembers: boolean
  /** addresses that may be dialed for members and registries although they are link-local, of a metadata service or unspecified */
  readonly outboundAllow: readonly string[]
}

export interface WebConfig {
  readonly host: string
  readonly port: number
  readonly corsOrigins: readonly string[]
  /** of one caller; absent: sized to the fleet */
  /** HTTP connections open at once */
  readonly maxConnections: number
  readonly rateLimit?: { readonly perSecond: number; readonly burst: number }
  readonly access: AccessConfig
}

export interface UpConfig {
  readonly logLevel: LogLevel
  readonly dataDir: string
  readonly web: WebConfig
  readonly controlPlane: ControlPlaneConfig
  readonly collection: CollectionConfig
  /** undefined: ManagedClusters are not looked after */
  readonly members: MembersConfig | undefined
  readonly ingester: IngesterConfig
  readonly history: HistoryConfig
  readonly logMaxBytes: number
  /** undefined: nothing is published */
  readonly publish: PublishConfig | undefined
  /** Cluster Monitor's listener; undefined: there is none */
  readonly monitor: MonitorSettings | undefined
}

export interface ManagerConfig {
  readonly logLevel: LogLevel
  readonly namespace: string
  readonly dataDir: string
  readonly redis: RedisConfig
  readonly collection: CollectionConfig
  /** undefined: ManagedClusters are not looked after */
  readonly members: MembersConfig | undefined
  readonly memberCa: AuthorityConfig
  /** undefined: the API server asks nobody */
  readonly webhooks: WebhooksConfig | undefined
  /** where it is written down who joined, and who did what to members */
  readonly audit: AuditConfig
  /** bounds of the documented lists of pods and so on; undefined: none are written */
  readonly resourceLists: ResourceListSettings | undefined
  readonly ingester: IngesterConfig
  readonly history: HistoryConfig
  readonly logMaxBytes: number
  /** undefined: nothing is published */
  readonly publish: PublishConfig | undefined
  readonly metricsAddress: Address
  readonly healthAddress: Address
  readonly leaderElection: boolean
  /** 1: the manager owns every cluster; more: so many others each own a part of the fleet, and it runs them */
  readonly processes: number
  readonly kubeconfig?: string
}

export interface ApiConfig {
  readonly logLevel: LogLevel
  /** of the hub cluster, for reviews of tokens and groups; absent: the in-cluster account */
  readonly kubeconfig?: string
  readonly redis: RedisConfig
  /** of the hub's own objects */
  readonly namespace: string
  /** members are shown: read from the hub cluster */
  readonly members: boolean
  readonly stateSource: StateSource
  readonly web: WebConfig
  readonly history: HistoryConfig
  /** of /metrics, beside the page's port; absent: there only */
  readonly metricsAddress?: Address
  /** Cluster Monitor's listener; undefined: there is none */
  readonly monitor: MonitorSettings | undefined
}

/** whose keys in Redis are read: those of our manager, or the documented ones that an original manager writes */
export type StateSource = 'clusterpulse' | 'original'

export interface Address {
  readonly host: string
  readonly port: number
}

/** Command-line flags, by the name of the variable they stand for; they win over the environment. */
export type Flags = Readonly<Record<string, string | undefined>>

/** Where Redis is. */
export function redis(read: ConfigReader): RedisConfig {
  const url = read.secret('REDIS_URL', {
    meaning: 'redis:// or rediss:// address with user, password and database; wins over the parts',
  })
  const parts: RedisConfig = {
    host: read.text('REDIS_HOST', { default: 'redis', meaning: 'host of Redis' }),
    port: read.integer('REDIS_PORT', { default: 6379, min: 1, max: 65535, meaning: 'port of Redis' }),
    db: read.integer('REDIS_DB', { default: 0, min: 0, meaning: 'number of the Redis database' }),
    tls: read.flag('REDIS_TLS', { default: false, meaning: 'speak TLS to Redis, verified by the system roots' }),
    ...optional('username', read.optionalText('REDIS_USERNAME', { meaning: 'ACL user of Redis' })),
    ...optional('password', read.secret('REDIS_PASSWORD', { meaning: 'password of Redis' })),
  }
  if (url === undefined) return parts
  try {
    const { protocol, hostname, port, username, password, pathname } = new URL(url)
    if (protocol !== 'redis:' && protocol !== 'rediss:') throw new Error('scheme')
    const db = pathname.length > 1 ? Number(pathname.slice(1)) : 0
    if (!Number.isInteger(db)) throw new Error('database')
    return {
      host: hostname,
      port: port === '' ? 6379 : Number(port),
      db,
      tls: protocol === 'rediss:',
      ...optional('username', username === '' ? undefined : decodeURIComponent(username)),
      ...optional('password', password === '' ? undefined : decodeURIComponent(password)),
    }
  } catch {
    read.fault('REDIS_URL is no address of the form redis://user:password@host:6379/0')
    return parts
  }
}

function collection(read: ConfigReader): CollectionConfig {
  return {
    intervalMs: read.duration('RECONCILIATION_INTERVAL', {
      default: '30s',
      min: '30s',
      raise: true,
      meaning: 'time between two rounds of a cluster that names none',
    }),
    operatorScanIntervalMs: read.duration('OPERATOR_SCAN_INTERVAL', {
      default: '300s',
      min: '60s',
      raise: true,
      meaning: 'time between two reads of OLM operators',
    }),
    resources: collectedResources(read),
    usageRefreshMs: read.duration('USAGE_REFRESH', {
      default: '5s',
      min: '1s',
      max: '10m',
      meaning:
        'time between two readings of what nodes and pods use where somebody looks at it; else it is that of rounds. With more than 20,000 pods looked at it is as much longer as they are more',
    }),
    kubelets: askedKubelets(read),
    connectTimeoutMs: read.duration('CONNECT_TIMEOUT', {
      default: '10s',
      min: '5s',
      raise: true,
      meaning: 'limit of one request to a cluster that names none',
    }),
    snapshotTtlMs: read.duration('CACHE_TTL', {
      default: '600s',
      min: '60s',
      raise: true,
      meaning: 'lifetime of documents in Redis after the last round',
    }),
    seriesRetentionMs: read.duration('METRICS_RETENTION', {
      default: '3600s',
      min: '300s',
      raise: true,
      meaning: 'lifetime of node series in Redis',
    }),
    concurrency: read.integer('COLLECT_CONCURRENCY', {
      default: 16,
      min: 1,
      max: 256,
      meaning: 'clusters read at once',
    }),
    maxWatches: read.integer('MAX_WATCHES', {
      default: MAX_WATCHES,
      min: 0,
      max: 65_536,
      meaning:
        'watches that one process keeps open over all clusters, each with a connection of its own (a dozen a cluster); what is beyond is read with the rounds alone, and the status of its connection says so. 0: nothing is watched',
    }),
    readOnlyMembers: read.flag('READ_ONLY_MEMBERS', {
      default: false,
      meaning:
        'nothing is changed on members: no agent is deployed, changed or removed there, no role written. For a second hub beside one that lives, such as the drill of a backup',
    }),
    outboundAllow: outboundAllow(read),
  }
}

export function askedKubelets(read: ConfigReader, fallback = 'off'): KubeletWay | undefined {
  const word = read.text('KUBELET_STATS', {
    default: fallback,
    oneOf: ['off', ...kubeletWays],
    meaning:
      'how kubelets are asked for disks. direct: agents ask them at their own port, with the right nodes/stats; direct-insecure: the same, whoever shows whatever certificate gets the token of the agent; proxy: through the API server, with the right nodes/proxy, which reaches all of a kubelet. Else disks are not known',
  })
  return isKubeletWay(word) ? word : undefined
}

const NO_RESOURCES = 'none'

function collectedResources(read: ConfigReader): readonly BuiltInResource[] {
  const known = resources.map(({ typeName }) => typeName)
  const named = read.list('COLLECT_RESOURCES', {
    default: known,
    meaning: `kinds of rows that are read of every cluster, of ${known.join(', ')}; ${NO_RESOURCES}: MetricSources alone`,
  })
  if (named.length === 1 && named[0] === NO_RESOURCES) return []
  for (const name of named) {
    if (known.includes(name)) continue
    read.fault(
      `COLLECT_RESOURCES names ${JSON.stringify(name)}, which is none of ${known.join(', ')} and ${NO_RESOURCES}`,
    )
  }
  return resources.filter(({ typeName }) => named.includes(typeName))
}

function web(read: ConfigReader, defaults: { host: string }): WebConfig {
  const legacyHost = read.optionalText('HOST', { meaning: 'older name of API_HOST' })
  const legacyPort = read.integer('PORT', { default: 8080, min: 0, max: 65535, meaning: 'older name of API_PORT' })
  const host = read.text('API_HOST', {
    default: legacyHost ?? defaults.host,
    meaning: 'address the page and the API are served on',
  })
  const port = read.integer('API_PORT', {
    default: legacyPort,
    min: 0,
    max: 65535,
    meaning: 'port of the page and the API; 0 takes a free one',
  })
  const origins = read.list('CORS_ORIGINS', {
    default: read.list('ALLOWED_ORIGINS', { meaning: 'older name of CORS_ORIGINS' }),
    meaning:
      'origins that may read the API from a browser; none by default. `*` stands for all, without cookies, and only by itself',
  })
  const perSecond = read.integer('API_RATE_LIMIT', {
    default: 0,
    min: 0,
    max: 1_000_000,
    meaning:
      'requests a second that one caller may send, twice as many at once; 0 sizes it to the fleet: two per cluster, at least 200, and 8 per cluster at once, at least 400',
  })
  const maxConnections = read.integer('API_MAX_CONNECTIONS', {
    default: 2048,
    min: 16,
    max: 1_000_000,
    meaning:
      'HTTP connections of the page and the API open at once. From nine tenths on idle ones are closed for new ones, first those of the address with most; each open page holds one',
  })
  return {
    host,
    port,
    maxConnections,
    corsOrigins: origins,
    ...(perSecond > 0 && { rateLimit: { perSecond, burst: perSecond * 2 } }),
    access: access(read, host),
  }
}

const address = (read: ConfigReader, name: string, fallback: string, meaning: string): Address =>
  parsedAddress(read, name, read.text(name, { default: fallback, meaning }))

function optionalAddress(read: ConfigReader, name: string, meaning: string): Address | undefined {
  const text = read.optionalText(name, { meaning })
  return text === undefined ? undefined : parsedAddress(read, name, text)
}

export function parsedAddress(read: ConfigReader, name: string, text: string): Address {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65535) {
    read.fault(`${name} is ${JSON.stringify(text)}; it must be host:port or :port`)
    return { host: '127.0.0.1', port: 0 }
  }
  return { host: match[1] ?? (match[2] === '' ? '0.0.0.0' : (match[2] ?? '0.0.0.0')), port }
}

const isInPod = (read: ConfigReader): boolean =>
  read.optionalText('KUBERNETES_SERVICE_HOST', { meaning: 'set by Kubernetes in every pod' }) !== undefined

/** A role's complete configuration with what was read differently than written. */
export interface ReadResult<T> {
  readonly config: T
  readonly warnings: readonly string[]
}

export function complete<T extends object>(read: ConfigReader, config: T): ReadResult<T> {
  read.done()
  return { config: Object.freeze(config), warnings: read.warnings() }
}

export const logLevel = (read: ConfigReader, fallback: string): LogLevel =>
  parseLogLevel(
    read.text('LOG_LEVEL', { default: fallback, meaning: 'trace, debug, info, warn or error; anything else is info' }),
  )

const merged = (env: Env, flags: Flags): Env => ({
  ...env,
  ...Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined)),
})

/** @throws ConfigError naming every fault */
export function readUpConfig(env: Env, flags: Flags = {}): ReadResult<UpConfig> {
  const read = configReader(merged(env, flags))
  return complete(read, describeUp(read))
}

/** @throws ConfigError naming every fault */
export function readManagerConfig(env: Env, flags: Flags = {}): ReadResult<ManagerConfig> {
  const read = configReader(merged(env, flags))
  return complete(read, describeManager(read))
}

/** @throws ConfigError naming every fault */
export function readApiConfig(env: Env, flags: Flags = {}): ReadResult<ApiConfig> {
  const read = configReader(merged(env, flags))
  return complete(read, describeApi(read))
}

function describeUp(read: ConfigReader): UpConfig {
  return {
    logLevel: logLevel(read, 'warn'),
    dataDir: read.text('DATA_DIR', {
      default: './data',
      meaning: 'folder of the embedded stores and of the kubeconfig of the embedded API',
    }),
    controlPlane: controlPlane(read),
    web: web(read, { host: '127.0.0.1' }),
    collection: collection(read),
    members: membership(read, 'up'),
    ingester: ingester(read, 'up'),
    history: history(read, 'up'),
    logMaxBytes: logMaxBytes(read),
    publish: publishing(read),
    monitor: monitor(read),
  }
}

const monitor = (read: ConfigReader): MonitorSettings | undefined =>
  hubMonitor(
    read,
    optionalAddress(
      read,
      'MONITOR_ADDRESS',
      "address of a listener that speaks Cluster Monitor's interface, such as :8090; off by default",
    ),
  )

function describeManager(read: ConfigReader): ManagerConfig {
  return {
    logLevel: logLevel(read, 'info'),
    namespace: hubNamespace(read),
    dataDir: read.text('DATA_DIR', { default: './data/manager', meaning: "folder of the hub's log" }),
    redis: redis(read),
    collection: collection(read),
    members: membership(read, 'manager'),
    memberCa: memberCa(read),
    webhooks: webhooks(read, 'hub'),
    audit: audit(read),
    resourceLists: resourceLists(read),
    ingester: ingester(read, 'manager'),
    history: history(read, 'manager'),
    logMaxBytes: logMaxBytes(read),
    publish: publishing(read),
    metricsAddress: address(
      read,
      'METRICS_BIND_ADDRESS',
      isInPod(read) ? ':8080' : ':8082',
      'address of /metrics; :8080 in a pod, where `api` does not take it',
    ),
    healthAddress: address(read, 'HEALTH_PROBE_BIND_ADDRESS', ':8081', 'address of /healthz and /readyz'),
    leaderElection: read.flag('LEADER_ELECT', { default: false, meaning: 'only the holder of the lease reconciles' }),
    processes: read.integer('MANAGER_PROCESSES', {
      default: 1,
      min: 1,
      max: 64,
      meaning:
        'processes that share the clusters, each with log, state and streams of its own; may be changed at any start',
    }),
    ...optional(
      'kubeconfig',
      read.optionalText('KUBECONFIG', { meaning: 'kubeconfig of the hub cluster; without it the in-cluster account' }),
    ),
  }
}

const hubNamespace = (read: ConfigReader): string =>
  read.text('NAMESPACE', { default: 'clusterpulse', meaning: "namespace of the hub's own objects" })

function describeApi(read: ConfigReader): ApiConfig {
  const level = logLevel(read, 'info')
  const store = redis(read)
  const served = web(read, { host: '0.0.0.0' })
  return {
    logLevel: level,
    redis: store,
    namespace: hubNamespace(read),
    members: showsMembers(read),
    stateSource: stateSource(read, served),
    web: served,
    history: history(read, 'api'),
    monitor: monitor(read),
    ...optional(
      'metricsAddress',
      optionalAddress(
        read,
        'API_METRICS_BIND_ADDRESS',
        'one more address of /metrics, for Prometheus where the page is reached through a proxy only',
      ),
    ),
    ...optional(
      'kubeconfig',
      read.optionalText('KUBECONFIG', {
        meaning:
          'kubeconfig of the hub cluster, for TOKEN_REVIEW, OPENSHIFT_GROUPS and MEMBERS; without it the in-cluster account',
      }),
    ),
  }
}

function stateSource(read: ConfigReader, { access }: WebConfig): StateSource {
  const source = read.text('STATE_SOURCE', {
    default: 'clusterpulse',
    oneOf: ['clusterpulse', 'original'],
    meaning:
      'whose keys in Redis are read: those of our manager, or, with RBAC_SEMANTICS=original, the documented ones of an original manager, for the time of a migration',
  }) as StateSource
  if (source === 'original' && access.semantics !== 'original')
    read.fault(
      'STATE_SOURCE=original needs RBAC_SEMANTICS=original: policies of an original manager cannot be proved to be complete, which our semantics demand (docs/guide/migrate.md)',
    )
  return source
}

/** Every setting of every role, for the reference page. */
export function allSettings() {
  const of = (describe: (read: ConfigReader) => unknown) => {
    const read = configReader({})
    describe(read)
    return read.settings()
  }
  return { up: of(describeUp), manager: of(describeManager), api: of(describeApi) }
}
