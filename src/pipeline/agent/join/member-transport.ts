import { grpcTransport } from '../grpc.ts'
import type { Link, Transport } from '../types.ts'
import type { HubEnds } from './identity.ts'
import { JoinError } from './join-error.ts'

/** Where the hub is and how it is known; with a certificate, also who we are. */
export interface MemberEnds {
  readonly hub: HubEnds
  /** PEM; '': by the fingerprint, or the authorities of the system */
  readonly roots: string
  readonly key: string
  readonly certificate?: string
}

/** A way to the hub that can be ended from here, so that the next stream shows another certificate. */
export interface MemberTransport extends Transport {
  /** ends the stream there is; whoever holds it opens another one */
  reopen(): void
}

/** Each address of the hub in turn: the next one where the last could not be reached. Asked at each attempt who we are. */
export function memberTransport(ends: () => MemberEnds, userAgent?: string): MemberTransport {
  let turn = 0
  let open: Link | undefined
  return {
    async open(signal) {
      const { addresses } = ends().hub
      const address = addresses[turn % addresses.length]
      if (address === undefined) throw new JoinError('no_membership', 'the identity names no address of a hub')
      const way = grpcTransport({
        address,
        tls: () => tlsOf(ends()),
        ...(userAgent !== undefined && { userAgent }),
      })
      try {
        open = await way.open(signal)
        return open
      } catch (error) {
        turn++
        throw error
      }
    },
    reopen() {
      void open?.[Symbol.asyncDispose]()
    },
  }
}

function tlsOf({ hub, roots, key, certificate }: MemberEnds) {
  const { caFingerprint, serverName } = hub
  return {
    ...(roots === '' ? caFingerprint !== undefined && { caFingerprint } : { caPem: roots }),
    ...(serverName !== undefined && { serverName }),
    ...(certificate !== undefined && { identity: { certificate, key } }),
  }
}
