import type { Access, Principal, Sight } from '#access'
import { type Clock, FleetError, seconds } from '#model'
import type { Logger } from '#runtime'

/** Asked again at least this often, whoever else says that nothing changed. */
const maxAgeMs = seconds(2)

interface WatchParts {
  readonly access: Access
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * When who sees what is to be asked again: policies changed or cannot be read, a policy begins or ends, or a while went by.
 * Blind is who cannot find out; a blind server tells nothing.
 */
export class SightWatch implements Disposable {
  readonly #parts: WatchParts
  readonly #off: () => void
  #changed = false
  #askedAt: number
  #validUntil = Number.POSITIVE_INFINITY
  #blindSince: number | undefined

  /** @param onChange is called when there is a reason to ask; it must not wait */
  constructor(parts: WatchParts, onChange: () => void) {
    this.#parts = parts
    this.#askedAt = parts.clock.now()
    this.#off = parts.access.onChange(() => {
      this.#changed = true
      onChange()
    })
  }

  isDue(): boolean {
    const now = this.#parts.clock.now()
    if (this.#changed || this.isBlind || now >= this.#validUntil) return true
    return Math.abs(now - this.#askedAt) >= maxAgeMs
  }

  /** Another sight is in use. */
  note({ validUntil }: Sight): void {
    this.#validUntil = Math.min(this.#validUntil, validUntil)
  }

  get isBlind(): boolean {
    return this.#blindSince !== undefined
  }

  blindForMs(): number {
    return this.#blindSince === undefined ? 0 : this.#parts.clock.now() - this.#blindSince
  }

  /** A sight for each principal, each sort asked once; undefined where it cannot be found out. */
  ask(principals: readonly Principal[]): readonly Sight[] | undefined {
    const { access, clock, logger } = this.#parts
    const now = clock.now()
    this.#changed = false
    this.#askedAt = now
    const known = new Map<string, Sight>()
    try {
      const sights = principals.map((principal) => {
        const key = keyOf(principal)
        const sight = known.get(key) ?? access.sightNow(principal)
        known.set(key, sight)
        return sight
      })
      this.#validUntil = Math.min(...[...known.values()].map(({ validUntil }) => validUntil))
      this.#blindSince = undefined
      return sights
    } catch (error) {
      if (!this.isBlind) logger.warn({ error: FleetError.from(error) }, 'streams wait: nobody can say who sees what')
      this.#blindSince ??= now
      return undefined
    }
  }

  [Symbol.dispose](): void {
    this.#off()
  }
}

const keyOf = ({ username, email, emailVerified, groups, isServiceAccount, method }: Principal): string =>
  JSON.stringify([username, email, emailVerified, groups, isServiceAccount, method])
