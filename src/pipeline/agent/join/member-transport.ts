import { minutes } from '#model'
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
  /** for people */
  readonly cluster?: string
}

export interface MemberTransportOptions {
  readonly userAgent?: string
  /** the hub serves the stream */
  readonly onWelcome?: () => void
  /** the hub was reached, and ended the stream before that; `revoked`: it served it, and says that the certificate counts no more */
  readonly onRefused?: (how?: 'revoked') => void
  /** what the hub said when it was asked why; undefined: it was not, or serves us */
  readonly why?: () => string | undefined
  /** of a clock that does not jump, ms */
  readonly now?: () => number
}

/** After so long at no address of the hub it may have moved. */
const MOVED_AFTER_MS = minutes(5)

/** A way to the hub that can be ended from here, so that the next stream shows another certificate. */
export interface MemberTransport extends Transport {
  /** of the stream there is, or was last; undefined before the first */
  readonly address: string | undefined
  /** ends the stream there is; whoever holds it opens another one */
  reopen(): void
}

/**
 * Each address of the hub once in an attempt, from where the last one led on: a hub that moved is found by the first attempt
 * after it is there. Asked at each attempt who we are.
 */
export function memberTransport(ends: () => MemberEnds, options: MemberTransportOptions = {}): MemberTransport {
  const { userAgent, onRefused, why, now = () => performance.now() } = options
  let turn = 0
  /** since when no address leads to anything */
  let lostAt: number | undefined
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
      const faults: LinkError[] = []
      for (let left = addresses.length; left > 0; left--) {
        const next = addresses[turn % addresses.length] ?? ''
        const way = grpcTransport({
          address: next,
          tls: () => tlsOf(ends()),
          ...(userAgent !== undefined && { userAgent }),
        })
        try {
          const link = await way.open(signal)
          lostAt = undefined
          address = next
          open = watched(link, options)
          return open
        } catch (error) {
          if (!(error instanceof LinkError) || signal.aborted) throw error
          turn++
          if (isRefusal(error)) {
            onRefused?.()
            const told = turnedDown(why?.(), error)
            if (told) throw told
          }
          faults.push(asOfMember(error, next, ends()))
        }
      }
      const [first, ...others] = faults
      if (!first) throw new JoinError('no_membership', 'the identity names no address of a hub')
      if (!faults.every(isLost)) lostAt = undefined
      else lostAt ??= now()
      const isLong = lostAt !== undefined && now() - lostAt >= MOVED_AFTER_MS
      if (others.length === 0 && !isLong) throw first
      const said = [...faults.map(({ message }) => message), ...(isLong ? [movedWords(ends())] : [])]
      const { fault, isCut } = faults.find((one) => !isLost(one)) ?? first
      throw new LinkError(fault, said.join('; '), { cause: first, isCut })
    },
    reopen() {
      void open?.[Symbol.asyncDispose]()
    },
  }
}

/** What ended the connection is the hub, not the way to it. */
const isRefusal = ({ fault }: LinkError): boolean => fault === 'ended' || fault === 'unauthenticated'

/** Goodbyes of a hub that may not serve us again: it no longer takes the certificate, or monitors the cluster. */
const ENDS: ReadonlySet<string> = new Set(['revoked', 'not_connected'])

/** Goodbye of a hub that knows us, and serves us in a moment. */
const NOT_YET = 'not_yet'

/** Says how the hub meets us. */
function watched(link: Link, { onWelcome, onRefused, why }: MemberTransportOptions): Link {
  let isMet = false
  const meets = (isWelcome: boolean) => {
    if (!isMet) (isWelcome ? onWelcome : onRefused)?.()
    isMet = true
  }
  async function* messages() {
    try {
      for await (const bytes of link.messages) {
        const { payload } = decodeResponse(bytes)
        if (payload.case === 'goodbye' && payload.value.code === NOT_YET) isMet = true // nothing to ask about
        if (isMet && payload.case === 'goodbye' && ENDS.has(payload.value.code)) onRefused?.('revoked')
        meets(payload.case === 'welcome')
        yield bytes
      }
    } catch (error) {
      throw (isMet ? undefined : turnedDown(why?.(), error)) ?? error
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

/** In the hub's words. undefined: it has said none */
const turnedDown = (why: string | undefined, cause: unknown): LinkError | undefined =>
  why === undefined ? undefined : new LinkError('unauthenticated', why, { cause })

/** Nothing of the hub is at that address. */
const isLost = ({ fault, isNowhere }: LinkError): boolean => isNowhere || fault === 'unknown_ca'

/** What helps a member, which has no settings of its hub. */
function asOfMember(error: LinkError, address: string, ends: MemberEnds): LinkError {
  const said = (sentence: string) => new LinkError(error.fault, sentence, { cause: error })
  if (error.fault === 'unknown_ca' && ends.roots !== '')
    return said(
      `the certificate of ${address} is of none of the authorities that the hub told of: its CA was replaced without an overlap, or something stands in between; on the hub, hand out the former CA beside the new one, or let the cluster join anew (\`clusterpulse connect ${ends.cluster ?? 'NAME'}\`)`,
    )
  if (error.fault === 'name_mismatch')
    return said(
      `the certificate that ${address} shows is for other names; on the hub, name this address in INGESTER_ADVERTISE, or show a certificate that has it`,
    )
  if (error.fault === 'not_tls')
    return said(
      `something else than the hub answers at ${address}, without TLS: another program has its port, or something stands in between; on the hub, \`clusterpulse up\` says in its log where agents are received`,
    )
  return error
}

/** All that can be known here of a hub that is nowhere. */
const movedWords = ({ hub, cluster = 'NAME' }: MemberEnds): string =>
  `${hub.addresses.join(' and ')} is all that this member knows of where the hub is: if it moved while this agent was away, lead that name to it, or let the cluster join anew (\`clusterpulse connect ${cluster}\` on the hub)`

function tlsOf({ hub, roots, key, certificate }: MemberEnds) {
  const { caFingerprint, serverName } = hub
  return {
    ...(roots === '' ? caFingerprint !== undefined && { caFingerprint } : { caPem: roots }),
    ...(serverName !== undefined && { serverName }),
    ...(certificate !== undefined && { identity: { certificate, key } }),
  }
}
