import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pack, type ShownRow, unpack } from './packed-row.ts'

const bare: ShownRow = { id: 'west/a', rowId: 'a', cluster: 'west', namespace: '', name: 'a', labels: {}, values: {} }
const values = fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), fc.jsonValue(), { maxKeys: 5 })
const links = fc.array(fc.record({ column: fc.option(fc.string()), type: fc.string(), id: fc.string() }))
// As it comes of JSON, where there is no -0.
const read = (row: object) => JSON.parse(JSON.stringify(row)) as ShownRow

describe('a packed row', () => {
  it('is unpacked as it was, whatever its values are called, and however many kinds were seen before', () =>
    fc.assert(
      fc.property(values, fc.option(links), (values, links) => {
        const row = read({ ...bare, values, ...(links && { links }) })
        expect(unpack(pack(row))).toEqual(row)
        expect(Object.keys(unpack(pack(row)).values)).toEqual(Object.keys(row.values))
      }),
      { numRuns: 1000 },
    ))

  it('is another text where the same values are called otherwise', () =>
    expect(pack({ ...bare, values: { cpu: 1 } })).not.toBe(pack({ ...bare, values: { memory: 1 } })))
})
