import {
  type AgentRights,
  type ClusterName,
  InvalidNameError,
  OBSERVE,
  parseAgentRights,
  parseClusterName,
} from '#model'
import { type ConfigReader, configReader, type LogLevel, parseLogLevel, type Setting } from '#runtime'
import { type CollectionSettings, collectionSettings } from '../inventory-settings.ts'
import { type WebhooksConfig, webhooks } from '../webhooks-config.ts'
import { type InventoryApiConfig, inventoryApi, inventoryApiWarning } from './inventory-api-config.ts'

export type Env = Readonly<Record<string, string | undefined>>

export interface AgentConfig {
  readonly logLevel: LogLevel
  readonly cluster: ClusterName
  /** undefined: there is no hub, unless a certificate names one */
  readonly ingesterAddress: string | undefined
  /** The token, or the file it is read from at each attempt; none where a certificate tells who we are. */
  readonly token: { readonly value: string } | { readonly file: string } | undefined
  /** undefined: in the clear */
  readonly tls?: {
    readonly caFile?: string
    readonly caFingerprint?: string
    readonly serverName?: string
    readonly certFile?: string
    readonly keyFile?: string
  }
  /** where none is given as an argument */
  readonly joinToken?: string
  /** the Secret in which a member keeps its key and certificate; undefined: in a folder of the buffer's */
  readonly identitySecret?: { readonly namespace: string; readonly name: string }
  /** what may be changed on the cluster, beside reading it */
  readonly rights: AgentRights
  /** undefined: no inventory, whatever kinds the cluster has */
  readonly inventory: CollectionSettings | undefined
  /** where its inventory is served; undefined: nowhere */
  readonly inventoryApi: InventoryApiConfig | undefined
  /** where the API server of the cluster is answered about objects of inventory; undefined: it asks nobody */
  readonly webhooks: (WebhooksConfig & { readonly namespace: string }) | undefined
  /** undefined: this process is the only one of its kind */
  readonly leaderElection:
    | {
        readonly namespace: string
        readonly leaseMs: number
        readonly renewDeadlineMs: number
        readonly retryMs: number
      }
    | undefined
  readonly intervalMs: number
  readonly operatorScanIntervalMs: number
  readonly buffer: { readonly directory: string; readonly maxBytes: number; readonly maxAgeMs: number }
  /** `orFree`: nobody asked for that port, so another one does where it is taken */
  readonly healthAddress: { readonly host: string; readonly port: number; readonly orFree?: boolean }
  readonly kubeconfig?: string
  readonly context?: string
}

/** @throws ConfigError naming every fault */
export function readAgentConfig(
  env: Env,
  flags: Env = {},
): { readonly config: AgentConfig; readonly warnings: readonly string[] } {
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
  const read = configReader({ ...env, ...given })
  const merged: Env = { ...env, ...given }
  const config = describeAgent(read, merged)
  read.done()
  const warnings = [...read.warnings()]
  if (merged.BUFFER_SIZE?.trim()) {
    warnings.push(
      'BUFFER_SIZE counted batches in memory and no longer bounds anything; BUFFER_MAX_BYTES and BUFFER_MAX_AGE do',
    )
  }
  if (config.ingesterAddress !== undefined && !config.tls)
    warnings.push('INGESTER_TLS_ENABLED is false: the token and all data travel readable')
  const open = config.inventoryApi && inventoryApiWarning(config.inventoryApi)
  if (open !== undefined) warnings.push(open)
  return { config: Object.freeze(config), warnings }
}

/**
 * The same for `join`: only of a pod do others ask how it is. On a machine nobody else need reach that, and several may join there.
 * @throws ConfigError naming every fault
 */
export function readJoinConfig(env: Env, flags: Env): ReturnType<typeof readAgentConfig> {
  const { config, warnings } = readAgentConfig(env, flags)
  const isAsked = Boolean((flags.HEALTH_ADDRESS ?? env.HEALTH_ADDRESS)?.trim())
  if (isAsked || env.KUBERNETES_SERVICE_HOST) return { config, warnings }
  const healthAddress = { host: '127.0.0.1', port: config.healthAddress.port, orFree: true }
  return { config: Object.freeze({ ...config, healthAddress }), warnings }
}

/** Every setting of the agent, for the reference page. */
export function allSettings(): { readonly agent: readonly Setting[] } {
  const read = configReader({})
  describeAgent(read, {})
  return { agent: read.settings() }
}

function describeAgent(read: ConfigReader, env: Env): AgentConfig {
  const cluster = read.optionalText('CLUSTER_NAME', {
    meaning: 'name of the cluster on the hub, and in sinks of inventory; required',
  })
  const ingesterAddress = read.optionalText('INGESTER_ADDRESS', {
    meaning:
      "address of the hub's ingester: host:port, or any target of gRPC; ingester:9443 where a token is given. Without both there is no hub, and inventory alone is collected",
  })
  const token = read.secret('COLLECTOR_TOKEN', {
    meaning:
      'token that names this cluster on the hub; from a file it is read again at each attempt, so it may be rotated',
  })
  const tokenFile = env.COLLECTOR_TOKEN_FILE?.trim()
  const intervalMs = read.duration('COLLECT_INTERVAL', {
    default: '60s',
    min: '1s',
    max: '1h',
    meaning: 'time between two rounds until the hub sends a plan; a bare number is in seconds',
  })
  read.integer('BUFFER_SIZE', {
    default: 10,
    meaning:
      'accepted and without effect: batches were counted once; BUFFER_MAX_BYTES and BUFFER_MAX_AGE bound the buffer',
  })
  const tls = tlsOf(read)
  const isInventory = read.flag('INVENTORY', {
    default: true,
    meaning: 'collect inventory wherever the kinds of kollect.dev are installed',
  })
  const settings = collectionSettings(read)
  const served = inventoryApi(read)
  const answers = webhooks(read, 'agent')
  const namespace = read.text('NAMESPACE', {
    default: 'clusterpulse-agent',
    meaning: 'namespace of the agent: of its Lease, and of the Secret and the Service of its webhooks',
  })
  const hasToken = tokenFile !== undefined || token !== undefined || tls?.certFile !== undefined
  const hub = ingesterAddress ?? (hasToken ? 'ingester:9443' : undefined)
  if (hub === undefined && !isInventory)
    read.fault('INGESTER_ADDRESS is not set and INVENTORY is false: there is nothing to do')
  if (served && !isInventory)
    read.fault('INVENTORY_HTTP_ENABLED is true and INVENTORY is false: there is nothing to serve')
  return {
    cluster: clusterName(read, cluster),
    ingesterAddress: hub,
    inventory: isInventory ? settings : undefined,
    inventoryApi: served,
    webhooks: answers && { ...answers, namespace },
    token: tokenFile ? { file: tokenFile } : token === undefined ? undefined : { value: token },
    ...(tls && { tls }),
    ...optional(
      'joinToken',
      read.secret('JOIN_TOKEN', {
        meaning: 'of `clusterpulse join`: its token, where no argument gives it; not needed once it was shown',
      }),
    ),
    leaderElection: leaderElection(read, namespace),
    ...optional('identitySecret', identitySecret(read)),
    rights: agentRights(read),
    intervalMs,
    operatorScanIntervalMs: read.duration('OPERATOR_SCAN_INTERVAL', {
      default: '300s',
      min: '1s',
      meaning: 'time between two reads of operators until the hub sends a plan; a bare number is in seconds',
    }),
    buffer: {
      directory: read.text('BUFFER_DIR', { default: './data/agent', meaning: 'folder of the buffer and of the plan' }),
      maxBytes: bytes(read, 'BUFFER_MAX_BYTES', '1GiB', 'most that is kept for a hub that is away'),
      maxAgeMs: read.duration('BUFFER_MAX_AGE', {
        default: '24h',
        min: '1m',
        meaning: 'what is older is thinned to one batch per 5 minutes, and dropped at ten times this age',
      }),
    },
    healthAddress: address(
      read,
      'HEALTH_ADDRESS',
      ':8081',
      'address of /healthz, /readyz and /metrics; probes of a pod come from outside. `clusterpulse join` on a machine takes 127.0.0.1:8081, or a free port where that is taken',
    ),
    logLevel: parseLogLevel(
      read.text('LOG_LEVEL', { default: 'info', meaning: 'trace, debug, info, warn or error; anything else is info' }),
    ),
    ...optional(
      'kubeconfig',
      read.optionalText('KUBECONFIG', { meaning: 'kubeconfig of the cluster; without it the in-cluster account' }),
    ),
    ...optional(
      'context',
      read.optionalText('KUBECONTEXT', { meaning: 'context of the kubeconfig; without it its current one' }),
    ),
  }
}

function leaderElection(read: ConfigReader, namespace: string): AgentConfig['leaderElection'] {
  const isOn = read.flag('LEADER_ELECT', {
    default: false,
    meaning:
      'of several replicas only the holder of the Lease `clusterpulse-agent` in NAMESPACE collects and writes; the others stand by, and one that loses it ends',
  })
  const leaseMs = read.duration('LEADER_ELECT_LEASE', {
    default: '60s',
    min: '2s',
    max: '1h',
    meaning: 'how long the others leave a silent leader its lease',
  })
  const renewDeadlineMs = read.duration('LEADER_ELECT_DEADLINE', {
    default: '40s',
    min: '1s',
    max: '1h',
    meaning:
      'how long a leader goes on without a renewal, such as while the API server is away; shorter than the lease',
  })
  const retryMs = read.duration('LEADER_ELECT_RETRY', {
    default: '5s',
    min: '100ms',
    max: '1h',
    meaning: 'time between two attempts to take or renew the lease; shorter than the deadline',
  })
  if (renewDeadlineMs >= leaseMs) read.fault('LEADER_ELECT_DEADLINE must be shorter than LEADER_ELECT_LEASE')
  if (retryMs >= renewDeadlineMs) read.fault('LEADER_ELECT_RETRY must be shorter than LEADER_ELECT_DEADLINE')
  return isOn ? { namespace, leaseMs, renewDeadlineMs, retryMs } : undefined
}

function identitySecret(read: ConfigReader): AgentConfig['identitySecret'] {
  const text = read.optionalText('IDENTITY_SECRET', {
    meaning:
      'of `clusterpulse join` in a pod: namespace/name of a Secret that is there, in which it keeps its key and certificate; without it in `identity/` of BUFFER_DIR',
  })
  if (text === undefined) return undefined
  const [, namespace, name] = /^([a-z0-9][-a-z0-9]{0,62})\/([a-z0-9][-.a-z0-9]{0,252})$/.exec(text) ?? []
  if (namespace !== undefined && name !== undefined) return { namespace, name }
  read.fault(`IDENTITY_SECRET is ${JSON.stringify(text)}; it must be namespace/name`)
  return undefined
}

function agentRights(read: ConfigReader): AgentRights {
  const text = read.text('AGENT_RIGHTS', {
    default: 'observe',
    meaning:
      'of `clusterpulse join`: what may be changed on the cluster, told to the hub: observe (nothing), namespaced:NAMESPACE,… or full',
  })
  const rights = parseAgentRights(text)
  if (typeof rights !== 'string') return rights
  read.fault(`AGENT_RIGHTS: ${rights}`)
  return OBSERVE
}

function tlsOf(read: ConfigReader): AgentConfig['tls'] {
  const isOn = read.flag('INGESTER_TLS_ENABLED', { default: false, meaning: 'speak TLS to the hub, 1.2 or newer' })
  const caFile = read.optionalText('INGESTER_TLS_CA', {
    meaning: 'PEM file of the authorities that are believed; without it those of the system',
  })
  const serverName = read.optionalText('INGESTER_TLS_SERVER_NAME', {
    meaning: 'name the certificate must carry, where it is not the dialled host',
  })
  const caFingerprint = read.optionalText('INGESTER_CA_FINGERPRINT', {
    meaning: "SHA-256 of the hub's CA or certificate in hex: believed without a file",
  })
  const certFile = read.optionalText('INGESTER_TLS_CERT', {
    meaning: 'PEM file of our own certificate, for mutual TLS',
  })
  const keyFile = read.optionalText('INGESTER_TLS_KEY', { meaning: 'PEM file of its key' })
  if (caFingerprint !== undefined && !/^[0-9a-f]{64}$/i.test(caFingerprint.replaceAll(':', '')))
    read.fault('INGESTER_CA_FINGERPRINT is no SHA-256: it has 64 hex digits, with or without colons')
  if (caFile !== undefined && caFingerprint !== undefined)
    read.fault('INGESTER_TLS_CA and INGESTER_CA_FINGERPRINT exclude each other; set one')
  if ((certFile === undefined) !== (keyFile === undefined))
    read.fault('INGESTER_TLS_CERT and INGESTER_TLS_KEY belong together; set both')
  if (!isOn && (caFingerprint !== undefined || certFile !== undefined))
    read.fault('INGESTER_CA_FINGERPRINT and INGESTER_TLS_CERT need INGESTER_TLS_ENABLED=true')
  if (!isOn) return undefined
  return {
    ...optional('caFile', caFile),
    ...optional('caFingerprint', caFingerprint),
    ...optional('serverName', serverName),
    ...optional('certFile', certFile),
    ...optional('keyFile', keyFile),
  }
}

function clusterName(read: ConfigReader, text: string | undefined): ClusterName {
  try {
    if (text !== undefined) return parseClusterName(text)
    read.fault("CLUSTER_NAME is not set; it is this cluster's name on the hub, and in sinks of inventory")
  } catch (error) {
    if (!(error instanceof InvalidNameError)) throw error
    read.fault(`CLUSTER_NAME: ${error.message}`)
  }
  return parseClusterName('unnamed')
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
}
const LEAST_BYTES = 8 * 2 ** 20

function bytes(read: ConfigReader, name: string, fallback: string, meaning: string): number {
  const text = read.text(name, { default: fallback, meaning: `${meaning}; such as 512MiB, at least 8MiB` })
  const match = /^(\d+(?:\.\d+)?)\s*(Ki|Mi|Gi|k|M|G|)B?$/.exec(text)
  const value = Math.floor(Number(match?.[1]) * (UNITS[match?.[2] ?? ''] ?? Number.NaN))
  if (value >= LEAST_BYTES && Number.isSafeInteger(value)) return value
  read.fault(`${name} is ${JSON.stringify(text)}; it must be a size of at least 8MiB, such as 512MiB or 1GiB`)
  return LEAST_BYTES
}

function address(read: ConfigReader, name: string, fallback: string, meaning: string): AgentConfig['healthAddress'] {
  const text = read.text(name, { default: fallback, meaning })
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65535) {
    read.fault(`${name} is ${JSON.stringify(text)}; it must be host:port or :port`)
    return { host: '127.0.0.1', port: 0 }
  }
  return { host: match[1] ?? (match[2] === '' ? '0.0.0.0' : (match[2] ?? '0.0.0.0')), port }
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]: V }) // the computed key is K
}
