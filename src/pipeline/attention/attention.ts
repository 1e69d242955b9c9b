import { type Clock, FleetError, seconds, systemClock } from '#model'
import type { RedisMarks } from '#redis'
import { Listeners, type Logger } from '#runtime'

/** How long a look holds; whoever goes on looking looks again within this time, ms. */
export const LOOK_MS = seconds(30)
/** Between processes a look is told no more often. */
const TELL_EVERY_MS = seconds(10)
/** Clusters that are looked at; a name that is no cluster's costs no more than this. */
const MAX_CLUSTERS = 20_000

/** Who shows what clusters use says so here; who reads it asks. */
export interface Attention {
  /** Somebody looks at what this cluster uses, for half a minute from now. Cheap: once per answer, and every few seconds of a stream. */
  look(cluster: string): void
  isLookedAt(cluster: string): boolean
  /** those that are looked at now */
  clusters(): readonly string[]
  /** Told when the first looks at a cluster, and when the last has looked away. */
  onChange(listener: (cluster: string) => void): () => void
}

export interface LooksOptions {
  /** shares looks with the other processes of the hub, and closes with them; absent: there is one alone */
  readonly marks?: RedisMarks
  readonly clock?: Clock
  readonly logger: Logger
}

interface Look {
  readonly until: number
  /** when the other processes were told */
  readonly toldAt: number
}

/** The looks of this process, and of all that share its marks. */
export class Looks implements Attention, AsyncDisposable {
  readonly #options: LooksOptions
  readonly #clock: Clock
  readonly #looks = new Map<string, Look>()
  readonly #listeners = new Listeners<[cluster: string]>()
  readonly #stop = new AbortController()
  #ending: Promise<void> | undefined
  readonly #unsubscribe: (() => void) | undefined

  constructor(options: LooksOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#unsubscribe = options.marks?.subscribe((cluster) => {
      this.#note(cluster)
    })
  }

  look(cluster: string): void {
    const { marks, logger } = this.#options
    const look = this.#note(cluster)
    const now = this.#clock.now()
    if (!marks || !look || now - look.toldAt < TELL_EVERY_MS) return
    this.#looks.set(cluster, { ...look, toldAt: now })
    const told = marks.set(cluster, LOOK_MS).then(() => marks.publish(cluster))
    // The next look tells it again.
    told.catch((error: unknown) => logger.debug({ err: FleetError.from(error) }, 'a look could not be told'))
  }

  isLookedAt(cluster: string): boolean {
    return (this.#looks.get(cluster)?.until ?? 0) > this.#clock.now()
  }

  clusters(): readonly string[] {
    return [...this.#looks.keys()].filter((cluster) => this.isLookedAt(cluster))
  }

  onChange(listener: (cluster: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#unsubscribe?.()
    await Promise.all([this.#ending, this.#options.marks?.[Symbol.asyncDispose]()])
  }

  #note(cluster: string): Look | undefined {
    if (this.#stop.signal.aborted) return undefined
    const known = this.#looks.get(cluster)
    if (!known && this.#looks.size >= MAX_CLUSTERS) return undefined
    const look = { until: this.#clock.now() + LOOK_MS, toldAt: known?.toldAt ?? Number.NEGATIVE_INFINITY }
    this.#looks.set(cluster, look)
    if (!known) this.#listeners.tell(cluster)
    this.#ending ??= this.#end()
    return look
  }

  /** As long as anybody looks. */
  async #end(): Promise<void> {
    while (this.#looks.size > 0) {
      const next = Math.min(...[...this.#looks.values()].map(({ until }) => until))
      await this.#clock.sleep(Math.max(1, next - this.#clock.now()), this.#stop.signal)
      if (this.#stop.signal.aborted) return
      const now = this.#clock.now()
      const gone = [...this.#looks].filter(([, { until }]) => until <= now)
      for (const [cluster] of gone) this.#looks.delete(cluster)
      for (const [cluster] of gone) this.#listeners.tell(cluster)
    }
    this.#ending = undefined
  }
}
