import { isDeepStrictEqual } from 'node:util'
import { minutes, seconds } from '#model'
import { Listeners } from '#runtime'
import type { ProbeResult, RegistryFacts, RegistryMeasurement, RegistryState } from './types.ts'

/** How long measurements are kept, ms. */
export const KEPT_MS = minutes(24 * 60)

/** One registry with its measurements. */
export interface Entry {
  readonly state: RegistryState
  readonly journal: Journal
}

/**
 * Measurements of one registry, oldest first: at most one a minute, of which the worst counts, so that no failure is lost.
 * Times are whole seconds, as every store keeps them.
 */
export class Journal {
  readonly #kept: RegistryMeasurement[] = []

  /** What is older than the newest is not taken: time does not go back. */
  add(at: number, available: boolean, responseMs: number | null): void {
    const next = { at: Math.floor(at / 1000) * 1000, available, responseMs }
    const last = this.#kept.at(-1)
    if (last && minuteOf(next) < minuteOf(last)) return
    if (last && minuteOf(next) === minuteOf(last)) this.#kept[this.#kept.length - 1] = worse(last, next)
    else this.#kept.push(next)
    const firstKept = this.#kept.findIndex((entry) => entry.at >= next.at - KEPT_MS)
    if (firstKept > 0) this.#kept.splice(0, firstKept)
  }

  /** Those of the last 24 h. */
  list(now: number): readonly RegistryMeasurement[] {
    return this.#kept.filter(({ at }) => at >= now - KEPT_MS)
  }
}

const minuteOf = ({ at }: RegistryMeasurement): number => Math.floor(at / minutes(1))

function worse(one: RegistryMeasurement, other: RegistryMeasurement): RegistryMeasurement {
  if (one.available !== other.available) return one.available ? other : one
  return (other.responseMs ?? 0) > (one.responseMs ?? 0) ? other : one
}

/** What is known of all registries, in memory; every driver keeps one and answers readers from it. */
export class RegistryBoard {
  readonly #entries = new Map<string, Entry>()
  readonly #listeners = new Listeners<[name: string]>()
  #sorted: readonly RegistryState[] | undefined
  #version = 0

  get version(): number {
    return this.#version
  }

  registries(): readonly RegistryState[] {
    this.#sorted ??= [...this.#entries.values()]
      .map(({ state }) => state)
      .sort((a, b) => (a.facts.name < b.facts.name ? -1 : 1))
    return this.#sorted
  }

  get(name: string): Entry | undefined {
    return this.#entries.get(name)
  }

  measurements(name: string, now: number): readonly RegistryMeasurement[] {
    return this.#entries.get(name)?.journal.list(now) ?? []
  }

  /** The state with these facts; undefined: nothing differs. What was found at another address is not kept. */
  declared(facts: RegistryFacts): Entry | undefined {
    const known = this.#entries.get(facts.name)
    if (known && isDeepStrictEqual(known.state.facts, facts)) return undefined
    const isSamePlace = known?.state.facts.endpoint === facts.endpoint
    if (known && isSamePlace) return { ...known, state: { ...known.state, facts } }
    return { state: { facts, last: null, since: null, version: 0 }, journal: new Journal() }
  }

  put(name: string, { state, journal }: Entry): void {
    this.#version++
    this.#entries.set(name, { state: { ...state, version: this.#version }, journal })
    this.#changed(name)
  }

  /** @returns whether there was one */
  remove(name: string): boolean {
    if (!this.#entries.delete(name)) return false
    this.#version++
    this.#changed(name)
    return true
  }

  onChange(listener: (name: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  #changed(name: string): void {
    this.#sorted = undefined
    this.#listeners.tell(name)
  }
}

/** The state after one more probe. */
export function probed(state: RegistryState, last: ProbeResult): RegistryState {
  const goesOn = state.last?.available === last.available
  return { ...state, last, since: goesOn ? (state.since ?? last.at) : last.at }
}

/** Between probes of a registry that stays away, in intervals, at most. */
export const MAX_BACKOFF_INTERVALS = 5

/** When silence about a registry is worth a mark: three intervals, and as many more as its probes are spread by failures. */
export function staleAt({ facts, last }: Pick<RegistryState, 'facts' | 'last'>): number {
  if (!last) return Number.POSITIVE_INFINITY
  const intervals = last.available ? 3 : MAX_BACKOFF_INTERVALS + 2
  return last.at + Math.max(intervals * facts.intervalMs, seconds(90))
}
