import type { AccessView } from '#access'
import type { RowKind } from '#metricsource'
import { type Clock, type RowsState, Table } from '#model'
import { type RegistryReader, type RegistryState, type SeenRegistry, seenRegistry, staleAt } from '#registry'
import { registries as kind } from '#resources'
import { RefusedError } from './problem.ts'
import { stateOfRows } from './snapshot-rows.ts'

/** Rows that stand on no cluster, as far as one access view shows them. */
export interface FleetRows {
  readonly kind: RowKind
  /** equal versions mean equal rows, until `turnsAt` */
  version(): string
  /** when time alone changes what the rows say, ms */
  turnsAt(now: number): number
  /** of what may be seen; `unreachable` where the store behind them does not answer */
  rows(accessView: AccessView): RowsState
}

const GONE = 'the store behind the hub does not answer'

interface RegistryRowsOptions {
  /** absent: this hub watches no registries, and every list is empty */
  readonly registries: RegistryReader | undefined
  readonly clock: Clock
  /** how long a lost store is answered from memory, ms */
  readonly graceMs: number
}

/** Container registries. */
export class RegistryRows implements FleetRows {
  readonly kind = kind
  readonly #options: RegistryRowsOptions

  constructor(options: RegistryRowsOptions) {
    this.#options = options
  }

  version(): string {
    return `${this.#options.registries?.version() ?? 0}${this.#isLost() ? ' lost' : ''}`
  }

  turnsAt(now: number): number {
    const all = this.#options.registries?.registries() ?? []
    return Math.min(...all.map(staleAt).filter((at) => at > now), Number.POSITIVE_INFINITY)
  }

  rows(accessView: AccessView): RowsState {
    const attemptedAt = this.#options.clock.now()
    if (this.#isLost()) {
      const read = {
        outcome: 'unreachable',
        code: 'store_unavailable',
        message: GONE,
        attemptedAt,
        freshness: null,
      } as const
      return stateOfRows(kind, read, { rows: Table.empty, aggregations: {} })
    }
    const seen = this.seen(accessView)
    // Each row says when it was looked at; what is known of the rows is known now.
    const freshness = { observedAt: attemptedAt, receivedAt: attemptedAt, source: 'pull' } as const
    const read = { outcome: 'complete', code: '', message: '', attemptedAt, freshness } as const
    return stateOfRows(kind, read, { rows: kind.tableOf(seen), aggregations: kind.count(seen) })
  }

  /** Sorted by name. */
  seen(accessView: AccessView): readonly SeenRegistry[] {
    const shown =
      this.#current()
        ?.registries()
        .filter((one) => accessView.showsRegistry(one.facts)) ?? []
    return shown.map((one) => this.#seenBy(accessView, one))
  }

  /** @returns `hidden` where there is one that the caller may not see; undefined where there is none */
  named(accessView: AccessView, name: string): SeenRegistry | 'hidden' | undefined {
    const found = this.#current()?.registry(name)
    // Asked in both cases, so that hidden and absent take the same way.
    const isShown = accessView.showsRegistry(found?.facts ?? { name, labels: {} })
    if (!found) return undefined
    return isShown ? this.#seenBy(accessView, found) : 'hidden'
  }

  #seenBy({ administrator }: AccessView, one: RegistryState): SeenRegistry {
    const measurements = this.#options.registries?.measurements(one.facts.name) ?? []
    return seenRegistry(one, measurements, { now: this.#options.clock.now(), administrator })
  }

  #current(): RegistryReader | undefined {
    if (this.#isLost()) throw new RefusedError('store_unavailable', GONE, { retryAfterSeconds: 5 })
    return this.#options.registries
  }

  #isLost(): boolean {
    const { registries, clock, graceMs } = this.#options
    const lost = registries?.unavailable()
    return lost !== undefined && clock.now() - lost.since > graceMs
  }
}
