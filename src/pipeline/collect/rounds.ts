import type { KubeClient } from '#kube'
import type { Batch } from '#model'
import type { Logger } from '#runtime'
import { collectRound, type RoundOptions, roundLimitMs } from './round.ts'
import { isDue } from './schedule.ts'
import type { Collector, Times } from './types.ts'

export interface RoundsOptions extends Omit<RoundOptions, 'kube' | 'signal' | 'limitMs' | 'onMalformed'> {
  readonly logger: Logger
}

export interface RoundNow {
  readonly kube: KubeClient
  readonly times: Times
  /** of rows, besides those of every round; default none */
  readonly rows?: readonly Collector[]
  /** by whatever clock, the same for all rounds, ms: what is due is told by it */
  readonly at: number
  readonly signal: AbortSignal
}

const MALFORMED_KEPT = 5
const MALFORMED_LENGTH = 40

/** The rounds of one cluster, one after the other, whoever makes them: the hub itself, or an agent beside the cluster. */
export class Rounds {
  readonly #options: RoundsOptions
  /** when each collector last got through, and that was kept */
  readonly #readAt = new Map<string, number>()

  constructor(options: RoundsOptions) {
    this.#options = options
  }

  /** What is due now. Throws as collectRound does. */
  async collect({ kube, times, rows = [], at, signal }: RoundNow): Promise<Batch> {
    const { cluster, collectors, logger } = this.#options
    const due = [...collectors, ...rows].filter((one) => isDue(one, this.#readAt.get(one.name), times, at))
    const malformed = new Set<string>()
    const batch = await collectRound({
      ...this.#options,
      kube,
      collectors: due,
      signal,
      limitMs: roundLimitMs(times),
      onMalformed: (text) => malformed.size < MALFORMED_KEPT && malformed.add(text.slice(0, MALFORMED_LENGTH)),
    })
    if (malformed.size > 0) logger.warn({ cluster, quantities: [...malformed] }, 'quantities could not be read')
    return batch
  }

  /** Only what is kept counts as read; a collector that could not get through tries again next round. */
  kept({ parts, tables = [] }: Batch, at: number): void {
    const read = [...parts, ...tables.map(({ source, outcome }) => ({ collector: source, outcome }))]
    for (const { collector, outcome } of read) if (outcome !== 'unreachable') this.#readAt.set(collector, at)
  }

  /** Everything is due in the next round. */
  forget(): void {
    this.#readAt.clear()
  }
}
