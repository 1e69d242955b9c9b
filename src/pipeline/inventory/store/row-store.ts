import type { Row } from '#extract'
import type { RowKey } from '#sinks'
import type { RowSink, TargetKey, TargetRows } from '../rows.ts'
import { type Departure, Departures } from './departures.ts'
import { type PackedRow, packRow, SharedTexts } from './packed-row.ts'
import { SortedRows } from './sorted-rows.ts'

/** Rows that went and are remembered, over all targets. */
const MAX_DEPARTURES = 50_000

/** What is known of a target: nothing since this process started, that it chooses nothing, or its rows. */
export type TargetState =
  | { readonly kind: 'unknown' | 'dropped' }
  | {
      readonly kind: 'rows'
      readonly rows: readonly PackedRow[]
      readonly isComplete: boolean
      /** it is not complete, and not just being read */
      readonly isHindered: boolean
      /** its lists were read to their end since this process started: what it lacks is known */
      readonly isRead: boolean
      /** when it was complete last, ms since 1970; undefined: it is now, or never was */
      readonly completeUntil?: number
    }

/** `namespace/name`; `/name` for a target of the cluster. */
export const targetText = ({ namespace, name }: TargetKey): string => `${namespace}/${name}`

/**
 * The rows of every target of this cluster, in memory only. Each change raises the sequence by one, rows carry that of their last change, and
 * what went is remembered for a while: so what differs since any sequence is found without a log.
 */
export class RowStore implements RowSink {
  readonly #targets = new Map<string, Target>()
  /** told to have gone, and not asked for since */
  readonly #dropped = new Set<string>()
  readonly #departures: Departures
  readonly #texts = new SharedTexts()
  readonly #onChange: (namespace: string) => void
  readonly #now: () => number
  #sequence = 0

  /**
   * @param onChange hears the namespace of each target whose rows or completeness changed ('' of those of the cluster); must neither wait
   *   nor throw
   * @param options now: of the wall, ms since 1970
   */
  constructor(onChange: (namespace: string) => void, { maxDepartures = MAX_DEPARTURES, now = Date.now } = {}) {
    this.#onChange = onChange
    this.#now = now
    this.#departures = new Departures(maxDepartures)
  }

  /** Rises by one with every change. */
  get sequence(): number {
    return this.#sequence
  }

  /** Rows of all targets. */
  get size(): number {
    let size = 0
    for (const target of this.#targets.values()) size += target.size
    return size
  }

  target(key: TargetKey): TargetRows {
    const text = targetText(key)
    const known = this.#targets.get(text)
    if (known) return known
    const target = new Target({
      key,
      text,
      departures: this.#departures,
      texts: this.#texts,
      next: () => ++this.#sequence,
      now: this.#now,
      changed: () => this.#onChange(key.namespace),
      dropped: () => {
        this.#targets.delete(text)
        this.#dropped.add(text)
      },
    })
    this.#targets.set(text, target)
    this.#dropped.delete(text)
    return target
  }

  state(key: TargetKey): TargetState {
    const text = targetText(key)
    const target = this.#targets.get(text)
    if (target) return target.state()
    return { kind: this.#dropped.has(text) ? 'dropped' : 'unknown' }
  }

  /** The targets that have rows, or may have some. */
  targets(): readonly TargetKey[] {
    return Array.from(this.#targets.values(), ({ key }) => key)
  }

  /** What left after this sequence, of any target; undefined: that is not known any more. */
  departedSince(sequence: number): readonly Departure[] | undefined {
    return this.#departures.since(sequence)
  }
}

interface TargetOptions {
  readonly key: TargetKey
  readonly text: string
  readonly departures: Departures
  readonly texts: SharedTexts
  readonly next: () => number
  readonly now: () => number
  readonly changed: () => void
  readonly dropped: () => void
}

class Target implements TargetRows {
  readonly #options: TargetOptions
  readonly #rows = new SortedRows()
  #isComplete = false
  #isHindered = false
  #isRead = false
  #completeUntil: number | undefined
  #isDropped = false

  constructor(options: TargetOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#rows.size
  }

  get key(): TargetKey {
    return this.#options.key
  }

  state(): TargetState {
    const completeUntil = this.#completeUntil
    return {
      kind: 'rows',
      rows: this.#rows.read(),
      isComplete: this.#isComplete,
      isHindered: this.#isHindered,
      isRead: this.#isRead,
      ...(completeUntil !== undefined && { completeUntil }),
    }
  }

  put(rows: Iterable<Row>): void {
    if (this.#isDropped) return
    const sequence = this.#options.next()
    const packed = this.#packed(rows, sequence)
    if (!this.#rows.put(packed)) return
    for (const row of packed) this.#options.departures.remove(this.#options.text, row)
    this.#options.changed()
  }

  remove(keys: Iterable<RowKey>): void {
    this.#leave(this.#rows.remove(keys))
  }

  replace(rows: Iterable<Row>): void {
    if (this.#isDropped) return
    const packed = this.#packed(rows, this.#options.next())
    const { gone, changed } = this.#rows.replace(packed)
    for (const row of packed) this.#options.departures.remove(this.#options.text, row)
    this.#leave(gone)
    if (changed && gone.length === 0) this.#options.changed()
  }

  setComplete(isComplete: boolean, isHindered = false, isRead = isComplete): void {
    const isNews = this.#isComplete !== isComplete || this.#isHindered !== isHindered || (isRead && !this.#isRead)
    if (this.#isDropped || !isNews) return
    this.#isRead ||= isRead
    if (this.#isComplete !== isComplete) this.#completeUntil = isComplete ? undefined : this.#options.now()
    this.#isComplete = isComplete
    this.#isHindered = isHindered
    this.#options.next()
    this.#options.changed()
  }

  drop(): void {
    if (this.#isDropped) return
    this.#isDropped = true
    this.#options.dropped()
    const { gone } = this.#rows.replace([])
    this.#leave(gone)
    if (gone.length === 0) this.#options.changed()
  }

  #packed(rows: Iterable<Row>, sequence: number): PackedRow[] {
    return Array.from(rows, (row) => packRow(row, sequence, this.#options.texts))
  }

  #leave(gone: readonly PackedRow[]): void {
    if (gone.length === 0) return
    const sequence = this.#options.next()
    for (const row of gone) this.#options.departures.add(this.#options.text, row, sequence)
    this.#options.changed()
  }
}
