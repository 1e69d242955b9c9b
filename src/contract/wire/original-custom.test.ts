import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, parseClusterName, type RowsPart, type Table } from '#model'
import {
  CustomCollectedResourceSchema,
  CustomResourceBatchSchema,
  MetricsBatchSchema,
} from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { batchFromOriginal, originalFromBatch } from './original.ts'
import { rowsPart } from './testing/rows.ts'

const head = { cluster: parseClusterName('west'), origin: 'original', sequence: 1, collectedAt: 5 }
const resource = (id: string, json: string | Uint8Array, more: object = {}) => {
  const [namespace = '', name = ''] = id.includes('/') ? id.split('/') : ['', id]
  const valuesJson = typeof json === 'string' ? new TextEncoder().encode(json) : json
  return create(CustomCollectedResourceSchema, { id, namespace, name, valuesJson, ...more })
}
const custom = (resources: ReturnType<typeof resource>[], more: object = {}) => {
  const one = create(CustomResourceBatchSchema, { sourceId: 'team/things', resources, ...more })
  const batch = batchFromOriginal(create(MetricsBatchSchema, { customResources: [one] }), head, () => 'the hash')
  const [part] = batch.tables ?? []
  if (part?.outcome !== 'complete') throw new Error('it is complete')
  return part
}
const values = (part: Extract<RowsPart, { outcome: 'complete' }>) =>
  Object.fromEntries([...part.rows.rows()].map((row, i) => [part.rows.idAt(i), row.values]))

describe('custom resources of the original', () => {
  it('become rows whose fields are those of all rows, in the order they were first seen', () => {
    const part = custom(
      [
        resource('a/x', '{"size": 5, "phase": "Bound"}', { labels: { app: 'x' } }),
        resource('wide', '{"extra": null, "size": 1.5, "on": true}'),
      ],
      { resourceCount: 77, truncated: true, durationMs: 12n, aggregationValues: { total: 2, odd: Number.NaN } },
    )
    expect(part).toMatchObject({
      source: 'team/things',
      hash: 'the hash',
      durationMs: 12,
      truncated: true,
      reports: [],
    })
    expect(part.rows.fields).toEqual(['size', 'phase', 'extra', 'on'])
    expect(values(part)).toEqual({
      'a/x': { size: 5, phase: 'Bound', extra: null, on: null },
      wide: { size: 1.5, phase: null, extra: null, on: true },
    })
    expect(part.rows.row(part.rows.indexOf('a', 'x')).labels).toEqual({ app: 'x' })
    expect(part.aggregations).toEqual({ total: 2, odd: null })
  })

  it('keep a row whose values cannot be read, and count it', () => {
    const part = custom([
      resource('a/good', '{"size": 5}'),
      resource('a/cut', '{"size": 5'),
      resource('a/list', '[1]'),
      resource('a/bytes', new Uint8Array([0xff, 0xfe])),
      resource('a/none', ''),
      resource('a/b/c', '{"size": 1}', { namespace: 'a', name: 'b/c' }),
    ])
    expect(values(part)).toMatchObject({ 'a/good': { size: 5 }, 'a/cut': { size: null }, 'a/none': { size: null } })
    expect(part.rows.size).toBe(5)
    expect(part.reports).toEqual([{ field: '', missing: 0, malformed: 5, example: '{"size": 5' }])
  })

  it('have scalars alone: lists and objects are their JSON, and a number beyond all is none', () => {
    const part = custom([resource('x', '{"list": [1, "a"], "map": {"k": null}, "huge": 1e999, "__proto__": "own"}')])
    expect(part.rows.column('list')?.(0)).toBe('[1,"a"]')
    expect(part.rows.column('map')?.(0)).toBe('{"k":null}')
    expect(part.rows.column('huge')?.(0)).toBe(null)
    expect(part.rows.column('__proto__')?.(0)).toBe('own')
  })

  it('go to a hub of the original and come back, as far as it can tell', () => {
    fc.assert(
      fc.property(rowsPart('team/a'), (part) => {
        const batch = { ...head, source: 'push', durationMs: 1, parts: [], tables: [part] } as unknown as Batch
        const [again] = batchFromOriginal(originalFromBatch(batch), head).tables ?? []
        if (part.outcome !== 'complete') {
          expect(again).toBeUndefined()
          return
        }
        const fields = part.rows.fields.filter((field) => field !== '')
        if (again?.outcome !== 'complete') throw new Error('it is complete')
        expect(again.rows.size).toBe(part.rows.size)
        for (const field of part.rows.size > 0 ? fields : []) {
          const texts = ({ rows }: { rows: Table }) =>
            [...rows.rows()].map(({ values }) => JSON.stringify(values[field]))
          // Half a surrogate pair is no UTF-8: escaped, it is.
          expect(texts(again)).toEqual(texts(part))
        }
        const numbers = Object.entries(part.aggregations).filter(([, value]) => typeof value === 'number')
        expect(Object.entries(again.aggregations).sort()).toEqual(numbers.sort())
      }),
    )
  })
})
