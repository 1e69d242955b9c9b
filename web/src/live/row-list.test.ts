import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { hold, orderedRows } from '../model/ordered-rows.ts'
import { countBy } from '../model/recount.ts'
import { packRows } from './packed-row.ts'
import { RowList, type ShownRow, unpackedRows } from './row-list.ts'

const row = (id: string, x = 0): ShownRow => ({
  ...{ id, rowId: id, cluster: 'west', namespace: '', name: id, labels: { app: id } },
  values: { x, status: x > 4 ? 'Pending' : null },
})
const ids = [...'abcdefgh']
const some = fc.array(fc.tuple(fc.constantFrom(...ids), fc.nat(9)), { maxLength: 12 })
const step = fc.tuple(fc.constantFrom('read', 'band', 'end'), some, fc.nat(9))
const rowsOf = (each: readonly (readonly [string, number])[]) => each.map(([id, x]) => row(id, x))
const mapOf = (...lists: readonly (readonly ShownRow[])[]) => new Map(lists.flat().map((one) => [one.id, one]))

const isSame = (list: RowList, expected: ReadonlyMap<string, ShownRow>) => {
  const rows = [...expected.values()]
  expect([...list]).toEqual([...expected])
  expect([list.size, [...list.keys()], [...list.values()]]).toEqual([expected.size, [...expected.keys()], rows])
  for (const from of [0, 1, 4]) expect(list.slice(from, from + 3)).toEqual(rows.slice(from, from + 3))
  expect(ids.map((id) => list.get(id))).toEqual(ids.map((id) => expected.get(id)))
  expect(ids.filter((id) => list.has(id))).toEqual(ids.filter((id) => expected.has(id)))
  for (const column of ['x', 'status', 'none'])
    expect(list.countBy(column)).toEqual(Object.fromEntries(countBy(column, rows)))
}

describe('RowList', () => {
  it('is what a map of rows is, however it came to be and as much of it is packed; what it was made of stays as it was', () =>
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), fc.constantFrom(0, 2, 99), (steps, unpacked) => {
        let list = RowList.builder({ unpacked, counted: ['x'] }).build()
        let read = new Map<string, ShownRow>()
        let shown: ReadonlyMap<string, ShownRow> = read
        for (const [what, each, nth] of steps) {
          const [older, was] = [list, shown]
          const made = rowsOf(each)
          if (what === 'read') {
            list = list.with(made)
            read = mapOf([...read.values()], made)
            shown = read
          } else {
            const told = mapOf(made)
            const [place, isEnd] = [Math.min(nth, read.size), what === 'end']
            const keys = [...read.keys()]
            const isAsRead = [...told.keys()].every((id, at) => keys[place + at] === id)
            const order = list.order
            const gone = ids.filter((id, at) => at % 3 === nth % 4 && !told.has(id))
            const newer = ids.filter((_, at) => at % 2 === nth % 3).map((id) => row(id, 50 + nth))
            list = list.withBand(made, { place, isEnd, gone, newer })
            const [front, back] = [[...read].slice(0, place), isEnd ? [] : [...read].slice(place)]
            const others = ([id]: readonly [string, ShownRow]) => !told.has(id) && !gone.includes(id)
            const amended = ([id, one]: readonly [string, ShownRow]) =>
              [id, newer.find((each) => each.id === id) ?? one] as const
            shown = new Map([...front.filter(others).map(amended), ...told, ...back.filter(others).map(amended)])
            if (was === read) expect(list.order === order).toBe(isAsRead && shown.size === read.size)
          }
          isSame(list, shown)
          isSame(older, was)
        }
      }),
      { numRuns: 200 },
    ))

  it('is the same built of parts, packed or not, and whatever it was before; that stays as it was, also when more is read', () =>
    fc.assert(
      fc.property(fc.array(some, { maxLength: 6 }), some, fc.constantFrom(0, 2, 99), (others, was, unpacked) => {
        const before = RowList.builder({ unpacked }).build().with(rowsOf(was))
        // Most often the rows before come again: wholly, up to somewhere, or as many others.
        const next = was.map(([id, x]) => [ids[(ids.indexOf(id) + 1) % ids.length] ?? id, x] as const)
        for (const parts of [others, [was, ...others], [was.slice(0, 3)], [next]]) {
          const built = RowList.builder({ unpacked, counted: ['status'], before })
          parts.forEach((part, nth) => {
            built.add(nth % 2 === 0 ? packRows(rowsOf(part), ['status']) : rowsOf(part))
          })
          const list = built.build()
          const longer = list.with(packRows(rowsOf(was.toReversed()), ['status']))
          isSame(list, mapOf(...parts.map(rowsOf)))
          isSame(longer, mapOf(...parts.map(rowsOf), rowsOf(was.toReversed())))
          isSame(before, mapOf(rowsOf(was)))
        }
      }),
      { numRuns: 100 },
    ))

  it('is held as an array of its rows is', () =>
    fc.assert(
      fc.property(some, fc.array(step, { maxLength: 6 }), (first, steps) => {
        const plain = (rows: RowList) => orderedRows([...rows.values()], ({ id }) => id)
        let read = RowList.empty.with(rowsOf(first))
        let [one, other] = [hold(read, read, read), hold(plain(read), plain(read), plain(read))]
        for (const [what, each, nth] of steps) {
          const place = Math.min(nth, read.size)
          const list =
            what === 'read'
              ? RowList.of([...rowsOf(each), ...read.values()])
              : read.withBand(rowsOf(each), { place, isEnd: what === 'end' })
          if (what === 'read') read = list
          one = hold(one.rows, list, list)
          other = hold(other.rows, plain(list), plain(list))
          expect([[...one.rows.values()], one.gone, one.moved]).toEqual([
            [...other.rows.values()],
            other.gone,
            other.moved,
          ])
        }
      }),
      { numRuns: 200 },
    ))
})

describe('a long RowList', () => {
  const count = 20_000
  const longRows = (turn = 0) => Array.from({ length: count }, (_, at) => row(`r${at}`, at === 7 ? turn : at % 9))
  const long = (rows: readonly ShownRow[], before = RowList.empty) => {
    const built = RowList.builder({ counted: ['status'], before })
    for (let from = 0; from < rows.length; from += 1000) built.add(rows.slice(from, from + 1000))
    return built.build()
  }
  const told = longRows(9).slice(0, 1000)
  const unpacking = () => vi.spyOn(JSON, 'parse')
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it('unpacks nothing when the stream tells its first rows, in whatever order, when it is read anew, and while its order is held', () => {
    const [one, other] = [long(longRows()), long(longRows(1))]
    const parse = unpacking()
    const [led, renewed, turned] = [one.withBand(told), other.withBand(told), one.withBand(told.toReversed())]
    expect(led.get('r7')?.values.x).toBe(9)
    expect(led.slice(0, 3)).toEqual(told.slice(0, 3))
    expect(led.countBy('status')).toEqual(Object.fromEntries(countBy('status', [...told, ...longRows().slice(1000)])))
    expect(hold(one, led, led).rows).toBe(led)
    expect(hold(led, renewed, renewed).rows).toBe(renewed)
    const held = hold(led, turned, turned)
    expect([held.moved, held.gone.size, held.rows.size]).toEqual([true, 0, count])
    expect(held.rows.slice(0, 3)).toEqual(told.slice(0, 3))
    expect(parse).not.toHaveBeenCalled()
  })

  it('reads no ids again where they are the same, and knows each row by its own where they are not', () => {
    const rows = longRows()
    const packed = (some: readonly ShownRow[], before?: RowList) => {
      const built = RowList.builder({ counted: ['status'], ...(before && { before }) })
      for (let from = 0; from < some.length; from += 1000)
        built.add(packRows(some.slice(from, from + 1000), ['status']))
      return built
    }
    const before = packed(rows).build()
    const parse = unpacking()
    const anew = packed(longRows(1), before)
    // What is not packed is unpacked; nothing else is.
    expect(parse).toHaveBeenCalledTimes(unpackedRows)
    expect(anew.build().get('r15000')).toEqual(rows[15_000])
    const turned = packed([...rows.slice(0, 9000), ...rows.slice(9000).toReversed()], before).build()
    expect(turned.get('r15000')).toEqual(rows[15_000])
    expect([...turned.slice(9000, 9002)].map(({ id }) => id)).toEqual(['r19999', 'r19998'])
  })

  it('has the same order when it is read anew and its rows are in their places, and another one when they are not', () => {
    const list = long(longRows())
    expect(long(longRows(1), list).order).toBe(list.order)
    for (const others of [longRows().slice(0, -1), longRows().toReversed(), [...longRows(), row('more')]])
      expect(long(others, list).order).not.toBe(list.order)
  })

  it('unpacks of those behind the first what is looked at, and gives the very same row as long as it says the same', () => {
    const [list, anew] = [long(longRows()), long(longRows(1))]
    const parse = unpacking()
    expect(list.slice(0, unpackedRows)).toHaveLength(unpackedRows)
    expect(parse).not.toHaveBeenCalled()
    const seen = list.slice(9000, 9060)
    expect(parse).toHaveBeenCalledTimes(60)
    for (const again of [list, list.withBand(told), list.withBand(told.toReversed()), anew])
      again.slice(9000, 9060).forEach((each, at) => {
        expect(each).toBe(seen[at])
      })
    expect(list.get('r9001')).toBe(seen[1])
    expect(parse).toHaveBeenCalledTimes(60)
  })
})
