/** What a machine that wants to become a member said, and where it comes from. */
export interface JoinAsked {
  /** secret of a join token; '' where a certificate of before proves who asks */
  readonly token: string
  readonly cluster: string
  readonly agent: string
  /** PKCS#10, DER */
  readonly csr: Uint8Array
  readonly version: string
  /** of a renewal: the certificate of before in DER, and the signature of its key over `csr` */
  readonly certificate: Uint8Array
  readonly proof: Uint8Array
  readonly address: string
}

/** By what members know this hub, and where they reach it. */
export interface HubTrust {
  /** PEM of the authorities whose certificate it shows; '': not told */
  readonly roots: string
  /** host:port, in the order they are to be tried; none: not told */
  readonly addresses: readonly string[]
}

/** How it stands. Nothing follows `joined` and `over`. */
export type JoinStep =
  /** somebody must decide; the message says who, and what is to be done */
  | { readonly kind: 'pending'; readonly request: string; readonly message: string }
  /** PEM, both: the certificate, and the authorities this hub is known by */
  | { readonly kind: 'joined'; readonly request: string; readonly certificate: string; readonly roots: string }
  | {
      readonly kind: 'over'
      /** `join_refused`: what it showed does not count; `join_denied`: a person said no; `join_busy`, `join_unavailable`: later */
      readonly code: 'join_refused' | 'join_denied' | 'join_busy' | 'join_unavailable'
      readonly message: string
      /** default: 0 */
      readonly retryAfterMs?: number
    }

/** Takes the requests of machines that are no members yet. Implemented by control/joining over objects of the hub. */
export interface JoinDesk {
  /**
   * Ends with `joined` or `over`, or without a word when the signal aborts.
   * @param onProven told once what it showed is found to count, long before there may be something to say
   */
  ask(asked: JoinAsked, signal: AbortSignal, onProven?: () => void): AsyncIterable<JoinStep>
}
