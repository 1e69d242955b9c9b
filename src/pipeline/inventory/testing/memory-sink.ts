import { setImmediate } from 'node:timers/promises'
import { expect } from 'vitest'
import { canonicalRow, type Row } from '#extract'
import { OutboundGuard } from '#outbound'
import { silentLogger } from '#runtime'
import {
  comparePositions,
  type Delivery,
  type Position,
  type Probe,
  type Receipt,
  type RowKey,
  type Sink,
  type SinkContext,
  SinkError,
  type SinkErrorClass,
  type SinkFamily,
  SinkPool,
  type Waits,
  type Writing,
} from '#sinks'

/** What a sink in memory holds of one writing. */
interface Held {
  readonly position: Position
  readonly rows: Map<string, Row>
}

/** One delivery that was taken. */
export interface Taken {
  readonly at: number
  readonly delivery: Delivery
  readonly written: number
  readonly removed: number
  /** whether it was told by differences alone */
  readonly byChanges: boolean
}

const CONFLICT = 'somebody else writes here'

const keyOf = (row: RowKey) => JSON.stringify([row.targetNamespace, row.targetName, row.namespace, row.name, row.uid])
const textOf = ({ cluster, namespace, inventory }: Writing) => `${cluster}/${namespace}/${inventory}`

/** Somewhere that sinks of tests write to, by the rules of a table. It fails and hangs as it is told to. */
export class MemoryPlace {
  readonly held = new Map<string, Held>()
  readonly taken: Taken[] = []
  readonly removed: string[] = []
  /** when it was told that a writer lives */
  readonly heardAt: number[] = []
  attempts = 0
  opened = 0
  closed = 0
  trouble: SinkErrorClass | 'hang' | 'conflict' | 'part' | undefined
  /** what is told of a writer before ours */
  replaced: string | undefined
  /** as that of a Receipt */
  listedAt: string | undefined
  /** what deliveries said of it */
  readonly formerLists: (string | undefined)[] = []
  /** by the clock of the place: nothing is deleted before */
  deletesAt = 0
  probeSays: Probe = { verified: true, message: 'it answers', warnings: [] }
  readonly now: () => number

  constructor(now: () => number = Date.now) {
    this.now = now
  }

  rowsOf(writing: Writing): readonly Row[] {
    return [...(this.held.get(textOf(writing))?.rows.values() ?? [])]
  }

  /** names of the rows, sorted */
  namesOf(writing: Writing): readonly string[] {
    return this.rowsOf(writing)
      .map(({ name }) => name)
      .sort()
  }

  sink(family: SinkFamily): Sink {
    this.opened++
    return {
      family,
      probe: () => Promise.resolve(this.probeSays),
      deliver: (delivery, signal) => this.#deliver(delivery, signal),
      alive: () => {
        this.heardAt.push(this.now())
        return Promise.resolve(this.trouble === 'conflict' ? CONFLICT : undefined)
      },
      remove: async (writing, _, signal) => {
        await this.#maybeFail(signal)
        const waits = this.#waits()
        if (waits) throw new SinkError('transient', waits.message, { retryAfterMs: waits.ms })
        this.removed.push(textOf(writing))
        this.held.delete(textOf(writing))
      },
      preview: ({ cluster, inventory }) => ({ provisioningMode: 'ensure', objectPath: `${cluster}/${inventory}` }),
      [Symbol.asyncDispose]: () => {
        this.closed++
        return Promise.resolve()
      },
    }
  }

  async #deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    this.attempts++
    this.formerLists.push(delivery.formerList)
    await this.#maybeFail(signal)
    this.heardAt.push(this.now())
    const text = textOf(delivery.writing)
    const held = this.held.get(text)
    const nothing = { written: 0, removed: 0, bytes: 0 }
    if (this.trouble === 'conflict') return { position: delivery.position, ...nothing, conflict: CONFLICT }
    if (this.trouble === 'part') return { position: { epoch: 0n, sequence: 0n }, ...nothing, isPartial: true }
    if (held && comparePositions(held.position, delivery.position) >= 0) return { position: held.position, ...nothing }
    const { changes } = delivery
    const byChanges = held !== undefined && changes !== undefined && comparePositions(changes.base, held.position) === 0
    const rows = new Map(held?.rows)
    const waits = this.#waits()
    const mayRemove = delivery.complete && !waits
    const counts = byChanges ? apply(rows, changes, mayRemove) : replaceRows(rows, delivery, mayRemove)
    const kept = rows.size - delivery.itemCount
    const isWaiting = waits && delivery.complete && kept > 0
    if (mayRemove) expect(texts(rows.values())).toEqual(texts(delivery.rows()))
    this.held.set(text, { position: delivery.position, rows })
    this.taken.push({ at: this.now(), delivery, byChanges, ...counts })
    const more = {
      ...(kept > 0 && { kept }),
      ...(isWaiting && { waits }),
      ...(this.replaced !== undefined && { replaced: this.replaced }),
      ...(this.listedAt !== undefined && { listedAt: this.listedAt }),
    }
    return { position: delivery.position, bytes: counts.written, ...counts, ...more }
  }

  #waits(): Waits | undefined {
    const ms = this.deletesAt - this.now()
    return ms > 0 ? { message: 'somebody may be there', ms } : undefined
  }

  async #maybeFail(signal: AbortSignal): Promise<void> {
    if (this.trouble === 'hang') {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
    } else if (this.trouble === 'part') {
      await setImmediate()
    } else if (this.trouble !== undefined && this.trouble !== 'conflict') {
      throw new SinkError(this.trouble, `it is ${this.trouble}`)
    }
  }
}

const texts = (rows: Iterable<Row>) => Array.from(rows, canonicalRow).sort()

function apply(rows: Map<string, Row>, changes: NonNullable<Delivery['changes']>, mayRemove: boolean) {
  let removed = 0
  for (const key of mayRemove ? changes.removed : []) if (rows.delete(keyOf(key))) removed++
  const put = [...changes.put]
  for (const row of put) rows.set(keyOf(row), row)
  return { written: put.length, removed }
}

function replaceRows(rows: Map<string, Row>, delivery: Delivery, mayRemove: boolean) {
  let written = 0
  const present = new Set<string>()
  for (const row of delivery.rows()) {
    const key = keyOf(row)
    present.add(key)
    const known = rows.get(key)
    if (known && canonicalRow(known) === canonicalRow(row)) continue
    rows.set(key, row)
    written++
  }
  const gone = mayRemove ? [...rows.keys()].filter((key) => !present.has(key)) : []
  for (const key of gone) rows.delete(key)
  return { written, removed: gone.length }
}

/** What sinks of tests get from the process. */
export const sinkContext: SinkContext = {
  guard: new OutboundGuard({ use: 'sink', allowLoopback: true, allowPrivate: true }),
  writer: 'agent-of-a-test',
  directory: '/nonexistent',
  logger: silentLogger,
  semantics: 'strict',
  now: Date.now,
}

/** A pool whose sinks write to these places, by the name of the sink. */
export const memoryPool = (places: Readonly<Record<string, MemoryPlace>>): SinkPool =>
  new SinkPool({
    context: sinkContext,
    recoveryMs: 50,
    open: ({ family, declaration }) => {
      const place = places[declaration.name]
      if (!place) throw new SinkError('terminal', `no place is called ${declaration.name}`)
      return Promise.resolve(place.sink(family))
    },
  })
