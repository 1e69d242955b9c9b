import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { FleetError } from '#model'
import { type AddressKind, addressKind, embeddedAddress } from './address.ts'
import { type SinkAddresses, sinkAddressProblem } from './sink-hosts.ts'

/**
 * What is dialed on somebody's word: a member's API, a registry, an identity provider, a server that events are published to, a sink
 * of inventory.
 */
export type OutboundUse = 'member' | 'registry' | 'sign-in' | 'broker' | 'sink'

/**
 * What each use may never dial. Loopback and private networks stay open: members, registries and providers stand there, and a hub on
 * a person's machine has its simulated members on the loopback.
 */
const REFUSED: Readonly<Record<Exclude<OutboundUse, 'sink'>, ReadonlySet<AddressKind>>> = {
  member: new Set(['link-local', 'metadata', 'unusable']),
  registry: new Set(['link-local', 'metadata', 'unusable']),
  'sign-in': new Set(['link-local', 'metadata', 'unusable']),
  broker: new Set(['link-local', 'metadata', 'unusable']),
}

/** An address that is not dialed. Its code is what the connection's error carries. */
export class AddressRefusedError extends FleetError {
  override readonly name = 'AddressRefusedError'
  readonly code = 'address_refused'
  readonly retryable = true
  /** Why, in words that name neither host nor address, for those who may not read where it leads. */
  readonly reason: string

  constructor(message: string, reason = message) {
    super(message)
    this.reason = reason
  }
}

/** Finds every address of a name; as that of `node:dns` with `all`. */
export type Lookup = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void

/** Resolves names as the operating system does, to all their addresses. */
export const systemNames: Lookup = (hostname, callback) =>
  systemLookup(hostname, { all: true }, (error, addresses) => callback(error, addresses ?? []))

/** What an outbound guard lets through. */
export type OutboundOptions = { readonly names?: Lookup } & (
  | {
      readonly use: Exclude<OutboundUse, 'sink'>
      /** addresses and CIDR ranges that may be dialed all the same */
      readonly allow?: readonly string[]
    }
  // Tenants say where sinks are: closed but for the internet and what the process opens.
  | ({ readonly use: 'sink' } & SinkAddresses)
)

/**
 * Decides over the addresses that are connected to, so that a name whose answer changes between check and use gains nothing.
 * Goes into a connector as its `lookup`; hosts that are addresses are never looked up, and are checked before.
 */
export class OutboundGuard {
  readonly #problem: (hostname: string, address: string) => AddressRefusedError | undefined
  readonly #names: Lookup

  /** @throws RangeError for a range that is none */
  constructor(options: OutboundOptions) {
    this.#problem = options.use === 'sink' ? sinkProblem(options) : problemOf(options.use, options.allow ?? [])
    this.#names = options.names ?? systemNames
  }

  readonly lookup: LookupFunction = (hostname, options, callback) => {
    const known = this.refusal(hostname, [])
    if (known) return callback(known as NodeJS.ErrnoException, '', 0)
    this.#names(hostname, (error, addresses) => {
      const [first] = addresses
      if (error || !first) return callback(error ?? notFound(hostname), '', 0)
      const refusal = this.refusal(hostname, addresses)
      if (refusal) return callback(refusal as NodeJS.ErrnoException, '', 0)
      if (options.all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
  }

  /** All addresses of a host as it stands in a URL, each of which may be dialed. @throws AddressRefusedError, or what the look-up gave */
  addresses(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
    const address = bare(hostname)
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      this.check(hostname)
      if (isIP(address)) return resolve([address])
      const stop = () => reject(signal.reason as Error)
      signal.addEventListener('abort', stop, { once: true })
      this.lookup(address, { all: true }, (error, found) => {
        signal.removeEventListener('abort', stop)
        if (error) reject(error)
        else resolve((found as LookupAddress[]).map((one) => one.address)) // a list, since all were asked for
      })
    })
  }

  /** Of a host as it stands in a URL. @throws AddressRefusedError where it is known by its text that it is not dialed */
  check(hostname: string): void {
    const address = bare(hostname)
    const refusal = this.refusal(hostname, isIP(address) ? [{ address }] : [])
    if (refusal) throw refusal
  }

  /** Why a host with these addresses is not dialed: one that is refused is enough, as any may be tried. */
  refusal(hostname: string, addresses: readonly { readonly address: string }[]): AddressRefusedError | undefined {
    return [bare(hostname), ...addresses.map(({ address }) => address)]
      .map((address) => this.#problem(hostname, address))
      .find((one) => one !== undefined)
  }
}

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

/** Why this address of a host is not dialed. The name itself is no reason. */
function problemOf(use: Exclude<OutboundUse, 'sink'>, allow: readonly string[]) {
  const allowed = rangesOf(allow)
  return (hostname: string, address: string): AddressRefusedError | undefined => {
    if (address === bare(hostname) && isIP(address) === 0) return undefined
    const kind = addressKind(address)
    if ((kind !== undefined && !REFUSED[use].has(kind)) || isAllowed(allowed, address)) return undefined
    const at = address === bare(hostname) ? '' : ` is at ${address}, which`
    return new AddressRefusedError(
      `${hostname}${at} is a link-local, metadata or unspecified address: nothing of a ${use} is asked for there; use another address, or allow it with OUTBOUND_ALLOW`,
    )
  }
}

const sinkProblem = (addresses: SinkAddresses) => (hostname: string, address: string) => {
  const reason = sinkAddressProblem(address, addresses)
  if (reason === undefined) return undefined
  return new AddressRefusedError(
    `${address === bare(hostname) ? 'its endpoint' : hostname} names ${address}, ${reason}`,
    reason,
  )
}

function isAllowed(allowed: BlockList, address: string): boolean {
  const bare = address.split('%', 1)[0] ?? address
  const plain = (isIP(bare) === 6 && embeddedAddress(bare)) || bare
  return [bare, plain].some((one) => isIP(one) !== 0 && allowed.check(one, isIP(one) === 6 ? 'ipv6' : 'ipv4'))
}

/** Whether the text is an address or a CIDR range. */
export function isRange(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more !== undefined) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

function rangesOf(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) {
    if (!isRange(text)) throw new RangeError(`${JSON.stringify(text)} is neither an address nor a CIDR range`)
    const [address = '', bits] = text.split('/')
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    list.addSubnet(address, bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits), family)
  }
  return list
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' })
}
