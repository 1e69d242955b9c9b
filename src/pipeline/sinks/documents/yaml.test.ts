import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { yamlOf } from './yaml.ts'

describe('YAML', () => {
  it('is what people write', () =>
    expect(
      yamlOf([
        {
          name: 'web',
          replicas: 2,
          labels: { app: 'web', 'app.kubernetes.io/name': 'web' },
          ports: [80, { a: [] }],
          none: null,
        },
        {
          image: 'registry.test/web:1',
          text: 'two words',
          version: '1.2',
          yes: 'no',
          empty: {},
          lines: 'a\nb',
          date: '2026-11-26',
        },
        [],
      ]),
    ).toBe(`- name: web
  replicas: 2
  labels:
    app: web
    app.kubernetes.io/name: web
  ports:
    - 80
    - a: []
  none: null
- image: "registry.test/web:1"
  text: two words
  version: "1.2"
  "yes": "no"
  empty: {}
  lines: "a\\nb"
  date: "2026-11-26"
- []
`))

  const key = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 10 }),
    fc.constantFrom('null', 'y', '=', '<<', '-', '? a', '0x1', '1e3', '.inf', '#', ': '),
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      key,
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
      fc.maxSafeInteger(),
      fc.constantFrom(
        null,
        true,
        false,
        '',
        'true',
        '1',
        '1_000',
        '0o7',
        '12:30:45',
        '2026-11-26',
        '~',
        '\u2028',
        '\ufeff',
        'a: b',
        'a #b',
        '- a',
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    ),
  }))

  it.each(['1.1', '1.2'] as const)('of any value is that value, for a reader of YAML %s', (version) =>
    fc.assert(
      fc.property(value, (one) => {
        expect(parse(yamlOf(one), { version, merge: false, uniqueKeys: false, maxAliasCount: 0 })).toEqual(
          JSON.parse(JSON.stringify(one)),
        )
      }),
      { numRuns: 500 },
    ),
  )

  it('of a list is what its entries are, one after the other', () =>
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), (list) => {
        expect(yamlOf(list)).toBe(list.map((one) => yamlOf([one])).join(''))
      }),
    ))
})
