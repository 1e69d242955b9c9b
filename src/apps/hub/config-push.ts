import { IMAGE } from '#connections'
import type { ConfigReader } from '#runtime'
import { areHubAddresses, MAX_HUB_ADDRESSES } from '#wire'

/** How agents reach the hub. */
export interface IngesterConfig {
  readonly enabled: boolean
  readonly host: string
  readonly port: number
  /** `own`: a certificate from a CA the hub makes and keeps; `off`: tokens and data travel readable */
  readonly tls:
    | { readonly mode: 'own'; readonly hosts: readonly string[] }
    | { readonly mode: 'off' }
    | { readonly mode: 'files'; readonly certFile: string; readonly keyFile: string; readonly clientCaFile?: string }
  /** agents trust the roots of their system: no CA is handed to them */
  readonly useSystemCa: boolean
  /** name agents verify instead of the one they dial: `<name>.<namespace>.svc`; none: the dialled one */
  readonly serviceName?: string
  /** where the CA handed to agents is, for `files` */
  readonly ca:
    | { readonly file: string }
    | { readonly configMap: string; readonly namespace?: string; readonly key: string }
  /** host:port under which agents reach the hub, the first for those that take one; none: not said */
  readonly advertise: readonly string[]
  readonly maxMessageBytes: number
  readonly backlogBytesPerSecond: number
  readonly acceptConnectionTokens: boolean
  readonly agentImage: string
  readonly agentImagePullSecret?: string
  /** undefined: the buffer of a deployed agent ends with its pod */
  readonly agentBuffer: { readonly size: string; readonly storageClass?: string } | undefined
}

export type HistoryConfig =
  | { readonly kind: 'off' }
  | { readonly kind: 'duckdb'; readonly retentionMs: number }
  | { readonly kind: 'victoria'; readonly endpoint: string }

/** The settings of receiving agents. */
export function ingester(read: ConfigReader, role: 'up' | 'manager'): IngesterConfig {
  const own = role === 'up'
  const advertised = read.optionalText('INGESTER_ADVERTISE', {
    meaning:
      'host:port under which agents reach this hub, for connections that name no ingesterAddress; several by commas: members try them in this order, and are told when they change',
  })
  const advertise = (advertised ?? '').split(',').flatMap((one) => one.trim() || [])
  if (advertise.length > 0 && !areHubAddresses(advertise))
    read.fault(
      `INGESTER_ADVERTISE is ${JSON.stringify(advertised)}; it must be host:port, or at most ${MAX_HUB_ADDRESSES} of them with commas between`,
    )
  const host = read.text('INGESTER_HOST', {
    default: own ? '127.0.0.1' : '0.0.0.0',
    meaning: 'address agents are received on',
  })
  const clientCaFile = read.optionalText('INGESTER_CLIENT_CA', {
    meaning: 'PEM file of the CA whose client certificates name agents (mutual TLS)',
  })
  const certFile = read.text('INGESTER_TLS_CERT', {
    default: '/etc/ingester-tls/tls.crt',
    meaning: 'PEM file of the certificate shown to agents; read again when it changes',
  })
  const keyFile = read.text('INGESTER_TLS_KEY', {
    default: '/etc/ingester-tls/tls.key',
    meaning: 'PEM file of its key',
  })
  const withTls = read.flag('INGESTER_TLS_ENABLED', {
    default: own,
    meaning: own
      ? 'agents are received over TLS, with a certificate of the CA in the data folder'
      : 'agents are received over TLS, with the certificate of INGESTER_TLS_CERT',
  })
  if (clientCaFile !== undefined && (!withTls || own))
    read.fault('INGESTER_CLIENT_CA needs the role manager and INGESTER_TLS_ENABLED=true')
  const serviceName = read.text('INGESTER_SERVICE_NAME', {
    default: 'clusterpulse-ingester',
    meaning: 'agents verify the certificate for <this>.<namespace of the hub>.svc, whatever address they dial',
  })
  return {
    enabled: read.flag('INGESTER_ENABLED', { default: true, meaning: 'agents are received' }),
    host,
    port: read.integer('INGESTER_PORT', {
      default: 9443,
      min: own ? 0 : 1024,
      raise: !own,
      max: 65535,
      meaning: own ? 'port agents are received on; 0 takes a free one' : 'port agents are received on',
    }),
    tls: !withTls
      ? { mode: 'off' }
      : own
        ? { mode: 'own', hosts: namesOf(host, advertise) }
        : { mode: 'files', certFile, keyFile, ...optional('clientCaFile', clientCaFile) },
    useSystemCa: read.flag('INGESTER_TLS_USE_SYSTEM_CA', {
      default: false,
      meaning: 'agents verify the hub by the roots of their system; no CA is handed to them',
    }),
    ...(!own && withTls && { serviceName }),
    ca: handedCa(read),
    advertise,
    maxMessageBytes: read.integer('INGESTER_MAX_MESSAGE_BYTES', {
      default: 16 * 2 ** 20,
      min: 2 ** 20,
      max: 256 * 2 ** 20,
      meaning: 'largest message an agent may send',
    }),
    backlogBytesPerSecond: read.integer('INGESTER_BACKLOG_BYTES_PER_SECOND', {
      default: 2 ** 20,
      min: 1024,
      meaning: 'what one agent may send per second out of its buffer beside live data',
    }),
    acceptConnectionTokens: read.flag('INGESTER_ACCEPT_CONNECTION_TOKENS', {
      default: true,
      meaning: "a collector of the original may show the token of its connection's credentials",
    }),
    agentImage: read.text('AGENT_IMAGE', {
      default: IMAGE,
      meaning: 'image deployed on members, without its tag: the tag is collectorVersion, else the version of the hub',
    }),
    ...optional(
      'agentImagePullSecret',
      read.optionalText('AGENT_IMAGE_PULL_SECRET', {
        meaning: 'Secret in the namespace clusterpulse-system of each member to pull that image with',
      }),
    ),
    agentBuffer: agentBuffer(read),
  }
}

function agentBuffer(read: ConfigReader): IngesterConfig['agentBuffer'] {
  const size = read.text('AGENT_BUFFER_SIZE', {
    default: '2Gi',
    meaning:
      'size of the volume claimed on a member for the buffer of its agent; 0: none, and the buffer ends with its pod',
  })
  const storageClass = read.optionalText('AGENT_BUFFER_STORAGE_CLASS', {
    meaning: 'StorageClass of that volume; without it the default of the member',
  })
  if (!/^(0|[1-9]\d*(Mi|Gi|Ti|M|G|T))$/.test(size))
    read.fault(`AGENT_BUFFER_SIZE is ${JSON.stringify(size)}; it must be a quantity such as 2Gi, or 0`)
  return size === '0' ? undefined : { size, ...optional('storageClass', storageClass) }
}

/** Where the CA is that agents are to trust. */
function handedCa(read: ConfigReader): IngesterConfig['ca'] {
  const file = read.optionalText('COLLECTOR_CA_FILE', {
    meaning: 'PEM file with the CA handed to agents, instead of a ConfigMap; read again when it changes',
  })
  const configMap = read.text('COLLECTOR_CA_CONFIGMAP', {
    default: 'ingester-ca',
    meaning: 'ConfigMap with the CA handed to agents',
  })
  const namespace = read.optionalText('COLLECTOR_CA_NAMESPACE', { meaning: 'its namespace; default: that of the hub' })
  const key = read.text('COLLECTOR_CA_KEY', { default: 'service-ca.crt', meaning: 'the key in it' })
  return file === undefined ? { configMap, ...optional('namespace', namespace), key } : { file }
}

/** What the hub's own certificate is for: the machine's usual names, where it listens, and where agents are told to go. */
function namesOf(host: string, advertise: readonly string[]): readonly string[] {
  const advertised = advertise.map((one) => one.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))
  const listens = host === '0.0.0.0' || host === '::' ? [] : [host]
  return [...new Set(['localhost', '127.0.0.1', '::1', ...listens, ...advertised])]
}

/** Where history is kept. `api` reads what `manager` wrote. */
export function history(read: ConfigReader, role: 'up' | 'manager' | 'api'): HistoryConfig {
  const endpoint = read.text('VM_ENDPOINT', {
    default: 'http://victoriametrics:8428',
    meaning: 'address of VictoriaMetrics',
  })
  const enabled = read.flag('VM_ENABLED', {
    default: false,
    meaning:
      role === 'up'
        ? 'history is kept in VictoriaMetrics instead of the data folder'
        : 'history is kept in VictoriaMetrics; without it this role has none',
  })
  const retentionMs =
    role === 'up'
      ? read.duration('HISTORY_RETENTION', {
          default: '720h',
          min: '1h',
          meaning: 'how long embedded history is kept; VictoriaMetrics has a setting of its own',
        })
      : 0
  if (enabled) {
    if (!/^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/.test(endpoint))
      read.fault(`VM_ENDPOINT is ${JSON.stringify(endpoint)}; it must be an http or https address`)
    return { kind: 'victoria', endpoint: endpoint.replace(/\/+$/, '') }
  }
  return role === 'up' ? { kind: 'duckdb', retentionMs } : { kind: 'off' }
}

export const logMaxBytes = (read: ConfigReader): number =>
  read.integer('HUB_LOG_MAX_BYTES', {
    default: 2 ** 30,
    min: 16 * 2 ** 20,
    meaning: "bound of the hub's log; what state and history have not taken waits there, beyond it batches are refused",
  })

/** A field where there is a value, nothing where there is none. */
export function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V }
}
