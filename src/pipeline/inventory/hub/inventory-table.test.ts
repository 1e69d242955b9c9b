import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { inventoryName } from '#model'
import { RowStore, targetText } from '../store/index.ts'
import { InventoryTable, type TableLimits } from './inventory-table.ts'

const TARGETS = [
  { namespace: 'shop', name: 'apps' },
  { namespace: '', name: 'all' },
] as const

const COUNTED = TARGETS.map((key, at) => ({ key, uid: `target-${at + 1}` }))

const aRow = (target: (typeof TARGETS)[number], name: string, more: Partial<Row> = {}): Row => ({
  targetNamespace: target.namespace,
  targetName: target.name,
  namespace: 'shop',
  name,
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${name}`,
  attributes: { image: 'nginx' },
  ...more,
})

function opened(limits?: TableLimits) {
  const store = new RowStore(() => undefined, { maxDepartures: 5 })
  return { store, table: new InventoryTable(store, limits) }
}
const shown = (table: InventoryTable) =>
  [...table.read(COUNTED).rows.rows()].map(({ namespace, name, values }) => [
    `${namespace}/${inventoryName(name)}`,
    values.target,
    values.attributes,
  ])

describe('inventory as a table', () => {
  it('has a row for each object and target, whatever the name of the object', () => {
    const { store, table } = opened()
    store.target(TARGETS[0]).put([aRow(TARGETS[0], 'web')])
    const role = { namespace: '', group: 'rbac.authorization.k8s.io', kind: 'ClusterRole', attributes: { rules: 2 } }
    store.target(TARGETS[1]).put([aRow(TARGETS[1], 'web'), aRow(TARGETS[1], 'system:node', role)])
    expect(shown(table)).toEqual([
      ['/system:node', 'all', { rules: 2 }],
      ['shop/web', 'shop/apps', { image: 'nginx' }],
      ['shop/web', 'all', { image: 'nginx' }],
    ])
    const [first, ...others] = [...table.read(COUNTED).rows.rows()]
    for (const { name } of others) expect(name).toMatch(/^web%[0-9a-f]{20}%uid-web$/)
    expect(new Set(others.map(({ name }) => name)).size).toBe(2)
    expect(first?.values).toMatchObject({ kind: 'ClusterRole', apiVersion: 'rbac.authorization.k8s.io/v1' })
  })

  it('is the very same until a row is another, and then shares what did not change', () => {
    const { store, table } = opened()
    const target = store.target(TARGETS[0])
    const many = Array.from({ length: 2000 }, (_, i) => aRow(TARGETS[0], `web-${String(i).padStart(4, '0')}`))
    target.put(many)
    const { rows } = table.read(COUNTED)
    target.setComplete(true)
    expect(table.read(COUNTED).rows).toBe(rows)
    target.put([aRow(TARGETS[0], 'web-0007', { attributes: { image: 'nginx:2' } })])
    const next = table.read(COUNTED).rows
    expect(next.chunks.filter((chunk) => !rows.chunks.includes(chunk))).toHaveLength(1)
  })

  it('has ids that tell nothing of the name of a target, and other ones where it was made again', () => {
    const ids = (targets = COUNTED, { store, table } = opened()) => {
      store.target(TARGETS[0]).put([aRow(TARGETS[0], 'web')])
      return { id: () => [...table.read(targets).rows.rows()].map(({ name }) => name), store, table }
    }
    const anew = COUNTED.map((one) => ({ ...one, uid: `${one.uid}-again` }))
    expect(ids().id()).not.toEqual(ids(anew).id())
    const digest = createHash('sha256').update(targetText(TARGETS[0])).digest('hex')
    for (let length = 8; length <= 20; length += 4) expect(ids().id()[0]).not.toContain(digest.slice(0, length))
    const { id, store, table } = ids()
    const before = id()
    expect([...table.read(anew).rows.rows()].map(({ name }) => name)).toEqual(ids(anew).id())
    expect(id()).toEqual(before)
    store.target(TARGETS[0]).remove([aRow(TARGETS[0], 'web')])
    expect(table.read(anew).rows.size).toBe(0)
  })

  it('is right after thousands of targets have come and gone', () => {
    const { store, table } = opened()
    for (let n = 0; n < 1500; n++) {
      const key = { namespace: 'n', name: `t${n}` }
      const target = store.target(key)
      target.put([aRow(TARGETS[0], 'web', { targetNamespace: 'n', targetName: key.name })])
      expect(table.read([{ key, uid: `${n}` }]).rows.size).toBe(1)
      target.drop()
    }
    store.target(TARGETS[0]).put([aRow(TARGETS[0], 'web')])
    expect(shown(table)).toEqual([['shop/web', 'shop/apps', { image: 'nginx' }]])
  })

  it('says of what is too large that it is, and takes the rest', () => {
    const { store, table } = opened({ rows: 3, units: 800 })
    store
      .target(TARGETS[0])
      .put([
        aRow(TARGETS[0], 'a', { attributes: { text: 'x'.repeat(200) } }),
        aRow(TARGETS[0], 'b', { attributes: { text: 'y'.repeat(200) } }),
      ])
    const notes = () => [...table.read(COUNTED).rows.rows()].map(({ values }) => values.note !== null)
    expect(notes()).toEqual([false, false])
    store.target(TARGETS[0]).put([aRow(TARGETS[0], 'c'), aRow(TARGETS[0], 'd')])
    expect([notes(), table.read(COUNTED).isTruncated]).toEqual([[false, true, true], true])
    store.target(TARGETS[0]).remove([aRow(TARGETS[0], 'a'), aRow(TARGETS[0], 'c')])
    expect([notes(), table.read(COUNTED).isTruncated]).toEqual([[false, false], false])
    store.target(TARGETS[0]).put([aRow(TARGETS[0], 'b', { attributes: { text: 'z'.repeat(20_000) } })])
    const large = opened()
    large.store.target(TARGETS[0]).put([aRow(TARGETS[0], 'b', { attributes: { text: 'z'.repeat(20_000) } })])
    expect([...large.table.read(COUNTED).rows.rows()].map(({ values }) => [values.attributes, values.note])).toEqual([
      [null, 'its attributes are too large for the hub; sinks have them'],
    ])
  })

  it('is after whatever came and went what it would be if it were made anew', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd')
    const row = fc.record({
      target: fc.constantFrom(...TARGETS),
      name,
      uid: fc.constantFrom('1', '2'),
      value: fc.nat(2),
    })
    const step = fc.record({
      what: fc.constantFrom('put', 'remove', 'replace', 'drop', 'look'),
      rows: fc.array(row, { maxLength: 4 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const { store, table } = opened()
        for (const { what, rows } of steps)
          for (const key of TARGETS) {
            const its = rows
              .filter(({ target }) => target === key)
              .map(({ name: of, uid, value }) => aRow(key, of, { uid, attributes: { value } }))
            const target = store.target(key)
            if (what === 'put') target.put(its)
            else if (what === 'remove') target.remove(its)
            else if (what === 'replace') target.replace(its)
            else if (what === 'drop') target.drop()
            if (what === 'look') table.read(COUNTED)
          }
        expect(shown(table)).toEqual(shown(new InventoryTable(store)))
      }),
      { numRuns: 300 },
    )
  })
})
