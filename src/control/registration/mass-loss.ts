import { AGENTS_RETURN_MS, type Clock, minutes, seconds } from '#model'
import type { Logger } from '#runtime'
import type { Presence } from './presence.ts'

const TOGETHER_MS = seconds(30)
/** Fewer are never called a mass. */
const MASS = 5
const MASS_SHARE = 0.2
/** Where the hub was away: whoever is said to be lost is known to be, and may be one of many. */
const UNTAINTED_MS = AGENTS_RETURN_MS + seconds(20)

export interface MassLossOptions {
  /** members whose life is judged */
  readonly members: () => number
  /** how long nobody is tainted after many were lost at once, ms; default 1 min, and 0: never held back */
  readonly pauseMs?: number
  readonly presence: Pick<Presence, 'forMs'>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Notices that many members are lost at once: then it is more likely the way to them, or the hub, than each of them. All of
 * them are said to be unknown, and none is tainted for a while, so that nothing is moved away from them for it. Where the hub
 * itself was away, by its start or as it stood still, all of them are lost at once, however many they are.
 */
export class MassLoss {
  readonly #options: MassLossOptions
  #lost: { readonly cluster: string; readonly at: number }[] = []
  #until = Number.NEGATIVE_INFINITY

  constructor(options: MassLossOptions) {
    this.#options = options
  }

  lost(cluster: string): void {
    const { members, clock, presence, pauseMs = minutes(1), logger } = this.#options
    const now = clock.now()
    this.#lost = this.#lost.filter(({ at, cluster: other }) => now - at < TOGETHER_MS && other !== cluster)
    this.#lost.push({ cluster, at: now })
    if (this.#lost.length < Math.max(MASS, MASS_SHARE * members())) return
    const began = now >= this.#until
    this.#until = now + pauseMs
    // Where the hub itself was away it knows why.
    if (began && presence.forMs() >= this.returnMs)
      logger.warn(
        { members: this.#lost.length, pauseMs },
        'many members were lost at once: look at the way to them first; none is tainted for a while',
      )
  }

  /** How long nobody is tainted from now on, ms; 0: no longer. */
  pauseMs(): number {
    const { clock, presence, pauseMs = minutes(1) } = this.#options
    const leftMs = Math.min(this.#until - clock.now(), pauseMs)
    return Math.max(0, leftMs, this.returnMs - presence.forMs())
  }

  /** How long members have to come back where the hub was away, before they are tainted, ms. */
  get returnMs(): number {
    const { pauseMs = minutes(1) } = this.#options
    return pauseMs === 0 ? 0 : Math.max(pauseMs, UNTAINTED_MS)
  }
}
