import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseStrictObject } from './strict-json.ts'

const parse = (text: string) => parseStrictObject(Buffer.from(text))

describe('strict JSON', () => {
  it('reads every object as JSON.parse does, whatever its texts hold', () => {
    const values = fc.dictionary(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' }),
    )
    fc.assert(
      fc.property(values, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        // Lone surrogates cannot be written in UTF-8: JSON.stringify escapes them.
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('refuses every object with a key that stands twice, at whatever depth and however it is escaped', () => {
    const escaped = (key: string) =>
      `"${[...Array(key.length).keys()].map((n) => `\\u${key.charCodeAt(n).toString(16).padStart(4, '0')}`).join('')}"`
    fc.assert(
      fc.property(
        fc.string(),
        fc.jsonValue(),
        fc.jsonValue(),
        fc.boolean(),
        fc.nat(20),
        (key, one, two, inEscapes, depth) => {
          const [first, second] = [JSON.stringify(one), JSON.stringify(two)]
          const twice = `{${JSON.stringify(key)}:${first},"-other-":[1],${inEscapes ? escaped(key) : JSON.stringify(key)}:${second}}`
          expect(parse(`${'{"in":['.repeat(depth)}${twice}${']}'.repeat(depth)}`)).toBeUndefined()
        },
      ),
    )
  })

  it('lets the same key stand in different objects', () => {
    expect(parse('{"a":{"a":1},"b":[{"a":1},{"a":2}]}')).toEqual({ a: { a: 1 }, b: [{ a: 1 }, { a: 2 }] })
  })

  it.each([
    '',
    'null',
    '[]',
    '"a"',
    '1',
    '{',
    '{"a":1}x',
    '{a:1}',
    '{"a":1,}',
    `{"a":${'['.repeat(40)}${']'.repeat(40)}}`,
    '\ufeff{}',
  ])('refuses %j', (text) => expect(parse(text)).toBeUndefined())

  it('refuses bytes that are no UTF-8', () => {
    expect(parseStrictObject(Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]))).toBeUndefined()
  })
})
