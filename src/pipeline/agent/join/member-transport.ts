import { decodeResponse } from '#wire'
import { LinkError } from '../errors.ts'
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

export interface MemberTransportOptions {
  readonly userAgent?: string
  /** the hub serves the stream */
  readonly onWelcome?: () => void
  /** the hub was reached, and ended the stream before that; `revoked`: it served it, and says that the certificate counts no more */
  readonly onRefused?: (how?: 'revoked') => void
}

/** A way to the hub that can be ended from here, so that the next stream shows another certificate. */
export interface MemberTransport extends Transport {
  /** of the stream there is, or was last; undefined before the first */
  readonly address: string | undefined
  /** ends the stream there is; whoever holds it opens another one */
  reopen(): void
}

/** Each address of the hub in turn: the next one where the last could not be reached. Asked at each attempt who we are. */
export function memberTransport(ends: () => MemberEnds, options: MemberTransportOptions = {}): MemberTransport {
  const { userAgent, onRefused } = options
  let turn = 0
  let tried: readonly string[] | undefined
  let address: string | undefined
  let open: Link | undefined
  return {
    get address() {
      return address
    },
    async open(signal) {
      const { addresses } = ends().hub
      // Others than before: from the first of them on.
      if (addresses !== tried) turn = 0
      tried = addresses
      const next = addresses[turn % addresses.length]
      if (next === undefined) throw new JoinError('no_membership', 'the identity names no address of a hub')
      const way = grpcTransport({
        address: next,
        tls: () => tlsOf(ends()),
        ...(userAgent !== undefined && { userAgent }),
      })
      try {
        const link = await way.open(signal)
        address = next
        open = watched(link, options)
        return open
      } catch (error) {
        turn++
        if (error instanceof LinkError && isRefusal(error)) onRefused?.()
        throw asOfMember(error, next, ends())
      }
    },
    reopen() {
      void open?.[Symbol.asyncDispose]()
    },
  }
}

/** What ended the connection is the hub, not the way to it. */
const isRefusal = ({ fault }: LinkError): boolean => fault === 'ended' || fault === 'unauthenticated'

/** Says how the hub meets us. */
function watched(link: Link, { onWelcome, onRefused }: MemberTransportOptions): Link {
  let isMet = false
  const meets = (isWelcome: boolean) => {
    if (!isMet) (isWelcome ? onWelcome : onRefused)?.()
    isMet = true
  }
  async function* messages() {
    try {
      for await (const bytes of link.messages) {
        const { payload } = decodeResponse(bytes)
        if (isMet && payload.case === 'goodbye' && payload.value.code === 'revoked') onRefused?.('revoked')
        meets(payload.case === 'welcome')
        yield bytes
      }
    } finally {
      meets(false)
    }
  }
  return {
    send: (message) => link.send(message),
    writable: () => link.writable(),
    messages: messages(),
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  }
}

/** What helps a member, which has no settings of its hub. */
function asOfMember(error: unknown, address: string, { roots }: MemberEnds): unknown {
  if (!(error instanceof LinkError)) return error
  const said = (sentence: string) => new LinkError(error.fault, sentence, { cause: error })
  if (error.fault === 'unknown_ca' && roots !== '')
    return said(
      `the certificate of ${address} is of none of the authorities that the hub told of: its CA was replaced without an overlap, or something stands in between; on the hub, hand out the former CA beside the new one, or let the cluster join anew (\`clusterpulse connect NAME\`)`,
    )
  if (error.fault === 'name_mismatch')
    return said(
      `the certificate that ${address} shows is for other names; on the hub, name this address in INGESTER_ADVERTISE, or show a certificate that has it`,
    )
  return error
}

function tlsOf({ hub, roots, key, certificate }: MemberEnds) {
  const { caFingerprint, serverName } = hub
  return {
    ...(roots === '' ? caFingerprint !== undefined && { caFingerprint } : { caPem: roots }),
    ...(serverName !== undefined && { serverName }),
    ...(certificate !== undefined && { identity: { certificate, key } }),
  }
}
