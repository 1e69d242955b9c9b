import { type KubeClient, outcomeOf } from '#kube'
import { type Clock, FleetError, type Outcome, type Part, type RowsPart, sameJson } from '#model'
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
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #isKept: boolean
  readonly #fold: Fold | undefined
  /** by the read; undefined: it could not even begin */
  readonly #errors = new Map<Read | undefined, unknown>()
  #failed: Promise<void> = Promise.resolve()
  #onFailed: () => void = () => undefined
  #told: Pick<Said, 'parts' | 'tables'> = NOTHING_TOLD
  #taken = 0
  #resultOf = 0

  /** @param isKept it outlives what its reads give once: one that failed keeps none of the others from being taken */
  constructor(collector: Collector, context: Omit<FoldContext, 'now'>, clock: Clock, isKept = false) {
    this.collector = collector
    this.#isKept = isKept
    this.#clock = clock
    this.#startedAt = clock.now()
    this.begin()
    this.#fold = this.#try(undefined, () => collector.open({ ...context, now: this.#startedAt }))
  }

  /** How much was taken so far: what is made of it later may say something else. */
  get taken(): number {
    return this.#taken
  }

  /** something was taken since the last result */
  get hasMoved(): boolean {
    return this.#taken !== this.#resultOf
  }

  /** rows so far */
  get size(): number {
    return this.#fold?.size ?? 0
  }

  /** resolves when nothing can be told any more, since the last `begin` */
  get failed(): Promise<void> {
    return this.#failed
  }

  get hasFailed(): boolean {
    return this.#errors.size > 0
  }

  /** It is read once more. What failed before is forgotten where its read begins anew. */
  begin(): void {
    this.#failed = new Promise((resolve) => {
      this.#onFailed = resolve
    })
  }

  /** @returns whether it wants more of it */
  take(read: Read, event: ReadEvent): boolean {
    if (event.type === 'reset' && event.namespace === undefined) this.#errors.delete(read)
    if (this.#isKept ? this.#errors.has(read) : this.hasFailed) return false
    this.#taken++
    return this.#try(read, () => this.#fold?.take(read, event)) ?? false
  }

  /**
   * As of all that was taken.
   * @param since when the collection began, by the clock; default: when this was made
   * @throws KubeError `closed` where we closed the client: nothing is known
   */
  result(now: number, since = this.#startedAt): Said {
    const { types, name, rows } = this.collector
    const durationMs = () => Math.max(0, Math.round(this.#clock.now() - since))
    this.#resultOf = this.#taken
    const [failure] = this.#errors.values()
    if (failure !== undefined) return this.#nothing(failure, durationMs())
    let found: ReturnType<Fold['parts']> | undefined
    try {
      found = this.#fold?.parts(now)
    } catch (error) {
      return this.#nothing(error, durationMs())
    }
    if (!found) return this.#nothing(undefined, durationMs())
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

  /** Of what was read, what is another than it was told last. */
  news(now: number): Pick<Said, 'parts' | 'tables'> {
    const { parts, tables } = this.result(now, now)
    const before = this.#told
    return {
      parts: parts.filter(
        (part) => part.outcome === 'complete' && !before.parts.some((told) => isSamePart(told, part)),
      ),
      tables: tables.filter(
        (part) => part.outcome === 'complete' && !before.tables.some((told) => isSameTable(told, part)),
      ),
    }
  }

  /** This is known now where the batches go. */
  told({ parts, tables }: Pick<Said, 'parts' | 'tables'>): void {
    const isOther = (old: Part) => !parts.some(({ type }) => type === old.type)
    this.#told = {
      parts: [...this.#told.parts.filter(isOther), ...parts],
      tables: tables.length > 0 ? tables : this.#told.tables,
    }
  }

  /** Nobody can say what is known there. */
  untold(): void {
    this.#told = NOTHING_TOLD
  }

  #nothing(error: unknown, durationMs: number): Said {
    return { ...nothingOf(this.collector, saidOf(error), durationMs), error }
  }

  #try<T>(read: Read | undefined, action: () => T): T | undefined {
    try {
      return action()
    } catch (cause) {
      if (!this.#errors.has(read)) this.#errors.set(read, cause)
      this.#onFailed()
      return undefined
    }
  }
}

const NOTHING_TOLD: Pick<Said, 'parts' | 'tables'> = { parts: [], tables: [] }

function isSamePart(told: Part, part: Part): boolean {
  if (told.type !== part.type || told.outcome !== 'complete' || part.outcome !== 'complete') return false
  const [before, after]: readonly (readonly unknown[])[] = [told.items, part.items]
  return (
    before === after ||
    (before?.length === after?.length && before?.every((one, i) => sameJson(one, after?.[i])) === true)
  )
}

function isSameTable(told: WholePart, part: WholePart): boolean {
  if (told.outcome !== 'complete' || part.outcome !== 'complete') return false
  const { rows, truncated, errorCount, errors } = part
  return (
    rows.equals(told.rows) &&
    told.truncated === truncated &&
    told.errorCount === errorCount &&
    sameJson(told.errors, errors)
  )
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
  return new Map(
    [...wantingOf(collections)].map(([read, all]) => [
      read,
      poll(read, { ...reading, take: (event) => giveAll(all, read, event) }),
    ]),
  )
}

export function wantingOf(collections: readonly Collection[]): ReadonlyMap<Read, readonly Collection[]> {
  const wanting = new Map<Read, Collection[]>()
  for (const one of collections)
    for (const read of one.collector.reads) wanting.set(read, [...(wanting.get(read) ?? []), one])
  return wanting
}

/** @returns whether any of them wants more */
export const giveAll = (wanting: readonly Collection[], read: Read, event: ReadEvent): boolean =>
  wanting.reduce((isWanted, one) => one.take(read, event) || isWanted, false)
