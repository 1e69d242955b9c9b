import type { KubeClient } from '#kube'
import type { Batch } from '#model'
import { systemClock } from '#model'
import type { Logger } from '#runtime'
import { Mirror, type MirrorOptions } from './mirror.ts'
import { collectRound, type RoundOptions, roundLimitMs } from './round.ts'
import { isDue } from './schedule.ts'
import type { Collector, Times } from './types.ts'

export interface RoundsOptions extends Omit<RoundOptions, 'kube' | 'signal' | 'limitMs' | 'onMalformed' | 'mirror'> {
  readonly logger: Logger
  /** Between rounds what moves is told at once; absent: each round reads everything, and nothing is followed. */
  readonly live?: Pick<MirrorOptions, 'onStep' | 'watches' | 'relisting'>
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
  readonly #malformed = new Set<string>()
  #mirror: Mirror | undefined
  /** collectors of the last round that is not kept yet */
  readonly #awaited = new Set<string>()
  #left: Promise<void> = Promise.resolve()

  constructor(options: RoundsOptions) {
    this.#options = options
  }

  /** What is due now; what was not kept of the round before is told anew. Throws as collectRound does. */
  async collect({ kube, times, rows = [], at, signal }: RoundNow): Promise<Batch> {
    const { cluster, collectors, logger, live, source, clock = systemClock } = this.#options
    const all = [...collectors, ...rows]
    const onMalformed = (text: string) => {
      if (this.#malformed.size < MALFORMED_KEPT) this.#malformed.add(text.slice(0, MALFORMED_LENGTH))
    }
    if (live) {
      await this.#left
      this.#mirror ??= new Mirror({ ...live, cluster, source, clock, random: Math.random, logger })
      this.#mirror.open(all, { endpoint: kube.endpoint, onMalformed })
    }
    this.#awaited.clear()
    const batch = await collectRound({
      ...this.#options,
      kube,
      collectors: all.filter((one) => isDue(one, this.#readAt.get(one.name), times, at)),
      signal,
      limitMs: roundLimitMs(times),
      onMalformed,
      ...(this.#mirror && { mirror: this.#mirror }),
    }).catch((error: unknown) => {
      this.handedIn()
      throw error
    })
    if (this.#malformed.size > 0)
      logger.warn({ cluster, quantities: [...this.#malformed] }, 'quantities could not be read')
    this.#malformed.clear()
    for (const name of namesOf(batch)) this.#awaited.add(name)
    this.#mirror?.told(batch)
    return batch
  }

  /** Only what is kept counts as read; a collector that could not get through tries again next round. */
  kept(batch: Batch, at: number): void {
    for (const name of namesOf(batch)) this.#awaited.delete(name)
    const { parts, tables = [] } = batch
    const read = [...parts, ...tables.map(({ source, outcome }) => ({ collector: source, outcome }))]
    for (const { collector, outcome } of read) if (outcome !== 'unreachable') this.#readAt.set(collector, at)
  }

  /** All of the last round was handed in, or it was given up: what moved since then may follow. */
  handedIn(): void {
    if (this.#awaited.size > 0) this.#mirror?.untold()
    this.#awaited.clear()
    this.#mirror?.release()
  }

  /** Everything is due in the next round. */
  forget(): void {
    this.#readAt.clear()
  }

  /** Reads that could be followed, and are polled: which and why, for people. Sorted. */
  polled(): readonly string[] {
    return this.#mirror?.polled() ?? []
  }

  /** Nothing is followed any more; the next round begins anew. Resolves when nothing runs. A repeat is free. */
  leave(): Promise<void> {
    const mirror = this.#mirror
    this.#mirror = undefined
    if (mirror) this.#left = Promise.all([this.#left, mirror.leave()]).then(() => undefined)
    return this.#left
  }
}

const namesOf = ({ parts, tables = [] }: Batch): readonly string[] => [
  ...parts.map(({ collector }) => collector),
  ...tables.map(({ source }) => source),
]
