import { type AgentFacts, type Clock, type ClusterName, ORIGINAL_ORIGIN } from '#model'
import type { Logger } from '#runtime'
import { FactsReport } from './facts-report.ts'
import type { StreamIngester } from './ingest-port.ts'
import { Pauses } from './pauses.ts'
import { type Holder, Places, type Shown } from './places.ts'
import type { Claimed, Place } from './session-events.ts'
import type { Agents } from './types.ts'

export interface SeatsOptions {
  readonly ingester: StreamIngester
  readonly clock: Clock
  readonly logger: Logger
  readonly factsEveryMs: number
  readonly sweepMs: number
  onContested(): void
}

/** The places of streams, which is whose, and the facts of each on their way to the ingester. */
export class Seats implements AsyncDisposable {
  readonly #ingester: StreamIngester
  readonly #places: Places
  readonly #report: FactsReport
  readonly #pauses: Pauses

  constructor({ ingester, clock, logger, factsEveryMs, sweepMs, onContested }: SeatsOptions) {
    this.#ingester = ingester
    this.#places = new Places({
      clock,
      logger,
      received: (cluster, origin) => ingester.received(cluster, origin),
      onContested,
    })
    this.#pauses = new Pauses({ clock, everyMs: sweepMs })
    const resumedAt = () => this.#pauses.resumedAt
    this.#report = new FactsReport({ ...{ ingester, clock, logger, resumedAt }, everyMs: factsEveryMs })
  }

  get agents(): Agents {
    return this.#places
  }

  /** Of an original its address is the nearest to an identity: they have no name of their own. */
  enter(cluster: ClusterName, { identity, instance }: Claimed, shown: Shown, holder: Holder): Place {
    const known = identity === ORIGINAL_ORIGIN ? `${ORIGINAL_ORIGIN}@${shown.address}` : identity
    return this.#places.enter(cluster, { identity: known, instance, ...shown }, holder)
  }

  /** @param now it came, went or delivers for the first time */
  facts(cluster: ClusterName, holder: Holder, facts: AgentFacts, now: boolean): void {
    if (facts.connected) {
      if (!this.#places.holds(cluster, holder)) return
    } else if (!this.#places.leave(cluster, holder)) return
    this.#report.tell(cluster, facts, { now, process: this.#places.processOf(cluster) })
    if (now) this.#places.changed(cluster)
  }

  /** What is known of a cluster may have changed: its stream looks again. One that has no place yet looks when it takes it. */
  tell(cluster: string, what: 'credentials' | 'plan'): void {
    this.#places.tell(cluster, what)
  }

  /** every `sweepMs` */
  sweep(): void {
    this.#pauses.look()
    this.#places.prune((cluster) => this.#ingester.knows(cluster))
  }

  /** What is told already reaches the ingester, as far as it does so soon. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#report[Symbol.asyncDispose]()
  }
}
