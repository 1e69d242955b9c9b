import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ExportColumn, fileName, toCsv, toJson } from './export.ts'
import type { Value } from './filter.ts'

const one = (value: Value, more: Partial<ExportColumn<object>> = {}): ExportColumn<object>[] => [
  { id: 'a', header: 'A', value: () => value, ...more },
]
const csvOf = (value: Value, more: Partial<ExportColumn<object>> = {}) => toCsv([{}], one(value, more))
const jsonOf = (value: Value, more: Partial<ExportColumn<object>> = {}) => JSON.parse(toJson([{}], one(value, more)))[0]

/** A reader of RFC 4180, for one column. */
function readCsv(text: string): string[] {
  return [...text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))\r\n/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  )
}

describe('export', () => {
  it('writes any text so that a CSV reader reads it back, formulas excepted', () =>
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readCsv(csvOf(text))[1]).toBe(/^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text)
      }),
    ))
  it('says in CSV why there is no value, and null in JSON, never 0', () => {
    expect(csvOf(null)).toBe('A\r\nunknown\r\n')
    expect(jsonOf(null)).toEqual({ a: null })
    expect(csvOf(Number.NaN, { kind: 'time' })).toBe('A\r\nunknown\r\n')
    expect(csvOf(null, { absence: 'none' })).toBe('A\r\nnone\r\n')
    expect(csvOf(null, { absence: () => 'absent' })).toBe('A\r\nnot served\r\n')
    expect(csvOf('')).toBe('A\r\n\r\n')
  })
  it('keeps negative numbers numbers', () => expect(csvOf(-3)).toBe('A\r\n-3\r\n'))

  it('says the unit of a number in its heading and its key', () => {
    expect([csvOf(0.4237, { kind: 'percent' }), jsonOf(0.4237, { kind: 'percent' })]).toEqual([
      'A (%)\r\n42.4\r\n',
      { a_percent: 42.4 },
    ])
    expect([csvOf(2048, { kind: 'bytes' }), jsonOf(12, { unit: 'ms' })]).toEqual([
      'A (bytes)\r\n2048\r\n',
      { a_ms: 12 },
    ])
  })
  it('writes moments by RFC 3339, yes and no in words, lists with commas', () => {
    expect(csvOf(1_795_374_274_222, { kind: 'time' })).toBe('A\r\n2026-11-22T19:04:34.222Z\r\n')
    expect(csvOf(true)).toBe('A\r\nyes\r\n')
    expect(csvOf(['a', 'b'])).toBe('A\r\n"a, b"\r\n')
    expect(jsonOf(['a', 'b'])).toEqual({ a: ['a', 'b'] })
  })
  it('names a file by what it is and when it was so', () =>
    expect(fileName('Nodes of eu.west', Date.UTC(2026, 10, 22, 21, 6, 24, 5), 'csv')).toBe(
      'nodes-of-eu-west-20261122T210624Z.csv',
    ))
})
