import type { MonitorConfig } from '#monitor'
import type { ConfigReader } from '#runtime'
import { defaultCluster } from './config-publish.ts'
import { optional } from './config-push.ts'

/** Cluster Monitor's listener, as it is configured; the certificate is that of the page. */
export interface MonitorSettings extends Omit<MonitorConfig, 'tls'> {
  /** absent: in memory alone, or where the role keeps it */
  readonly historyDirectory?: string
}

const DEAD_BAND = '0.1'

/** What the listener is told besides its address. @param all whether pods of all namespaces are told of by default */
export function monitorSettings(
  read: ConfigReader,
  {
    address,
    refreshMs,
    all,
  }: { readonly address: MonitorConfig['address']; readonly refreshMs: number; readonly all: boolean },
): MonitorSettings {
  return {
    address,
    refreshMs,
    defaultCluster: defaultCluster(read),
    tokens: {
      secret: read.secret('JWT_SECRET', {
        meaning: 'secret that signs the tokens of Cluster Monitor (HS256); without it no token is valid there',
      }),
      prefixes: read.list('MONITOR_TOKEN_PREFIXES', {
        meaning: 'texts that may stand in front of a token and are taken off, such as `ecloud_`; none by default',
      }),
      ...optional(
        'issuer',
        read.optionalText('MONITOR_TOKEN_ISSUER', { meaning: 'issuer (`iss`) that a token must name; any by default' }),
      ),
      ...optional(
        'audience',
        read.optionalText('MONITOR_TOKEN_AUDIENCE', {
          meaning: 'audience (`aud`) that a token must be for; any by default',
        }),
      ),
    },
    tenancy: {
      systemNamespace: read.text('MONITOR_SYSTEM_NAMESPACE', {
        default: 'core',
        meaning: 'namespace that only administrators of the monitor see',
      }),
      tenantPrefix: read.text('MONITOR_TENANT_PREFIX', {
        default: 'compute-',
        meaning: 'what names of tenants’ namespaces begin with, before the id of the owner',
      }),
      ownerLabel: read.text('MONITOR_OWNER_LABEL', {
        default: 'user-id',
        meaning:
          'label of a namespace with the exact id of its owner; it decides where a namespace has it, so tenants must not be able to write it',
      }),
    },
    allNamespaces: read.flag('MONITOR_ALL_NAMESPACES', {
      default: all,
      meaning: 'pods of every namespace are told of; else those of tenants and of the system namespace alone',
    }),
    corsOrigins: read.list('MONITOR_CORS_ORIGINS', {
      meaning:
        'hosts of pages that may use the monitor, meant with their sub-domains and over https, such as `dash.example.com`; or whole origins such as `http://localhost:5173`',
    }),
    deadBandPoints: deadBand(read),
    historyMaxBytes: read.integer('MONITOR_HISTORY_MAX_BYTES', {
      default: 256 * 2 ** 20,
      min: 2 ** 20,
      meaning:
        'memory of the monitor’s history of nodes and pods, about 0.3 MB of each over a month; beyond it what was not seen for a while goes',
    }),
    maxConnections: read.integer('MONITOR_MAX_CONNECTIONS', {
      default: 12_000,
      min: 16,
      max: 1_000_000,
      meaning: 'connections of the monitor open at once; each stream holds one',
    }),
    ...optional(
      'historyDirectory',
      read.optionalText('MONITOR_HISTORY_DIR', {
        meaning:
          'folder of the monitor’s history, of one process alone; default: in DATA_DIR, and of `api`, which has none, in memory alone',
      }),
    ),
  }
}

function deadBand(read: ConfigReader): number {
  const text = read.text('MONITOR_DEAD_BAND', {
    default: DEAD_BAND,
    meaning:
      'points of percent that a value moves before a difference (`?protocol=2`) tells of it; at the latest after 60 s',
  })
  const points = Number(text)
  if (points >= 0 && points <= 100) return points
  read.fault(`MONITOR_DEAD_BAND is ${JSON.stringify(text)}; it must be a number from 0 to 100`)
  return Number(DEAD_BAND)
}

/** The listener of a hub: off unless it has an address. */
export function hubMonitor(
  read: ConfigReader,
  address: MonitorConfig['address'] | undefined,
): MonitorSettings | undefined {
  const refreshMs = read.duration('MONITOR_REFRESH', {
    default: '5s',
    min: '1s',
    max: '10m',
    meaning: 'time between two whole snapshots in streams of the monitor; usage itself is read by USAGE_REFRESH',
  })
  const settings = monitorSettings(read, { address: address ?? { host: '127.0.0.1', port: 0 }, refreshMs, all: true })
  return address && settings
}
