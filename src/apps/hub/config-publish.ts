import { existsSync, readFileSync } from 'node:fs'
import { isUserSeed, type NatsConfig, type NatsCredentials, parseNatsCreds, parseNatsServers } from '#nats'
import type { ConfigReader } from '#runtime'
import { outboundAllow } from './config-access.ts'
import { optional } from './config-push.ts'

/** Where events are published, and how often. */
export interface PublishConfig {
  readonly nats: NatsConfig
  readonly defaultCluster: string
  /** of each cluster, ms */
  readonly periodMs: number
  /** whose pods are told; default: all */
  readonly isNamespaceWanted?: (namespace: string) => boolean
}

const UNNAMED = 'local-cluster'

/** Whether somebody named it. */
export const isDefaultNamed = ({ defaultCluster: name }: PublishConfig): boolean => name !== UNNAMED

/** The cluster that is meant where none is named: by Cluster Monitor's paths, and by its subjects. */
export const defaultCluster = (read: ConfigReader): string =>
  read.text('DEFAULT_CLUSTER', {
    default: UNNAMED,
    meaning:
      'the cluster that paths of Cluster Monitor and subjects of NATS mean where they name none: it is published on cluster.metrics and cluster.pods, every other on cluster.<name>.metrics and cluster.<name>.pods',
  })

/** The settings of publishing to NATS; undefined: nothing is published. */
export function publishing(read: ConfigReader): PublishConfig | undefined {
  const address = read.optionalText('NATS_URL', {
    meaning:
      'addresses of NATS, tried in turn, such as nats://nats:4222 or tls://a:4222,tls://b:4222: with one, what clusters say is published to the JetStream stream CLUSTER (docs/guide/nats.md)',
  })
  const periodMs = read.duration('NATS_PERIOD', {
    default: '5s',
    min: '1s',
    meaning:
      'time between two events of a cluster on a subject; what its nodes and pods use is read as often as USAGE_REFRESH says',
  })
  const name = defaultCluster(read)
  const credentials = credentialsOf(read)
  const tls = tlsOf(read)
  if (address === undefined) return undefined
  const servers = parseNatsServers(address)
  if ('fault' in servers) {
    read.fault(`NATS_URL ${servers.fault}`)
    return undefined
  }
  if (tls && servers.some((server) => !server.tls))
    read.fault('NATS_CA_FILE and NATS_CERT_FILE need addresses with tls:// in NATS_URL')
  const allowed = outboundAllow(read)
  const nats = { servers, ...optional('tls', tls), ...optional('credentials', credentials) }
  return { nats: { ...nats, outboundAllow: allowed }, defaultCluster: name, periodMs }
}

function credentialsOf(read: ConfigReader): NatsCredentials | undefined {
  const user = read.optionalText('NATS_USER', { meaning: 'user at NATS; goes with NATS_PASSWORD' })
  const password = read.secret('NATS_PASSWORD', { meaning: 'password of that user' })
  const token = read.secret('NATS_TOKEN', { meaning: 'token at NATS' })
  const seed = read.secret('NATS_NKEY', { meaning: 'seed of the key of a user at NATS (SU…)' })
  const creds = read.secret('NATS_CREDS', {
    meaning: 'content of a .creds file of NATS; usually given as NATS_CREDS_FILE, the file itself',
  })
  if ((user === undefined) !== (password === undefined)) read.fault('NATS_USER and NATS_PASSWORD go together')
  const given: NatsCredentials[] = []
  if (user !== undefined && password !== undefined) given.push({ kind: 'password', user, password })
  if (token !== undefined) given.push({ kind: 'token', token })
  if (seed !== undefined) given.push({ kind: 'nkey', seed })
  if (seed !== undefined && !isUserSeed(seed))
    read.fault('NATS_NKEY is no seed of a user: it must be SU and 56 more characters')
  const ofFile = creds === undefined ? undefined : parseNatsCreds(creds)
  if (ofFile && 'fault' in ofFile) read.fault(`NATS_CREDS ${ofFile.fault}`)
  else if (ofFile) given.push(ofFile)
  if (given.length > 1) read.fault('of NATS_USER, NATS_TOKEN, NATS_NKEY and NATS_CREDS give one')
  return given[0]
}

function tlsOf(read: ConfigReader): NatsConfig['tls'] {
  const pem = (name: string, meaning: string) => {
    const file = read.optionalText(name, { meaning })
    if (file === undefined) return undefined
    if (existsSync(file)) return readFileSync(file, 'utf8')
    read.fault(`${name} names ${file}, which does not exist`)
    return undefined
  }
  const ca = pem('NATS_CA_FILE', 'PEM file of the CA of NATS; without it the roots of the system')
  const cert = pem('NATS_CERT_FILE', 'PEM file of the certificate that NATS is shown')
  const key = pem('NATS_KEY_FILE', 'PEM file of its key')
  if ((cert === undefined) !== (key === undefined)) read.fault('NATS_CERT_FILE and NATS_KEY_FILE go together')
  return ca === undefined && cert === undefined
    ? undefined
    : { ...optional('ca', ca), ...optional('cert', cert), ...optional('key', key) }
}
