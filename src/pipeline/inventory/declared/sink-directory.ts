import type { FoundSink } from '../bindings/plan.ts'
import { placeText, type SinkPlace } from '../sink-place.ts'
import type { Resolved } from './resolve-sink.ts'
import type { SecretValues } from './secret-values.ts'

/** A sink that is deleted, or whose Secret is, is still known for so long, ms: inventories that go with it can take away what they wrote. */
const DEPARTED_MS = 10 * 60_000

/** What is known of every declared sink, and who wants to hear when that changes. */
export class SinkDirectory {
  readonly #sinks = new Map<string, Resolved>()
  /** as each could be written to last, and since when it cannot */
  readonly #usable = new Map<string, { readonly found: FoundSink; readonly lostAt?: number }>()
  readonly #listeners = new Set<(place: SinkPlace) => void>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Calls the listener for each sink that is another one, or is blocked for another reason. */
  onChange(listener: (place: SinkPlace) => void): void {
    this.#listeners.add(listener)
  }

  /** undefined: there is no such sink, or nobody looked at it yet. */
  get(place: SinkPlace): FoundSink | undefined {
    return this.#sinks.get(placeText(place))?.found
  }

  /** The same for cleaning up: as it was, where it cannot be written to since a while. */
  forCleaning(place: SinkPlace): FoundSink | undefined {
    const usable = this.#usable.get(placeText(place))
    return usable && this.#now() - (usable.lostAt ?? this.#now()) <= DEPARTED_MS ? usable.found : this.get(place)
  }

  secretsOf(place: SinkPlace): ReadonlyMap<string, SecretValues> {
    return this.#sinks.get(placeText(place))?.secrets ?? new Map()
  }

  /** @returns whether it is another sink than before, or blocked otherwise */
  set(place: SinkPlace, resolved: Resolved): boolean {
    const text = placeText(place)
    const before = this.#sinks.get(text)?.found
    this.#sinks.set(text, resolved)
    if (resolved.found.kind === 'ready') this.#usable.set(text, { found: resolved.found })
    else this.#lose(text)
    if (before && saysTheSame(before, resolved.found)) return false
    this.#tell(place)
    return true
  }

  delete(place: SinkPlace): void {
    const text = placeText(place)
    const now = this.#now()
    for (const [one, { lostAt = now }] of this.#usable) if (now - lostAt > DEPARTED_MS) this.#usable.delete(one)
    this.#lose(text)
    if (this.#sinks.delete(text)) this.#tell(place)
  }

  #lose(text: string): void {
    const usable = this.#usable.get(text)
    if (usable) this.#usable.set(text, { lostAt: this.#now(), ...usable })
  }

  #tell(place: SinkPlace): void {
    for (const listener of this.#listeners) listener(place)
  }
}

function saysTheSame(a: FoundSink, b: FoundSink): boolean {
  if (a.spec?.exportMinInterval !== b.spec?.exportMinInterval) return false
  if (a.spec?.snapshotWindow !== b.spec?.snapshotWindow || a.spec?.deletionPolicy !== b.spec?.deletionPolicy)
    return false
  if (a.kind === 'ready') return b.kind === 'ready' && a.sink.identity === b.sink.identity
  return b.kind === 'blocked' && a.blocked.reason === b.blocked.reason && a.blocked.message === b.blocked.message
}
