import { type AddressKind, addressKind } from './address.ts'

/** What the process opens for sinks beyond the internet; never an object of a tenant. */
export interface SinkAddresses {
  /** the machine itself, and `file://` remotes */
  readonly allowLoopback: boolean
  /** private networks, where sinks of the same cluster are */
  readonly allowPrivate: boolean
}

/** Names of what gives machines their credentials. */
const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
])

const WORDS: Readonly<Record<Exclude<AddressKind, 'internet'>, string>> = {
  private: 'of a private network',
  shared: 'of a network between carriers, or for benchmarks',
  loopback: 'of the machine itself',
  'link-local': 'link-local',
  metadata: 'of a metadata service',
  unusable: 'of nobody, or of everybody',
}

/** The setting that opens it; undefined: none does. */
const SETTING: Readonly<Partial<Record<AddressKind, string>>> = {
  private: 'SINK_ALLOW_PRIVATE',
  loopback: 'SINK_ALLOW_LOOPBACK',
}

function kindOf(host: string): AddressKind | undefined {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return 'loopback'
  return METADATA_NAMES.has(name) ? 'metadata' : addressKind(name)
}

/**
 * Why nothing may be sent to this host of a sink, as far as its text shows it; undefined where it may. A name is decided behind
 * name resolution, when it is dialed.
 */
export function sinkHostProblem(host: string, addresses: SinkAddresses): string | undefined {
  const problem = sinkAddressProblem(host, addresses)
  return problem && `names ${host}, ${problem}`
}

/** The same without the host, which may come from a Secret. */
export function sinkAddressProblem(host: string, { allowLoopback, allowPrivate }: SinkAddresses): string | undefined {
  const kind = kindOf(host.replace(/^\[|\]$/g, ''))
  if (kind === undefined || kind === 'internet') return undefined
  if ((kind === 'loopback' && allowLoopback) || (kind === 'private' && allowPrivate)) return undefined
  const setting = SETTING[kind]
  const next = setting
    ? `set ${setting} for the process where that is meant`
    : 'no setting opens it; use another address'
  return `an address ${WORDS[kind]}: nothing is sent there; ${next}`
}
