import type { AgentFacts, ClusterName, Loss, Plan, SequenceRange } from '#model'
import type { PlainBatch } from '../stored-custom.ts'
import type { StreamLimits } from '../stream/limits.ts'
import type { Place } from '../stream/session.ts'
import type { Peer, Presented, ServerTls, Verdict } from '../stream/types.ts'

/** From the owner of the log to a process that owns streams. */
export type ToFront =
  | {
      readonly kind: 'start'
      readonly name: string
      readonly host: string
      readonly port: number
      readonly tls: ServerTls | 'plaintext'
      readonly limits: Partial<StreamLimits>
    }
  /** the credential of this stream is no longer valid */
  | { readonly kind: 'revoked'; readonly stream: number }
  | { readonly kind: 'plan'; readonly stream: number; readonly plan: Plan | null }
  | {
      readonly kind: 'replaced'
      readonly stream: number
      readonly message: string
      readonly retryAfterMs: number
    }
  | { readonly kind: 'disconnect'; readonly stream: number; readonly code: string; readonly message: string }
  | { readonly kind: 'stop' }

/** What a process that owns streams tells the owner of the log, and asks it. */
export type ToOwner =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | Counts
  /** asked: a Verdict */
  | { readonly kind: 'verify'; readonly presented: Presented }
  /** asked: an Admission */
  | AdmissionWanted
  | {
      readonly kind: 'facts'
      readonly stream: number
      readonly facts: AgentFacts
      readonly delivering: boolean
      readonly now: boolean
    }
  | { readonly kind: 'left'; readonly stream: number }
  /** ids of the last batches of an original that were accepted */
  | { readonly kind: 'recent'; readonly stream: number; readonly ids: readonly string[] }
  /** asked, with the samples of the batch as bytes: an Accepted */
  | {
      readonly kind: 'accept'
      readonly stream: number
      readonly batch: PlainBatch
    }
  /** asked: an Accepted */
  | { readonly kind: 'lost'; readonly cluster: ClusterName; readonly loss: Loss }

/** What a registration says, before anything of it is believed. */
export interface AdmissionWanted {
  readonly kind: 'admit'
  readonly stream: number
  readonly presented: Presented
  /** known by the credential of the call; else by this token */
  readonly peer?: Peer
  readonly token: string
  readonly claimed: string
  readonly origin: string
  /** the rest of the registration is in order: it takes the place if the owner finds nothing against it */
  readonly enters: boolean
}

export interface Admission {
  readonly verdict: Verdict
  readonly valid: boolean
  readonly known: boolean
  readonly received: readonly SequenceRange[]
  readonly plan: Plan | null
  readonly place?: Place
}

/** What this process counted since it last told, and how it is. */
export interface Counts {
  readonly kind: 'counts'
  readonly streams: number
  readonly rssBytes: number
  readonly cpuSeconds: number
  readonly rows: readonly {
    readonly name: string
    readonly help: string
    readonly labels: Readonly<Record<string, string>>
    readonly more: number
  }[]
}
