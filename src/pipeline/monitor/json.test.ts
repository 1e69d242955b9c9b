import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Items, jsonPieces, Members } from './json.ts'

/** The same document with parts that are made as they are written, and steps between. */
function inParts(value: unknown): unknown {
  if (Array.isArray(value)) return new Items(value.flatMap((item) => [undefined, inParts(item)]))
  if (typeof value !== 'object' || value === null) return value
  return new Members([...Object.entries(value).map(([name, one]) => [name, inParts(one)] as const), undefined])
}

describe('a document that is made as it is written', () => {
  it('is to the byte what it is made at once', () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        expect([...jsonPieces(inParts(JSON.parse(text)))].join('')).toBe(text)
      }),
    ))

  it('is made in the order in which it stands, and no sooner', () => {
    const made: string[] = []
    function* items() {
      for (const item of ['a', 'b']) {
        made.push(item)
        yield item
      }
    }
    const pieces = jsonPieces(Members.of({ first: new Items(items()), second: new Items(items()) }))
    let text = ''
    while (!text.endsWith('"a"')) text += pieces.next().value
    expect(made).toEqual(['a'])
    expect(text + [...pieces].join('')).toBe('{"first":["a","b"],"second":["a","b"]}')
  })
})
