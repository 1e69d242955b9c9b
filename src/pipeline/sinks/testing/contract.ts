import fc from 'fast-check'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { canonicalRow, compareRows, type Row } from '#extract'
import type { Position, Receipt, Sink, Writing } from '../index.ts'
import { aRow, at, deliveryOf, rowsTo, writingOf } from './delivery.ts'

export { aRow, at, contextOf, deliveryOf, rowsTo, writingOf } from './delivery.ts'

/** One place of a type of sink, empty at first. */
export interface SinkHarness {
  /** a sink of this cluster; another call is another process */
  open(cluster: string): Promise<Sink>
  /** the sink of west, as this writer; absent: what tells of writers has tests of its own */
  openAs?(writer: string): Promise<Sink>
  /** what somebody who reads the sink takes for the rows of an inventory; none: [] */
  read(writing: Writing): Promise<readonly Row[]>
  /** a number that changes with everything that is written to the sink; absent: nobody counts */
  writes?(): Promise<number>
}

export interface SinkContract {
  /** a place of its own for each test; what it opens is closed by `onTestFinished` */
  readonly harness: () => Promise<SinkHarness>
  /** why nothing of it can run here */
  readonly missing?: string | undefined
  /** whether another process finds out what the sink holds, and writes nothing for it; default true */
  readonly isAskedWhatItHolds?: boolean
  /** how many random sequences; default 12 */
  readonly sequences?: number
  /** whether what stands there says who wrote it, so that `openAs` is there; default false */
  readonly saysWhoWrote?: boolean
  /** what an earlier process wrote is not known to a later one, so that it takes older snapshots */
  readonly forgets?: boolean
  /** whether rows of before stand beside an incomplete snapshot and are counted; default true */
  readonly countsKept?: boolean
  /** ceiling of a part; default 16 MiB */
  readonly maxPartBytes?: number
}

const never = () => new AbortController().signal

/** The promises that every sink keeps, whatever it is. */
export function sinkContract(name: string, contract: SinkContract): void {
  describe.skipIf(contract.missing !== undefined)(name, () => {
    let harness: SinkHarness
    const maxPartBytes = contract.maxPartBytes ?? 16 * 2 ** 20
    const isAsked = contract.isAskedWhatItHolds ?? true
    beforeEach(async () => {
      harness = await contract.harness()
    })

    const opened = async (cluster: string) => {
      const sink = await harness.open(cluster)
      onTestFinished(() => sink[Symbol.asyncDispose]())
      return sink
    }
    const deliver = async (sink: Sink, writing: Writing, position: Position, rows: readonly Row[], more = {}) =>
      sink.deliver(deliveryOf(writing, position, rows, { maxPartBytes, ...more }), never())
    const reads = async (writing: Writing, rows: readonly Row[]) =>
      expect(texts(await harness.read(writing))).toEqual(texts(rows))

    const west = writingOf('west')

    it('delivers what it is given, and says it can be written to', async () => {
      const sink = await opened('west')
      const receipt = await deliver(sink, west, at(1), rowsTo(40))
      expect(receipt).toMatchObject({ position: at(1), removed: 0 })
      expect(receipt.written).toBeGreaterThan(0)
      expect(receipt.conflict).toBeUndefined()
      await reads(west, rowsTo(40))
      expect(await sink.probe(never())).toMatchObject({ verified: true })
    })

    it('takes every text and every number as it is', async () => {
      const sink = await opened('west')
      const rows = ['ünï ☃ 🐘', "'; drop table x; --", 'a\nb\tc\\', '{"a":1}', '<&>\u2028'].map((text, n) =>
        aRow(n, { text, [text]: [n, -0.5, 1e-7, 1e21, null, true, { '': [] }] }),
      )
      await deliver(sink, west, at(1), rows)
      await reads(west, rows)
    })

    it('writes nothing for what it holds already', async () => {
      const sink = await opened('west')
      await deliver(sink, west, at(1), rowsTo(20))
      const before = await harness.writes?.()
      for (const position of [at(1), at(2)]) {
        const receipt = await deliver(sink, west, position, rowsTo(20))
        expect(receipt).toMatchObject({ written: 0, removed: 0 })
      }
      expect(await harness.writes?.()).toBe(before)
      // A process that starts anew knows nothing of it, and writes nothing either.
      const anew = await deliver(await opened('west'), west, at(1, 2), rowsTo(20))
      if (isAsked) expect(anew).toMatchObject({ written: 0, removed: 0 })
      await reads(west, rowsTo(20))
    })

    it('changes nothing for a snapshot that is older than what it holds', async () => {
      const sink = await opened('west')
      await deliver(sink, west, at(5, 2), rowsTo(10))
      for (const older of [at(4, 2), at(9, 1)]) {
        const receipt = await deliver(contract.forgets ? sink : await opened('west'), west, older, [])
        if (isAsked) expect(receipt).toMatchObject({ position: at(5, 2), written: 0, removed: 0 })
      }
      expect(await deliver(sink, west, at(4, 2), [])).toMatchObject({ position: at(5, 2), written: 0, removed: 0 })
      await reads(west, rowsTo(10))
    })

    // Where nothing says who wrote, it is no promise, and no test that is left out.
    const whereItSays = contract.saysWhoWrote ? it : () => undefined
    whereItSays('tells two clusters of one name of each other, and takes a new pod for no second writer', async () => {
      const as = async (writer: string) => {
        const sink = (await harness.openAs?.(writer)) as Sink // the contract says that it is there
        onTestFinished(() => sink[Symbol.asyncDispose]())
        return sink
      }
      await deliver(await as('pod-a in cluster 1'), west, at(1, 1), rowsTo(3))
      const first = await as('pod-b in cluster 1')
      const successor = await deliver(first, west, at(1, 2), rowsTo(4))
      expect([successor.replaced, successor.conflict]).toEqual([undefined, undefined])
      const clone = await as('pod-c in cluster 2')
      const took = await deliver(clone, west, at(1, 3), rowsTo(5))
      expect(took.replaced).toContain('pod-b in cluster 1 wrote under the same cluster name')
      // Nothing changed there since: it hears of it all the same.
      const look = await deliver(first, west, at(2, 2), rowsTo(4), { isLook: true })
      expect(look).toMatchObject({ written: 0, conflict: expect.stringContaining('pod-c in cluster 2') })
      const own = await deliver(clone, west, at(2, 3), rowsTo(5), { isLook: true })
      expect(own).toMatchObject({ written: 0, removed: 0, bytes: 0 })
      expect(own).not.toHaveProperty('conflict')
      await reads(west, rowsTo(5))
    })

    it('deletes nothing for an incomplete snapshot, and takes what is new in it', async () => {
      const sink = await opened('west')
      await deliver(sink, west, at(1), rowsTo(10))
      await deliver(sink, west, at(2), [aRow(3, { image: 'new' }), aRow(11)], { complete: false })
      const expected = rowsTo(10).map((row) => (row.uid === 'uid-3' ? aRow(3, { image: 'new' }) : row))
      await reads(west, [...expected, aRow(11)])
      await deliver(sink, west, at(3), [], { complete: false })
      await reads(west, [...expected, aRow(11)])
    })

    const whereRowsStay = contract.countsKept === false ? () => undefined : it
    whereRowsStay('says how many rows stand there that a snapshot has not, and that none do any more', async () => {
      const sink = await opened('west')
      const keptOf = async (sequence: number, rows: readonly Row[], more = {}) =>
        (await deliver(sink, west, at(sequence), rows, more)).kept
      expect(await keptOf(1, rowsTo(10))).toBeUndefined()
      expect(await keptOf(2, rowsTo(10), { complete: false })).toBeUndefined()
      expect(await keptOf(3, rowsTo(7), { complete: false })).toBe(3)
      const changes = { base: at(3), put: [aRow(11)], removed: [], kept: 5 }
      expect(await keptOf(4, [...rowsTo(6), aRow(11)], { complete: false, changes })).toBe(4)
      expect(await keptOf(5, rowsTo(6))).toBeUndefined()
      await reads(west, rowsTo(6))
    })

    it('deletes what is gone for a complete one', async () => {
      const sink = await opened('west')
      await deliver(sink, west, at(1), rowsTo(10))
      await deliver(sink, west, at(2), rowsTo(4))
      await reads(west, rowsTo(4))
    })

    it('empties an inventory by a complete snapshot without rows, and no other', async () => {
      const sink = await opened('west')
      const other = writingOf('west', 'other')
      await deliver(sink, west, at(1), rowsTo(10))
      await deliver(sink, other, at(1), rowsTo(12))
      await deliver(sink, west, at(2), [])
      await reads(west, [])
      await reads(other, rowsTo(12))
      await deliver(sink, west, at(3), rowsTo(2))
      await reads(west, rowsTo(2))
    })

    it('touches nothing of another cluster, also where it has the same objects', async () => {
      const east = writingOf('east')
      const sink = await opened('west')
      await deliver(await opened('east'), east, at(7), rowsTo(10))
      await deliver(sink, west, at(1), rowsTo(10))
      await deliver(sink, west, at(2), rowsTo(3))
      await reads(east, rowsTo(10))
      await deliver(sink, west, at(3), [])
      await sink.remove(west, at(4), never())
      await reads(east, rowsTo(10))
      await reads(west, [])
    })

    it('keeps the views of two inventories apart where both see one object', async () => {
      const sink = await opened('west')
      const other = writingOf('west', 'other')
      const seen = { ...aRow(1, { other: true }), targetName: 'everything' }
      await deliver(sink, west, at(1), rowsTo(3))
      await deliver(sink, other, at(1), [seen])
      await reads(west, rowsTo(3))
      await reads(other, [seen])
      await deliver(sink, west, at(2), [aRow(0)])
      await reads(west, [aRow(0)])
      await reads(other, [seen])
    })

    it('takes away what was written for an inventory, once or twice, and can be written to again', async () => {
      const sink = await opened('west')
      const other = writingOf('west', 'other')
      await deliver(sink, west, at(1), rowsTo(10))
      await deliver(sink, other, at(1), rowsTo(5))
      await sink.remove(west, at(2), never())
      await sink.remove(west, at(2), never())
      await sink.remove(writingOf('west', 'never-written'), at(1), never())
      await reads(west, [])
      await reads(other, rowsTo(5))
      await deliver(sink, west, at(3), rowsTo(2))
      await reads(west, rowsTo(2))
    })

    it('takes differences where they begin at what it holds, and everything where they do not', async () => {
      const sink = await opened('west')
      await deliver(sink, west, at(1), rowsTo(50))
      const changed = [...rowsTo(49), aRow(60)].map((row) => (row.uid === 'uid-7' ? aRow(7, { image: 'new' }) : row))
      const put = changed.filter(({ uid }) => uid === 'uid-7' || uid === 'uid-60')
      const receipt = await deliver(sink, west, at(2), changed, { changes: { base: at(1), put, removed: [aRow(49)] } })
      expect(receipt.position).toEqual(at(2))
      await reads(west, changed)
      // These begin at a snapshot that never came: what they say is of no use, the rows are.
      await deliver(sink, west, at(4), rowsTo(5), { changes: { base: at(3), put: [], removed: [] } })
      await reads(west, rowsTo(5))
    })

    it('comes to the same end after it was stopped at any moment', async () => {
      let held: Row[] = []
      for (let round = 1; round <= 12; round++) {
        const next = rowsTo(150 + round).map((row, n) => (n % 3 === round % 3 ? aRow(n, { round }) : row))
        const stop = new AbortController()
        const sink = await harness.open('west')
        const going = sink.deliver(deliveryOf(west, at(1, 2 * round), next, { maxPartBytes }), stop.signal)
        if (round % 2 === 0) setTimeout(() => stop.abort(new Error('stopped')), round * 3)
        else setImmediate(() => stop.abort(new Error('stopped')))
        const wasWritten = await going.then(
          () => true,
          () => false,
        )
        await sink[Symbol.asyncDispose]()
        if (wasWritten) await reads(west, next)
        held = next
        await deliver(await opened('west'), west, at(1, 2 * round + 1), held)
        await reads(west, held)
      }
    })

    it('carries 5 MB, or says that it does not', async () => {
      const sink = await opened('west')
      const rows = Array.from({ length: 2500 }, (_, n) => aRow(n, { text: `${n}`.padEnd(2000, 'x') }))
      const failure = await deliver(sink, west, at(1), rows).then(
        () => undefined,
        (error: Error) => error,
      )
      if (failure) expect(failure).toMatchObject({ name: 'SinkError', code: 'sink_terminal' })
      else await reads(west, rows)
    })

    it('holds what a model of it holds, after any sequence of deliveries and removals', async () => {
      const rowOf = fc.record({ n: fc.nat(9), version: fc.nat(2), target: fc.constantFrom('a', 'b') })
      const step = fc.record({
        kind: fc.constantFrom('newer', 'newer', 'newer', 'same', 'older', 'restart', 'remove'),
        cluster: fc.constantFrom('west', 'east'),
        inventory: fc.constantFrom('one', 'two'),
        complete: fc.boolean(),
        rows: fc.uniqueArray(rowOf, { maxLength: 8, selector: ({ n, target }) => `${n} ${target}` }),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
          harness = await contract.harness()
          const sinks = { west: await harness.open('west'), east: await harness.open('east') }
          const model = new Model()
          for (const { kind, cluster, inventory, complete, rows } of steps) {
            const writing = writingOf(cluster, inventory)
            const sink = sinks[cluster as 'west' | 'east']
            const given = rows.map(({ n, version, target }) => ({ ...aRow(n, { version }), targetName: target }))
            // One that is not asked writes an end also where there was nothing, and positions are used once.
            if (kind === 'remove' && !isAsked && !model.holds(writing)) continue
            if (kind === 'remove') await sink.remove(writing, model.remove(writing), never())
            else {
              const position = model.positionFor(writing, kind)
              const again = kind === 'same' ? model.last(writing) : undefined
              const snapshot = again ?? { rows: given, complete }
              const receipt: Receipt = await deliver(sink, writing, position, snapshot.rows, {
                complete: snapshot.complete,
              })
              expect(receipt.position).toEqual(model.deliver(writing, position, snapshot))
            }
            for (const one of model.writings()) await reads(one, model.rows(one))
          }
          for (const sink of Object.values(sinks)) await sink[Symbol.asyncDispose]()
        }),
        { numRuns: contract.sequences ?? 12 },
      )
    }, 180_000)
  })
}

const texts = (rows: readonly Row[]): string[] => [...rows].sort(compareRows).map(canonicalRow)

interface Snapshot {
  readonly rows: readonly Row[]
  readonly complete: boolean
}

/** What a sink is to hold: per inventory of a cluster its rows, and where its writer stands. */
class Model {
  readonly #held = new Map<string, { position: Position; rows: Map<string, Row>; last: Snapshot | undefined }>()
  readonly #seen = new Map<string, Writing>()

  writings(): Iterable<Writing> {
    return this.#seen.values()
  }

  holds(writing: Writing): boolean {
    return this.#held.has(keyOf(writing))
  }

  rows(writing: Writing): Row[] {
    return [...(this.#held.get(keyOf(writing))?.rows.values() ?? [])]
  }

  last(writing: Writing): Snapshot | undefined {
    return this.#held.get(keyOf(writing))?.last
  }

  positionFor(writing: Writing, kind: string): Position {
    const held = this.#held.get(keyOf(writing))
    if (!held) return at(1)
    const { epoch, sequence } = held.position
    if (!held.last || kind === 'newer') return { epoch, sequence: sequence + 1n }
    if (kind === 'restart') return { epoch: epoch + 1n, sequence: 1n }
    return kind === 'same' ? held.position : { epoch, sequence: sequence - 1n }
  }

  /** @returns the position that is held then */
  deliver(writing: Writing, position: Position, { rows, complete }: Snapshot): Position {
    const key = keyOf(writing)
    this.#seen.set(key, writing)
    const held = this.#held.get(key)
    if (held && held.position.epoch === position.epoch && held.position.sequence >= position.sequence)
      return held.position
    const merged = new Map(complete ? [] : (held?.rows ?? []))
    for (const row of rows) merged.set(`${row.targetName} ${row.uid}`, row)
    this.#held.set(key, { position, rows: merged, last: { rows, complete } })
    return position
  }

  /** @returns the position to remove it at */
  remove(writing: Writing): Position {
    const key = keyOf(writing)
    const position = this.positionFor(writing, 'newer')
    if (this.#held.has(key)) this.#held.set(key, { position, rows: new Map(), last: undefined })
    return position
  }
}

const keyOf = ({ cluster, namespace, inventory }: Writing): string => `${cluster} ${namespace} ${inventory}`
