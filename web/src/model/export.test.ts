import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toCsv, toJson } from './export.ts'

const columns = [{ id: 'a', value: (row: { a: string }) => row.a }]

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
        const read = readCsv(toCsv([{ a: text }], columns))[1]
        expect(read).toBe(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text)
      }),
    ))
  it('leaves what is not known empty in CSV and null in JSON, never 0', () => {
    const unknown = [{ id: 'cpu', value: () => null }]
    expect(toCsv([{}], unknown)).toBe('cpu\r\n\r\n')
    expect(JSON.parse(toJson([{}], unknown))).toEqual([{ cpu: null }])
  })
  it('keeps negative numbers numbers', () => expect(toCsv([{}], [{ id: 'n', value: () => -3 }])).toBe('n\r\n-3\r\n'))
})
