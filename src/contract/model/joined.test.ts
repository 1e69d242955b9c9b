import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { joined } from './joined.ts'
import { Table, type TableRow, tableRowId } from './table.ts'

const key = fc.record({
  namespace: fc.constantFrom('', 'a', 'a-b', 'b'),
  name: fc.string({ unit: fc.constantFrom('x', 'y', 'z'), minLength: 1, maxLength: 4 }),
})
const rows = (...fields: readonly string[]): fc.Arbitrary<Table> =>
  fc
    .array(fc.tuple(key, fc.array(fc.option(fc.nat(9)), { minLength: fields.length, maxLength: fields.length })), {
      maxLength: 900,
    })
    .map((all) =>
      Table.of(
        fields,
        all.map(
          ([{ namespace, name }, values]): TableRow => ({
            namespace,
            name,
            labels: { app: name },
            values: Object.fromEntries(fields.map((field, i) => [field, values[i] ?? null])),
          }),
        ),
      ),
    )

const plain = (table: Table) => new Map([...table.rows()].map((row) => [tableRowId(row.namespace, row.name), row]))

describe('rows joined with others', () => {
  it('have the values of both by namespace and name, of which those of the others count where there are some', () =>
    fc.assert(
      fc.property(rows('own', 'both'), rows('both', 'theirs', 'unasked'), (left, right) => {
        const made = joined(left, right, ['both', 'theirs'])
        const others = plain(right)
        expect(made.fields).toEqual(['own', 'both', 'theirs'])
        expect([...plain(made)]).toEqual(
          [...plain(left)].map(([id, row]) => {
            const other = others.get(id)?.values ?? {}
            const values = { own: row.values.own, both: other.both ?? row.values.both, theirs: other.theirs ?? null }
            return [id, { ...row, values }]
          }),
        )
        for (const field of made.fields) {
          const column = made.column(field)
          expect(Array.from({ length: made.size }, (_, place) => column?.(place))).toEqual(
            [...made.rows()].map(({ values }) => values[field]),
          )
        }
      }),
    ))

  it('keep the very columns they had, however the others move, and are made once of the same two', () =>
    fc.assert(
      fc.property(rows('own'), rows('theirs'), rows('theirs'), (left, right, later) => {
        const [made, again] = [joined(left, right, ['theirs']), joined(left, right, ['theirs'])]
        expect(again).toBe(made)
        const moved = joined(left, later, ['theirs'])
        for (const [i, chunk] of left.chunks.entries()) {
          expect(made.chunks[i]?.columns[0]).toBe(chunk.columns[0])
          expect(moved.chunks[i]?.columns[0]).toBe(chunk.columns[0])
          expect(moved.chunks[i]?.keys).toBe(chunk.keys)
        }
      }),
    ))

  it('share the chunks in which nothing moved', () => {
    const pods = Table.of(
      ['own'],
      Array.from({ length: 2000 }, (_, i) => ({ namespace: 'a', name: `x${i}`, labels: {}, values: { own: i } })),
    )
    const used = Table.of(['used'], [{ namespace: 'a', name: 'x7', labels: {}, values: { used: 1 } }])
    const moved = pods.patch(Table.of(['own'], [{ namespace: 'a', name: 'x7', labels: {}, values: { own: -1 } }]), [])
    const [before, after] = [joined(pods, used, ['used']), joined(moved, used, ['used'])]
    expect(after.chunks.filter((chunk, i) => chunk !== before.chunks[i])).toHaveLength(1)
    expect(after.row(after.indexOf('a', 'x7')).values).toEqual({ own: -1, used: 1 })
  })

  it('let go of what the rows were, however often they move, while most of their chunks stay', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const row = (at: number, own: number) => ({ namespace: 'a', name: `x${at}`, labels: {}, values: { own } })
    const steps: Table[] = []
    const former: WeakRef<Table>[] = []
    let pods = Table.of(
      ['own'],
      Array.from({ length: 5_000 }, (_, i) => row(i, i)),
    )
    // In a function of its own, whose last values are no longer on the stack.
    const move = (at: number) => {
      former.push(new WeakRef(pods))
      const step = Table.of(['own'], [row((at * 977) % 5_000, -at)])
      // Steps are kept for those who resume, tables are not.
      steps.push(step)
      pods = pods.patch(step, [])
      joined(pods, Table.empty, ['used'])
    }
    for (let at = 0; at < 50; at++) move(at)
    return new Promise((resolve) => setImmediate(resolve)).then(() => {
      collect()
      expect(steps).toHaveLength(50)
      expect(former.filter((table) => table.deref()).length).toBeLessThanOrEqual(2)
      expect(joined(pods, Table.empty, ['used']).size).toBe(5_000)
    })
  })
})
