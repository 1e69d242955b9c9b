import { type KubeClient, outcomeOf } from '#kube'
import { type Clock, FleetError, type Outcome, type Part, type RowsPart } from '#model'
import type { ListEnd } from './list.ts'
import { poll } from './poll.ts'
import type { Collected, Collector, Fold, FoldContext, Read, ReadEvent } from './types.ts'

/** What was read of rows, or why it was not; differences are made of it elsewhere. */
export type WholePart = Exclude<RowsPart, { readonly outcome: 'changed' }>

/** What a collection says, in its parts. */
export interface Said {
  readonly parts: readonly Part[]
  readonly tables: readonly WholePart[]
  /** what kept it from telling more */
  readonly error?: unknown
}

/** One collector under way: takes what its reads give, and says what it makes of it. */
export class Collection {
  readonly collector: Collector
  /** resolves when nothing can be told any more */
  readonly failed: Promise<void>
  readonly #clock: Clock
  readonly #startedAt: number
  #fold: Fold | undefined
  #error: { readonly cause: unknown } | undefined
  #onFailed: () => void = () => undefined

  constructor(collector: Collector, context: Omit<FoldContext, 'now'>, clock: Clock) {
    this.collector = collector
    this.#clock = clock
    this.#startedAt = clock.now()
    this.failed = new Promise((resolve) => {
      this.#onFailed = resolve
    })
    this.#try(() => {
      this.#fold = collector.open({ ...context, now: this.#startedAt })
    })
  }

  /** rows so far */
  get size(): number {
    return this.#fold?.size ?? 0
  }

  /** @returns whether it wants more */
  take(read: Read, event: ReadEvent): boolean {
    return (!this.#error && this.#try(() => this.#fold?.take(read, event))) ?? false
  }

  /**
   * As of all that was taken.
   * @param since when the collection began, by the clock; default: when this was made
   * @throws KubeError `closed` where we closed the client: nothing is known
   */
  result(now: number, since = this.#startedAt): Said {
    const { types, name, rows } = this.collector
    const durationMs = () => Math.max(0, Math.round(this.#clock.now() - since))
    const found = this.#try(() => this.#fold?.parts(now))
    if (this.#error || !found) {
      const error = this.#error?.cause
      return { ...nothingOf(this.collector, saidOf(error), durationMs()), error }
    }
    if (isAbsent(found))
      return nothingOf(this.collector, { outcome: 'absent', code: 'not_served', message: found.absent }, durationMs())
    const said = { durationMs: durationMs() }
    const tables: readonly WholePart[] =
      rows && found.rows ? [{ source: rows.id, hash: rows.hash, ...said, outcome: 'complete', ...found.rows }] : []
    const [first] = types.map((type) => found[type])
    return {
      parts: partsOf(this.collector, found, { collector: name, ...said }),
      tables,
      ...(first && 'refused' in first && { error: first.refused }),
    }
  }

  #try<T>(action: () => T): T | undefined {
    try {
      return action()
    } catch (cause) {
      this.#error ??= { cause }
      this.#onFailed()
      return undefined
    }
  }
}

function partsOf(
  { types }: Collector,
  found: Collected,
  said: { readonly collector: string; readonly durationMs: number },
): readonly Part[] {
  return types.map((type) => {
    const items = found[type] ?? []
    if ('refused' in items) return { type, ...said, ...saidOf(items.refused) }
    return { type, ...said, outcome: 'complete', items } as Part // the same `type` on both sides
  })
}

function isAbsent(found: Collected | { readonly absent: string }): found is { readonly absent: string } {
  return 'absent' in found
}

/** Why something could not be read, for programs and for people. */
export interface Unread {
  readonly outcome: Exclude<Outcome, 'complete'>
  readonly code: string
  readonly message: string
}

/** Longest message of a part, UTF-16 units: there may be many, and each is kept. */
const MAX_MESSAGE = 1000

/** What an error says of a read. @throws the error itself where we closed the client */
export function saidOf(error: unknown): Unread {
  const { code, message } = FleetError.from(error)
  return { outcome: outcomeOf(error), code, message: message.slice(0, MAX_MESSAGE) }
}

/** The same of everything a collector would have told. */
export function nothingOf({ name, types, rows }: Collector, why: Unread, durationMs: number): Said {
  const said = { durationMs, ...why, message: why.message.slice(0, MAX_MESSAGE) }
  return {
    parts: types.map((type) => ({ type, collector: name, ...said })),
    tables: rows ? [{ source: rows.id, hash: rows.hash, ...said }] : [],
  }
}

/** What reads are made with. */
export interface Reading {
  readonly kube: KubeClient
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly random: () => number
  readonly onPage?: () => void
}

/** Makes every read of these collections once, all at the same time, each for all that want it. */
export function readFor(
  collections: readonly Collection[],
  reading: Reading,
): ReadonlyMap<Read, Promise<readonly ListEnd[]>> {
  const wanting = new Map<Read, Collection[]>()
  for (const one of collections)
    for (const read of one.collector.reads) wanting.set(read, [...(wanting.get(read) ?? []), one])
  return new Map(
    [...wanting].map(([read, all]) => [read, poll(read, { ...reading, take: (event) => giveAll(all, read, event) })]),
  )
}

/** @returns whether any of them wants more */
const giveAll = (wanting: readonly Collection[], read: Read, event: ReadEvent): boolean =>
  wanting.reduce((isWanted, one) => one.take(read, event) || isWanted, false)
