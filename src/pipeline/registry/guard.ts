import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isInternal, type Lookup, type OutboundGuard, sameAddress } from '#outbound'
import { ProbeError } from './errors.ts'

export interface GuardOptions {
  /** the host that the registry was declared with: it may be anywhere */
  readonly home: string
  readonly allowInternal: boolean
  readonly lookup: Lookup
  /** what is dialed for nobody, the registry's own address included */
  readonly outbound: OutboundGuard
}

/**
 * Whether a host that a registry named may be asked: not this machine, not its link, not its private networks, unless the
 * registry itself is at that very address. Decided over the addresses that are connected to, so that a name whose answer
 * changes between check and use gains nothing.
 */
export class Guard {
  readonly #options: GuardOptions
  readonly #homes = new Set<string>()

  constructor(options: GuardOptions) {
    this.#options = options
  }

  /** Resolves names for one connection, and refuses. @throws ProbeError through the callback, `redirect_refused` */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    this.#options.lookup(hostname, (error, addresses) => {
      const [first] = addresses
      if (error || !first) return callback(error ?? notFound(hostname), '', 0)
      const refusal = this.#refusalOf(hostname, addresses)
      if (refusal) return callback(refusal as NodeJS.ErrnoException, '', 0)
      if (options.all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
  }

  /** A host that is an address is never looked up. @throws ProbeError `redirect_refused` */
  checkLiteral(hostname: string): void {
    const bare = hostname.replace(/^\[|\]$/g, '')
    const family = isIP(bare)
    if (family === 0) return
    const refusal = this.#refusalOf(hostname, [{ address: bare, family }])
    if (refusal) throw refusal
  }

  #refusalOf(hostname: string, addresses: readonly LookupAddress[]): ProbeError | undefined {
    const { home, allowInternal, outbound } = this.#options
    const isHome = hostname === home
    if (isHome) for (const { address } of addresses) this.#homes.add(address)
    if (!isHome && !allowInternal && !addresses.every(({ address }) => this.#mayVisit(address)))
      return new ProbeError(
        'redirect_refused',
        `the registry sends us to ${hostname}, which is on this machine or in a private network; if that is right, set allowPrivateRedirects`,
      )
    const never = outbound.refusal(hostname, addresses)
    return never && new ProbeError(never.code, never.message)
  }

  #mayVisit(address: string): boolean {
    return !isInternal(address) || [...this.#homes].some((home) => sameAddress(home, address))
  }
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' })
}
