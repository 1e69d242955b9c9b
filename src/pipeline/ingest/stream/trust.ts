import type { Effects } from './effects.ts'
import type { SessionWorld } from './session-events.ts'

/** Tells a member by which authorities the hub is known: once, and whenever they have changed. It keeps several, so that one may follow another. */
export class Trust {
  readonly #world: Pick<SessionWorld, 'trust'>
  readonly #effects: Effects
  #told = ''

  constructor(world: Pick<SessionWorld, 'trust'>, effects: Effects) {
    this.#world = world
    this.#effects = effects
  }

  tell(): void {
    const roots = this.#world.trust?.() ?? ''
    if (roots === '' || roots === this.#told) return
    this.#told = roots
    this.#effects.send({ case: 'joinState', value: { phase: 'trust', roots } })
  }
}
