import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { FleetError } from '#model'
import { type AddressKind, addressKind, embeddedAddress } from './address.ts'

/** What is dialed on somebody's word: a member's API, a registry, an identity provider, a server that events are published to. */
export type OutboundUse = 'member' | 'registry' | 'sign-in' | 'broker'

/**
 * What each use may never dial. Loopback and private networks stay open: members, registries and providers stand there, and a hub on
 * a person's machine has its simulated members on the loopback.
 */
const REFUSED: Readonly<Record<OutboundUse, ReadonlySet<AddressKind>>> = {
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
export interface OutboundOptions {
  readonly use: OutboundUse
  /** addresses and CIDR ranges that may be dialed all the same */
  readonly allow?: readonly string[]
  readonly names?: Lookup
}

/**
 * Decides over the addresses that are connected to, so that a name whose answer changes between check and use gains nothing.
 * Goes into a connector as its `lookup`; hosts that are addresses are never looked up, and are checked before.
 */
export class OutboundGuard {
  readonly #use: OutboundUse
  readonly #allowed: BlockList
  readonly #names: Lookup

  /** @throws RangeError for a range that is none */
  constructor({ use, allow = [], names = systemNames }: OutboundOptions) {
    this.#use = use
    this.#allowed = rangesOf(allow)
    this.#names = names
  }

  readonly lookup: LookupFunction = (hostname, options, callback) => {
    this.#names(hostname, (error, addresses) => {
      const [first] = addresses
      if (error || !first) return callback(error ?? notFound(hostname), '', 0)
      const refusal = this.refusal(hostname, addresses)
      if (refusal) return callback(refusal as NodeJS.ErrnoException, '', 0)
      if (options.all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
  }

  /** Of a host as it stands in a URL. @throws AddressRefusedError where it is an address that is not dialed */
  check(hostname: string): void {
    const address = hostname.replace(/^\[|\]$/g, '')
    const refusal = this.refusal(hostname, isIP(address) ? [{ address }] : [])
    if (refusal) throw refusal
  }

  /** Why a host with these addresses is not dialed: one that is refused is enough, as any may be tried. */
  refusal(hostname: string, addresses: readonly { readonly address: string }[]): AddressRefusedError | undefined {
    const found = addresses.find(({ address }) => !this.#mayDial(address))
    if (!found) return undefined
    const at = found.address === hostname.replace(/^\[|\]$/g, '') ? '' : ` is at ${found.address}, which`
    return new AddressRefusedError(
      `${hostname}${at} is a link-local, metadata or unspecified address: nothing of a ${this.#use} is asked for there; use another address, or allow it with OUTBOUND_ALLOW`,
    )
  }

  #mayDial(address: string): boolean {
    const kind = addressKind(address)
    if (kind !== undefined && !REFUSED[this.#use].has(kind)) return true
    return isAllowed(this.#allowed, address)
  }
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
