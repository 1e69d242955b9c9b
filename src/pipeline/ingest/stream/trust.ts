import type { Effects } from './effects.ts'
import type { SessionWorld } from './session-events.ts'

/** Tells a member by which authorities the hub is known, and where it is: once, and whenever that has changed. It keeps several, so that one may follow another. */
export class Trust {
  readonly #world: Pick<SessionWorld, 'trust'>
  readonly #effects: Effects
  #told = ''

  constructor(world: Pick<SessionWorld, 'trust'>, effects: Effects) {
    this.#world = world
    this.#effects = effects
  }

  tell(): void {
    const { roots, addresses } = this.#world.trust?.() ?? { roots: '', addresses: [] }
    if (roots === '' && addresses.length === 0) return
    const told = [roots, ...addresses].join()
    if (told === this.#told) return
    this.#told = told
    this.#effects.send({ case: 'joinState', value: { phase: 'trust', roots, addresses: [...addresses] } })
  }
}
