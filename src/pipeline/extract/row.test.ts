import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, canonicalRow, compareRows, type Row } from './row.ts'

const row = (more: Partial<Row> = {}): Row => ({
  ...{
    attributes: {},
    uid: 'u',
    kind: 'Pod',
    version: 'v1',
    name: 'n',
    namespace: 's',
    targetName: 't',
    targetNamespace: 'tn',
  },
  ...more,
})

describe('canonical JSON', () => {
  it.each([
    [{ b: 1, a: { d: [2], c: null } }, '{"a":{"c":null,"d":[2]},"b":1}'],
    ['<a>&\u2028\u2029', '"\\u003ca\\u003e\\u0026\\u2028\\u2029"'],
    [{ '\u{1f600}': 1, '\uffff': 2, z: 3 }, '{"z":3,"\uffff":2,"\u{1f600}":1}'],
    [[1e21, 1e-7, 123456789012, 0.1], '[1e+21,1e-7,123456789012,0.1]'],
    [undefined, 'null'],
  ])('of %j is %s', (value, json) => expect(canonicalJson(value)).toBe(json))

  it('reads back as what it was', () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    ))

  it('of a row has the keys in the order of the original, whose checksums are equal therefore', () => {
    const text = canonicalRow(row({ group: 'apps', attributes: { b: 1, a: '<' } }))
    expect(text).toBe(
      '{"targetNamespace":"tn","targetName":"t","namespace":"s","name":"n","group":"apps","version":"v1","kind":"Pod","uid":"u","attributes":{"a":"\\u003c","b":1}}',
    )
    expect(createHash('sha256').update('[]').digest('hex')).toMatch(/^4f53cda1/)
  })
})

describe('rows', () => {
  it('have one order, whatever order they come in', () => {
    const names = fc.constantFrom('', 'a', 'b', 'B', '\u{1f600}', '\uffff')
    const rows = fc.array(
      fc.record({ targetNamespace: names, targetName: names, namespace: names, name: names, uid: names }).map(row),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(rows, (list) => {
        const texts = (all: readonly Row[]) => all.map(canonicalRow)
        expect(texts([...list].sort(compareRows))).toEqual(texts([...list].reverse().sort(compareRows)))
      }),
    )
  })
})
