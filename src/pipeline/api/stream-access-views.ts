import type { Access, AccessView, Principal } from '#access'
import { type Clock, FleetError, seconds } from '#model'
import type { Logger } from '#runtime'

/** Asked again at least this often, whoever else says that nothing changed. */
const maxAgeMs = seconds(2)
/** The same while it could not be found out. */
const retryMs = 500

interface WatchParts {
  readonly access: Access
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * When who sees what is to be asked again: policies changed or cannot be read, a policy begins or ends, or a while went by.
 */
export class AccessViewWatch implements Disposable {
  readonly #parts: WatchParts
  readonly #off: () => void
  #changed = false
  #askedAt: number
  #validUntil = Number.POSITIVE_INFINITY
  #failed = false

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
    if (this.#changed || now >= this.#validUntil) return true
    // Clocks are set back, too.
    return Math.abs(now - this.#askedAt) >= (this.#failed ? retryMs : maxAgeMs)
  }

  /** Another access view is in use. */
  note({ validUntil }: AccessView): void {
    this.#validUntil = Math.min(this.#validUntil, validUntil)
  }

  /** An access view for each principal, each sort asked once; undefined for those of whom it cannot be found out now. */
  ask(principals: readonly Principal[]): readonly (AccessView | undefined)[] {
    this.#changed = false
    this.#askedAt = this.#parts.clock.now()
    this.#validUntil = Number.POSITIVE_INFINITY
    const known = new Map<string, AccessView | undefined>()
    const accessViews = principals.map((principal) => {
      const key = keyOf(principal)
      if (!known.has(key)) known.set(key, this.#accessViewOf(principal))
      return known.get(key)
    })
    this.#failed = accessViews.includes(undefined)
    for (const accessView of known.values()) if (accessView) this.note(accessView)
    return accessViews
  }

  #accessViewOf(principal: Principal): AccessView | undefined {
    const { access, logger } = this.#parts
    try {
      return access.viewNow(principal)
    } catch (error) {
      if (!this.#failed) logger.warn({ error: FleetError.from(error) }, 'streams wait: nobody can say who sees what')
      this.#failed = true
      return undefined
    }
  }

  [Symbol.dispose](): void {
    this.#off()
  }
}

const keyOf = ({ username, email, emailVerified, groups, isServiceAccount, method, actor }: Principal): string =>
  JSON.stringify([username, email, emailVerified, groups, isServiceAccount, method, actor])
