import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyRows, type FleetRowView, noRows, type RowsChange } from '#http'
import { comparePlaced, type Placed } from './row-order.ts'
import { type Fate, LeftRows } from './stream-left.ts'
import { type Incoming, RowsWindow, type WindowRow, windowDifference } from './stream-window.ts'

type Order = 'asc' | 'desc'
/** name of a row and what it is sorted by; null: nothing */
type World = ReadonlyMap<string, number | null>

const placed = (name: string, value: number | null) => ({ value, cluster: 'west', namespace: 'a', name })
const jsonOf = (name: string, value: number | null) =>
  JSON.stringify({ cluster: 'west', id: `a/${name}`, namespace: 'a', name, labels: {}, values: { value } })
const keyOf = (name: string) => `west/a/${name}`
const incoming = (name: string, value: number | null): Incoming => ({
  ...placed(name, value),
  ...{ key: keyOf(name), id: `a/${name}` },
  render: () => jsonOf(name, value),
})

function windowRows(world: World, order: Order): WindowRow[] {
  const rows = [...world].map(([name, value]) => {
    const { render, ...row } = incoming(name, value)
    return { ...row, json: render() }
  })
  return rows.sort((left, right) => comparePlaced(left, right, order))
}

function newWindow(world: World, limit: number, order: Order, after?: Placed): RowsWindow {
  const all = windowRows(world, order).filter((row) => !after || comparePlaced(row, after, order) > 0)
  const capacity = RowsWindow.capacity(limit)
  return new RowsWindow(
    ...([all.slice(0, capacity), world.size] as const),
    { limit, order, ...(after && { after }) },
    all.length <= capacity,
  )
}

const unchanged: Fate = () => undefined
const windowTexts = (before: RowsWindow, after: RowsWindow, fate = unchanged) =>
  new LeftRows().take(windowDifference(before, after), fate)

/** What a client shows that held `before` and was told these texts. */
function told(before: readonly WindowRow[], texts: readonly string[]): readonly string[] {
  const held = noRows()
  const items = before.map(({ json }) => JSON.parse(json) as FleetRowView)
  applyRows(held, { kind: 'rows', query: 0, from: 0, items, total: 0, isLast: true, now: 0 })
  const changes = texts.map((text) => JSON.parse(text) as RowsChange)
  applyRows(held, { kind: 'rowsChange', query: 0, changes, total: 0, now: 0 })
  return [...held.rows.values()].map((row) => JSON.stringify(row))
}

const values = fc.option(fc.integer({ min: 0, max: 5 }), { nil: null })
const names = fc.integer({ min: 0, max: 120 }).map((number) => `p${number}`)
const world = fc.array(fc.tuple(names, values), { maxLength: 120 }).map((rows): World => new Map(rows))
/** undefined: the row goes */
const steps = fc.array(fc.array(fc.tuple(names, fc.option(values, { nil: undefined })), { maxLength: 25 }), {
  maxLength: 8,
})

describe('a window of rows', () => {
  it('that rows enter, leave and move in shows what a new one shows, and who is told the difference too', () =>
    fc.assert(
      fc.property(
        ...[world, steps, fc.integer({ min: 1, max: 40 }), fc.constantFrom<Order>('asc', 'desc')],
        fc.option(fc.tuple(names, values), { nil: undefined }),
        (first, changes, limit, order, behind) => {
          const from = behind && placed(...behind)
          let rows = new Map(first)
          let window = newWindow(rows, limit, order, from)
          for (const change of changes) {
            const next = new Map(rows)
            for (const [name, value] of change) {
              if (value === undefined) next.delete(name)
              else next.set(name, value)
            }
            const touched = [...new Set(change.map(([name]) => name))]
            const gone = touched.filter((name) => rows.has(name)).map((name) => placed(name, rows.get(name) ?? null))
            const come = touched.flatMap((name) => {
              const value = next.get(name)
              return value === undefined ? [] : [incoming(name, value)]
            })
            rows = next
            const fresh = newWindow(rows, limit, order, from)
            const after = window.moved(gone, come) ?? fresh
            expect(after.total).toBe(rows.size)
            expect(after.shown.map(({ json }) => json)).toEqual(fresh.shown.map(({ json }) => json))
            const left = new Set(gone.map(({ name }) => name).filter((name) => !rows.has(name)))
            const fate: Fate = (key) => {
              const name = key.slice(keyOf('').length)
              if (!touched.includes(name)) return undefined
              const value = rows.get(name)
              return value === undefined ? 'gone' : { json: jsonOf(name, value) }
            }
            const texts = windowTexts(window, after, fate)
            expect(told(window.shown, texts)).toEqual(after.shown.map(({ json }) => json))
            const removed = texts.map((text) => JSON.parse(text)).filter(({ op }) => op === 'remove')
            for (const { id, gone, row } of removed) {
              const name = id.slice('a/'.length)
              expect(gone === true).toBe(!rows.has(name))
              const isChanged = touched.includes(name) && rows.has(name)
              expect(row).toEqual(isChanged ? JSON.parse(jsonOf(name, rows.get(name) ?? null)) : undefined)
            }
            const had = window.shown.filter(({ name }) => left.has(name)).map(({ id }) => id)
            expect(removed.filter(({ gone }) => gone).map(({ id }) => id)).toEqual(had)
            window = after
          }
        },
      ),
    ))

  it('behind a row is not made anew where what moved is in front of that', () => {
    const all = new Map(Array.from({ length: 1000 }, (_, at) => [`p${at}`, at] as const))
    const before = newWindow(all, 50, 'asc', placed('p499', 499))
    expect(before.shown[0]?.id).toBe('a/p500')
    const after = before.moved([placed('p3', 3)], [])
    expect([after?.rows === before.rows, after?.total]).toEqual([true, 999])
  })

  it('tells only of what differs', () => {
    const all = new Map(Array.from({ length: 100 }, (_, at) => [`p${at}`, at] as const))
    const before = newWindow(all, 50, 'desc')
    const after = before.moved([placed('p3', 3)], [incoming('p3', 1000)])
    expect(after && windowTexts(before, after).map((text) => JSON.parse(text))).toEqual([
      { op: 'remove', cluster: 'west', id: 'a/p50' },
      { op: 'put', row: JSON.parse(jsonOf('p3', 1000)), at: 0 },
    ])
    expect(windowTexts(before, newWindow(all, 50, 'desc'))).toEqual([])
  })

  it('is made anew where a row that went was not where it must have been', () => {
    const all = new Map(Array.from({ length: 100 }, (_, at) => [`p${at}`, at] as const))
    expect(newWindow(all, 50, 'desc').moved([placed('p99', 98.5)], [])).toBeUndefined()
  })

  it('is the very same list where what moved is behind it', () => {
    const all = new Map(Array.from({ length: 1000 }, (_, at) => [`p${at}`, at] as const))
    const before = newWindow(all, 50, 'desc')
    expect(before.moved([placed('p3', 3)], [incoming('p3', 4)])?.rows).toBe(before.rows)
  })
})
