import type { ClusterName } from '#model'
import type { RegisterRequest } from '#wire'
import { grpcStatus } from '../line/grpc-status.ts'
import { EARLY } from './offenders.ts'
import type { Farewell, SessionWorld } from './session-events.ts'
import type { Peer, Verdict } from './types.ts'

/** Who is at the other end of a stream: its credential says so, and whatever its messages say must agree. */
export class Identity {
  readonly #world: SessionWorld
  #peer: Peer | undefined

  constructor(world: SessionWorld) {
    this.#world = world
  }

  /** undefined: it has shown no credential yet */
  get peer(): Peer | undefined {
    return this.#peer
  }

  /** By what the call showed; undefined: the registration must. @returns why the stream ends, as do the others */
  present(verdict: Verdict | undefined): Farewell | undefined {
    if (!verdict) return undefined
    if ('refused' in verdict) return verdict.refused === 'not_yet' ? notYet : unauthenticated
    return this.#enter(verdict.peer)
  }

  register({ clusterName, token }: RegisterRequest): Peer | Farewell {
    const peer = this.#peer ?? this.#named(token)
    if (!peer) return unauthenticated
    const other = this.#enter(peer) ?? this.claim(clusterName)
    if (other) return other
    if (!this.#world.stillValid(peer)) return unauthenticated
    return this.#world.knows(peer.cluster) ? peer : notConnected(peer.cluster)
  }

  /** A message names a cluster. */
  claim(name: string): Farewell | undefined {
    if (name === this.#peer?.cluster) return undefined
    const claimed = JSON.stringify(name.slice(0, 80))
    const message = `the credential is not that of a cluster ${claimed}`
    return { status: grpcStatus.permissionDenied, code: 'wrong_cluster', message }
  }

  /** The credential may have been revoked meanwhile. */
  check(): Farewell | undefined {
    if (!this.#peer || this.#world.stillValid(this.#peer)) return undefined
    // Who was let in once may hear why: it tells nobody else whether a cluster or a credential exists.
    const message = this.#world.whyEnded?.(this.#peer) ?? 'the credential is no longer valid'
    return { status: grpcStatus.unauthenticated, code: 'revoked', message }
  }

  #enter(peer: Peer): Farewell | undefined {
    this.#peer = peer
    const retryAfterMs = this.#world.pauseMs(peer)
    if (retryAfterMs === 0) return undefined
    const message = `it was asked to wait, and is back ${Math.ceil(retryAfterMs / 1000)} s too early`
    return { status: grpcStatus.unavailable, code: EARLY, message, retryAfterMs }
  }

  #named(token: string): Peer | undefined {
    const verdict = this.#world.verify(token)
    return 'peer' in verdict ? verdict.peer : undefined
  }
}

// The same for every reason: nothing tells whether a cluster or a credential exists.
const unauthenticated: Farewell = {
  status: grpcStatus.unauthenticated,
  code: 'unauthenticated',
  message: 'the credential is not accepted',
}

/** Of one that may hear it: its certificate counts. */
const notYet: Farewell = {
  status: grpcStatus.unavailable,
  code: 'not_yet',
  message: 'the hub accepts this member and makes its connection, which takes a moment',
  retryAfterMs: 500,
}

export const notConnected = (cluster: ClusterName): Farewell => ({
  status: grpcStatus.failedPrecondition,
  code: 'not_connected',
  message: `cluster ${cluster} has no connection on this hub`,
  retryAfterMs: 5_000,
})
