import { minutes, seconds } from '#model'

/** One list back after a pause of so many times what a list takes. */
const PAUSE_PER_LIST = 10
const MAX_PAUSE_MS = minutes(5)
/** So many lists a namespace may have in a row. */
const LISTS_IN_ADVANCE = 3
/** Nobody minds waiting so long, and short lists rest for longer than they take. */
const SHORT_MS = seconds(1)

/** A list that is over. */
export interface Listed {
  readonly endedAt: number
  readonly tookMs: number
}

/** What one namespace has left, as it was when a list began for it. */
interface Allowance {
  readonly lists: number
  readonly at: number
}

/**
 * When a place may be listed again. It rests for as long as its last list took, so that half of the time at most goes into lists, whoever
 * asks for them. Besides, each namespace has three lists in advance, and one back after ten times what a list takes: who keeps changing
 * what it wants has a tenth of the time, and who changed nothing lately does not wait for that. One list serves all that wait, and each of
 * them pays for it. Namespaces are told apart by what they have in memory.
 */
export class ListPauses {
  readonly #allowances = new WeakMap<object, Allowance>()
  #last: Listed | undefined

  ended(list: Listed): void {
    this.#last = list
  }

  /** It might have taken as long as the one before: breaking lists off makes no later one cheaper. */
  brokenOff({ endedAt, tookMs }: Listed): void {
    this.#last = { endedAt, tookMs: Math.max(tookMs, this.#last?.tookMs ?? 0) }
  }

  /** A list begins for what these changed. The first one for each is free: it changed nothing. */
  begin(spaces: readonly object[], now: number): void {
    for (const space of new Set(spaces)) {
      const lists = this.#allowances.has(space) ? Math.max(0, this.#listsOf(space, now) - 1) : LISTS_IN_ADVANCE
      this.#allowances.set(space, { lists, at: now })
    }
  }

  /** @param spaces that wait for a list; []: it would only leave out what nobody wants any more. @returns ms, not above 0: it is time */
  leftMs(spaces: readonly object[], now: number): number {
    if (!this.#last) return 0
    const { endedAt, tookMs } = this.#last
    if (spaces.length === 0) return endedAt + this.#pauseMs - now
    const restMs = Math.min(this.#pauseMs, Math.max(tookMs, SHORT_MS))
    const lists = Math.max(...spaces.map((space) => this.#listsOf(space, now)))
    return Math.max(endedAt + restMs - now, (1 - lists) * this.#pauseMs)
  }

  /** Whether it is as if nothing had ever been listed. */
  isOver(now: number): boolean {
    return !this.#last || now - this.#last.endedAt >= LISTS_IN_ADVANCE * this.#pauseMs
  }

  #listsOf(space: object, now: number): number {
    const { lists, at } = this.#allowances.get(space) ?? { lists: LISTS_IN_ADVANCE, at: now }
    return Math.min(LISTS_IN_ADVANCE, lists + (now - at) / Math.max(1, this.#pauseMs))
  }

  get #pauseMs(): number {
    return Math.min(MAX_PAUSE_MS, (this.#last?.tookMs ?? 0) * PAUSE_PER_LIST)
  }
}

/** Those of all places of a kind. They outlive places and watches: who goes away and comes back has not become another. */
export class PausesOfKind {
  readonly #of = new Map<string | undefined, ListPauses>()

  /** @param namespace undefined: the whole cluster */
  of(namespace: string | undefined): ListPauses {
    const known = this.#of.get(namespace) ?? new ListPauses()
    this.#of.set(namespace, known)
    return known
  }

  /** Lets go of those that are over, but for places that are there. @returns whether none is left */
  forget(now: number, isThere: (namespace: string | undefined) => boolean): boolean {
    for (const [namespace, pauses] of this.#of)
      if (!isThere(namespace) && pauses.isOver(now)) this.#of.delete(namespace)
    return this.#of.size === 0
  }
}
