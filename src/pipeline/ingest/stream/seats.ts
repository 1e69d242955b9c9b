import type { AgentFacts, Clock, ClusterName } from '#model'
import type { Logger } from '#runtime'
import { FactsReport } from './facts-report.ts'
import type { StreamIngester } from './ingest-port.ts'
import { type Holder, Places } from './places.ts'
import { ORIGINAL_ORIGIN, type Place, type SessionWorld } from './session.ts'
import type { Agents, PeerVerifier, PlanSource, Presented, Verdict } from './types.ts'

/** What one stream asks of the hub and tells it, whichever process the hub's log is in. */
export interface Seat {
  readonly world: Pick<SessionWorld, 'verify' | 'stillValid' | 'knows' | 'received' | 'planOf'>
  readonly ingester: Pick<StreamIngester, 'accept' | 'lost'>
  /** whose the credential is that was shown with the call */
  opened(): Verdict | Promise<Verdict>
  /** awaited before the session hears a message that may be its registration; absent: there is nothing to wait for */
  prepare?(message: Uint8Array): Promise<void>
  enter(cluster: ClusterName, identity: string, holder: Holder): Place
  /** @param now it came, went or delivers for the first time */
  facts(cluster: ClusterName, holder: Holder, facts: AgentFacts, now: boolean): void
  /** nothing more comes of the stream */
  ended(): void
}

export type Changed = (what: 'credentials' | 'plan', cluster?: ClusterName) => void

export interface LocalSeat extends Seat {
  /** gives the place back for a stream that never had facts */
  leave(cluster: ClusterName, holder: Holder): void
}

/** The places of streams: which is whose, and what is known of each. */
export interface Seats extends AsyncDisposable {
  take(presented: Presented): Seat
  /** open streams are to look again */
  onChange(listener: Changed): () => void
  /** now and then */
  sweep(): void
}

export interface LocalSeatsOptions {
  readonly verifier: PeerVerifier
  readonly plans: PlanSource
  readonly ingester: StreamIngester
  readonly clock: Clock
  readonly logger: Logger
  readonly factsEveryMs: number
  onContested(): void
}

/** Seats in the process that has the log, the credentials and the plans. */
export class LocalSeats implements Seats {
  readonly #options: LocalSeatsOptions
  readonly #places: Places
  readonly #report: FactsReport

  constructor(options: LocalSeatsOptions) {
    const { ingester, clock, logger, factsEveryMs, onContested } = options
    this.#options = options
    this.#places = new Places({
      clock,
      logger,
      received: (cluster, origin) => ingester.received(cluster, origin),
      onContested,
    })
    this.#report = new FactsReport({ ingester, clock, logger, everyMs: factsEveryMs })
  }

  get agents(): Agents {
    return this.#places
  }

  take(presented: Presented): LocalSeat {
    const { verifier, plans, ingester } = this.#options
    return {
      world: {
        verify: (token) => verifier.verify({ ...presented, token }),
        stillValid: (peer) => verifier.stillValid(peer),
        knows: (cluster) => ingester.knows(cluster),
        received: (cluster, origin) => ingester.received(cluster, origin),
        planOf: (cluster) => plans.planOf(cluster),
      },
      ingester,
      opened: () => verifier.verify(presented),
      enter: (cluster, identity, holder) =>
        this.#places.enter(cluster, identityOf(identity, presented.address), holder),
      facts: (cluster, holder, facts, now) => this.#facts(cluster, holder, facts, now),
      ended: () => undefined,
      leave: (cluster, holder) => {
        if (this.#places.leave(cluster, holder)) this.#places.changed(cluster)
      },
    }
  }

  onChange(listener: Changed): () => void {
    const { verifier, plans } = this.#options
    const ends = [
      verifier.onChange(() => listener('credentials')),
      plans.onChange((cluster) => listener('plan', cluster)),
    ]
    return () => {
      for (const end of ends) end()
    }
  }

  sweep(): void {
    this.#places.prune((cluster) => this.#options.ingester.knows(cluster))
  }

  /** What is told already reaches the ingester, as far as it does so soon. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#report[Symbol.asyncDispose]()
  }

  #facts(cluster: ClusterName, holder: Holder, facts: AgentFacts, now: boolean): void {
    if (facts.connected) {
      if (!this.#places.holds(cluster, holder)) return
    } else if (!this.#places.leave(cluster, holder)) return
    this.#report.tell(cluster, facts, now)
    if (now) this.#places.changed(cluster)
  }
}

// Originals have no name of their own: the address is the nearest to one.
const identityOf = (identity: string, address: string) =>
  identity === ORIGINAL_ORIGIN ? `${ORIGINAL_ORIGIN}@${address}` : identity
