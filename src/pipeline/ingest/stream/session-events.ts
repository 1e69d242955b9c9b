import type { ClusterName, FleetError, Loss, Plan, SequenceRange } from '#model'
import type { ConnectRequest, JoinRequest, ResponseInit } from '#wire'
import type { Offer } from '../ingester.ts'
import type { HubTrust, JoinStep } from '../line/join-desk.ts'
import type { StreamLimits } from '../line/limits.ts'
import type { Peer, Verdict } from './types.ts'

export type Payload = ConnectRequest['payload']
export type Answer = NonNullable<ResponseInit['payload']>

/** Why a stream ends, for its agent. */
export interface Farewell {
  readonly status: number
  readonly code: string
  readonly message: string
  /** default: 0 */
  readonly retryAfterMs?: number
}

export type SessionEvent =
  /** the call is here; undefined: it showed no credential, the registration must */
  | { readonly kind: 'opened'; readonly verdict: Verdict | undefined }
  | { readonly kind: 'message'; readonly bytes: Uint8Array }
  | { readonly kind: 'accepted'; readonly ticket: number }
  | { readonly kind: 'failed'; readonly ticket: number; readonly error: FleetError }
  /** a newer stream has its place */
  | { readonly kind: 'replaced'; readonly message: string; readonly retryAfterMs: number }
  | { readonly kind: 'disconnect'; readonly code: string; readonly message: string }
  | { readonly kind: 'credentials' }
  | { readonly kind: 'plan' }
  /** the authorities this hub is known by may be others */
  | { readonly kind: 'trust' }
  /** how the request of a machine that is no member yet stands */
  | { readonly kind: 'join'; readonly step: JoinStep }
  | { readonly kind: 'flush' }
  | { readonly kind: 'tick' }
  /** the agent sends nothing more, and waits for its acks */
  | { readonly kind: 'finished' }
  /** see `LineSubscriber` */
  | { readonly kind: 'closed'; readonly why: string; readonly silentMs: number }

/** What is given to the ingester. */
export type Offering =
  | { readonly kind: 'accept'; readonly offer: Offer }
  | { readonly kind: 'lost'; readonly cluster: ClusterName; readonly loss: Loss }

export type Effect =
  | { readonly kind: 'send'; readonly answer: Answer }
  /** to be done after the pause; how it ended is said by its ticket */
  | (Offering & { readonly ticket: number; readonly afterMs: number })
  /** a machine wants to become a member; each step comes back as an event */
  | { readonly kind: 'join'; readonly request: JoinRequest }
  /** acks wait: an event `flush` soon, several at once */
  | { readonly kind: 'flush' }
  /** facts moved; `now`: it came, went or delivers for the first time */
  | { readonly kind: 'facts'; readonly now: boolean }
  | {
      readonly kind: 'note'
      readonly level: 'debug' | 'info' | 'warn'
      readonly facts: object
      readonly sentence: string
    }
  | { readonly kind: 'count'; readonly what: Counted }
  /** nothing comes after it; the status is what gRPC tells */
  | { readonly kind: 'end'; readonly status: number; readonly code: string; readonly message: string }

export type Counted =
  | 'frame'
  | 'original'
  | 'loss'
  | 'refused'
  | 'held'
  | 'resync'
  | 'duplicate'
  | 'time_corrected'
  | 'unplanned'

/** What an agent says of itself, beside the name that its credential has. */
export interface Claimed {
  /** of its buffer */
  readonly identity: string
  /** of this start of it; '': it does not say */
  readonly instance: string
}

export interface SessionWorld {
  readonly limits: StreamLimits
  readonly tls: boolean
  /** which of several processes this is */
  readonly process?: string
  /** whose the token of a registration is */
  verify(token: string): Verdict
  stillValid(peer: Peer): boolean
  /** why it is not, for the peer; default: no more than that */
  whyEnded?(peer: Peer): string | undefined
  /** ms that it was told to wait, and has not; 0: none */
  pauseMs(peer: Peer): number
  /** A frame was no batch. @returns whether that makes too many */
  badFrame(peer: Peer): boolean
  knows(cluster: ClusterName): boolean
  /** whether machines that are no members yet may ask */
  readonly takesJoins?: boolean
  /** by what this hub is known, told to members */
  trust?(): HubTrust
  received(cluster: ClusterName, origin: string): readonly SequenceRange[]
  heardTo(cluster: ClusterName, origin: string): number | undefined
  planOf(cluster: ClusterName): Plan | undefined
  /** takes the place of the cluster's stream before, which is told; `claimed` tells two agents of one name apart */
  enter(cluster: ClusterName, claimed: Claimed): Place
  random(): number
}

/** What outlives the streams of a cluster. */
export interface Place {
  readonly epoch: number
  /** why this place is doubtful, for people, and until when that is said, ms since the Unix epoch */
  readonly doubt: { readonly message: string; readonly until: number } | undefined
  readonly originals: OriginalNumbers
}

/** Originals do not number: the hub does, in one row per cluster. */
export interface OriginalNumbers {
  last: number
  /** ids of the last batches that were accepted */
  recent: string[]
}
