import type { AgentFacts, ClusterName, Plan } from '#model'
import type { Presented } from '../line/presented.ts'

/** Who is at the other end of a stream, by its credential: the only name that counts. */
export interface Peer {
  readonly cluster: ClusterName
  readonly method: AgentFacts['method']
  /** which credential, for logs and revocation; never the secret itself */
  readonly credential: string
}

/** `not_yet`: its credential is good, and its connection is still being made */
export type Verdict =
  | { readonly peer: Peer }
  | { readonly refused: 'no_credential' | 'unknown' | 'expired' | 'revoked' | 'not_yet' }

/** Knows the credentials of agents. Implemented by control/connections over Secrets of the hub. Comparisons take constant time. */
export interface PeerVerifier {
  verify(presented: Presented): Verdict
  /** false: revoked, expired, or its connection is gone: the stream must end */
  stillValid(peer: Peer): boolean
  /** why it is not, for the peer itself, with what helps; undefined: there is no more to say than that. Default: never more */
  whyEnded?(peer: Peer): string | undefined
  /** called with the clusters whose credentials may have changed, without them where any may; returns how to stop listening */
  onChange(listener: (clusters?: ReadonlySet<string>) => void): () => void
}

/** Where a cluster's plan comes from. undefined: nothing is asked of this cluster. */
export interface PlanSource {
  planOf(cluster: ClusterName): Plan | undefined
  onChange(listener: (cluster: ClusterName | undefined) => void): () => void
}

/** The live streams, for controllers. */
export interface Agents {
  facts(cluster: string): AgentFacts | undefined
  /** a stream came or went, or its first live batch was accepted */
  onChange(listener: (cluster: ClusterName) => void): () => void
  /** true from the first accepted batch of a stream that lives: nothing needs to be pulled */
  isDelivering(cluster: string): boolean
  /** ends the stream with a reason for the agent */
  disconnect(cluster: string, code: string, message: string): void
}

/** Files of PEM; read again when they change, without a restart. */
export interface ServerTls {
  readonly certFile: string
  readonly keyFile: string
  /** with it clients may prove themselves by certificate */
  readonly clientCaFile?: string
  /** further authorities of clients, PEM; asked again as the files are read again. '': none for now */
  readonly clientCas?: () => Promise<string>
}
