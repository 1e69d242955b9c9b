import type { FoundSink } from '../bindings/plan.ts'
import { placeText, type SinkPlace } from '../sink-place.ts'
import type { Resolved } from './resolve-sink.ts'
import type { SecretValues } from './secret-values.ts'

/** A sink that is deleted is still known for so long, ms: inventories that go with it can take away what they wrote. */
const DEPARTED_MS = 10 * 60_000

/** What is known of every declared sink, and who wants to hear when that changes. */
export class SinkDirectory {
  readonly #sinks = new Map<string, Resolved>()
  readonly #departed = new Map<string, { readonly found: FoundSink; readonly at: number }>()
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

  /** A sink that went a while ago, for cleaning up. */
  departed(place: SinkPlace): FoundSink | undefined {
    return this.#departed.get(placeText(place))?.found
  }

  secretsOf(place: SinkPlace): ReadonlyMap<string, SecretValues> {
    return this.#sinks.get(placeText(place))?.secrets ?? new Map()
  }

  /** @returns whether it is another sink than before, or blocked otherwise */
  set(place: SinkPlace, resolved: Resolved): boolean {
    const text = placeText(place)
    const before = this.#sinks.get(text)?.found
    this.#sinks.set(text, resolved)
    this.#departed.delete(text)
    if (before && saysTheSame(before, resolved.found)) return false
    this.#tell(place)
    return true
  }

  delete(place: SinkPlace): void {
    const text = placeText(place)
    const known = this.#sinks.get(text)
    const now = this.#now()
    for (const [departed, { at }] of this.#departed) if (now - at > DEPARTED_MS) this.#departed.delete(departed)
    if (!known) return
    this.#sinks.delete(text)
    this.#departed.set(text, { found: known.found, at: now })
    this.#tell(place)
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
