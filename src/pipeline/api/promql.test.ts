import { parser } from '@prometheus-io/lezer-promql'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import {
  clusterMatcher,
  maxQueryLength,
  narrowQuery,
  narrowSelector,
  QueryRefusedError,
  type RightsOf,
  resultTypeOf,
  textOf,
} from './promql.ts'
import { promql } from './test/random-promql.ts'

const clusters = ['west', 'a.b-c']
const matcher = 'cluster=~"west|a\\\\.b\\\\-c"'
/** where no metric is named */
const others = '__name__!~"clusterpulse_custom_resource_.*"'
const narrowed = (query: string): string =>
  narrowQuery(query, clusters).replaceAll(matcher, 'M').replaceAll(others, 'N')

const spaced = (text: string): string => text.replace(/[=!]~/, ' $& ')

interface Shape {
  /** of every node but braces, comments and the matcher itself, in order */
  readonly names: readonly string[]
  readonly selectors: number
  readonly carrying: number
  readonly faulty: boolean
}

// Written apart from the code under test: it looks at matchers anywhere in the braces, by their text.
function shapeOf(query: string): Shape {
  const names: string[] = []
  const count = { selectors: 0, carrying: 0 }
  let faulty = false
  parser.parse(query).iterate({
    enter: ({ name, type, node, from, to }) => {
      if (type.isError) faulty = true
      if (name === 'VectorSelector') {
        count.selectors += 1
        const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []
        if (matchers.some((one) => query.slice(one.from, one.to) === matcher)) count.carrying += 1
      }
      if (name === 'LabelMatchers' || name === 'LineComment') return true
      if (query.slice(from, to) === matcher || query.slice(from, to) === others) return false
      names.push(name)
      return true
    },
  })
  return { names, ...count, faulty }
}

describe('a narrowed query', () => {
  it.each([
    ['up', 'up { M }'],
    ['up{}', 'up { M }'],
    ['{}', '{ M , N }'],
    ['{__name__=~"a|b"}', '{ M , N , __name__ =~ "a|b" }'],
    ['up{cluster="east"}', 'up { M , cluster = "east" }'],
    ['up{cluster=~".*",}', 'up { M , cluster =~ ".*" , }'],
    ['rate(up[5m])', 'rate ( up { M } [ 5m ] )'],
    ['max_over_time(sum(up)[1h:5m])', 'max_over_time ( sum ( up { M } ) [ 1h : 5m ] )'],
    [
      'sum by (node) (a) / on(cluster) group_left() b',
      'sum by ( node ) ( a { M } ) / on ( cluster ) group_left ( ) b { M }',
    ],
    ['a or b unless c', 'a { M } or b { M } unless c { M }'],
    ['up offset 5m @ end()', 'up { M } offset 5m @ end ( )'],
    ['-up', '- up { M }'],
    ['sum', 'sum { M }'],
    ['label_replace(up, "cluster", "east", "", "")', 'label_replace ( up { M } , "cluster" , "east" , "" , "" )'],
    ['a # {b="c"}\n{d="e"}', 'a { M , d = "e" }'],
    ['a{b="} or c{"}', 'a { M , b = "} or c{" }'],
    ["a{b='#'} # c", 'a { M , b = "#" }'],
    ['a{b=`x\\`}', 'a { M , b = "x\\\\" }'],
    ["a{b='it\\'s \"x\"'}", 'a { M , b = "it\'s \\"x\\"" }'],
    ['a{b="\\x41\\101\\u0042\\U00000043"}', 'a { M , b = "AABC" }'],
    ['1 + 1', '1 + 1'],
    ['time()', 'time ( )'],
    ['"a { b"', '"a { b"'],
  ])('of %s carries the matcher in every selector', (query, expected) => expect(narrowed(query)).toBe(expected))

  it('is the same query but for the matcher, which every selector carries', () =>
    fc.assert(
      fc.property(promql, (query) => {
        const before = shapeOf(query)
        expect(before.faulty).toBe(false)
        const after = shapeOf(narrowQuery(query, clusters))
        expect(after).toEqual({ ...before, carrying: before.selectors })
        expect(before.carrying).toBe(0)
      }),
      { numRuns: 500 },
    ))

  it('narrowed again means the same', () =>
    fc.assert(
      fc.property(promql, (query) => {
        const once = narrowQuery(query, clusters)
        const again = narrowQuery(once, clusters)
          .replaceAll(spaced(matcher), matcher)
          .replaceAll(spaced(others), others)
          .replaceAll(`${matcher} , ${others} , ${matcher} , ${others}`, `${matcher} , ${others}`)
          .replaceAll(`${matcher} , ${matcher}`, matcher)
        expect(again).toBe(once)
      }),
    ))

  const rights: RightsOf = (aggregation, source = 'ns/a') =>
    aggregation === 'total' && source === 'ns/a' ? { clusters: ['west'], sources: ['ns/a'] } : undefined
  const own = 'cluster=~"west" , source=~"ns\\\\/a"'
  const none = `${matcher} , source!~".*"`
  const custom = 'clusterpulse_custom_resource_'

  it.each([
    [`${custom}total`, `${custom}total { ${own} }`],
    [`${custom}total{source="ns/a"}`, `${custom}total { ${own} , source = "ns/a" }`],
    [`${custom}total{source='ns/b'}`, `${custom}total { ${none} , source = "ns/b" }`],
    [`${custom}cost`, `${custom}cost { ${none} }`],
    [`${custom}total:rate`, `${custom}total:rate { ${none} }`],
    [`{__name__="${custom}total"}`, `{ ${own} , __name__ = "${custom}total" }`],
    [`{__name__='\\x63${custom.slice(1)}cost'}`, `{ ${none} , __name__ = "${custom}cost" }`],
    [`{__name__=~"${custom}.*"}`, `{ ${matcher} , ${others} , __name__ =~ "${custom}.*" }`],
    [`{__name__!="up"}`, `{ ${matcher} , ${others} , __name__ != "up" }`],
    [`sum(rate(${custom}total[5m]) or up)`, `sum ( rate ( ${custom}total { ${own} } [ 5m ] ) or up { ${matcher} } )`],
  ])('lets aggregations through as far as they are granted: %s', (query, expected) =>
    expect(narrowQuery(query, clusters, rights)).toBe(expected),
  )

  it('is made of any heap of tokens, or refused: nothing in between', () => {
    const tokens = [
      'up',
      '{',
      '}',
      '(',
      ')',
      '[',
      ']',
      ',',
      '"',
      "'",
      '`',
      '\\',
      '#',
      '\n',
      ' ',
      'a="b"',
      'or',
      'by',
      '5m',
      ':',
      '=~',
      '=',
      '@',
      'offset',
      'sum',
      '-',
      '1',
      'cluster',
      '"east"',
      'WITH',
      'é',
      '\u00a0',
      '\u2028',
      '\ud800',
      '\0',
    ]
    let taken = 0
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokens), { maxLength: 12 }), (pieces) => {
        const query = pieces.join('')
        let result: string
        try {
          result = narrowQuery(query, clusters)
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(QueryRefusedError)
          return
        }
        taken += 1
        const { selectors, carrying, faulty } = shapeOf(result)
        expect([carrying, faulty]).toEqual([selectors, false])
      }),
      { numRuns: 2000 },
    )
    expect(taken).toBeGreaterThan(0)
  })
})

describe('a query is refused, and its fault is named by place,', () => {
  it.each([
    ['', 'line 1, column 1'],
    ['up{', 'line 1, column 4'],
    ['up{a="b" or c="d"}', 'line 1, column 10'],
    ['WITH (x = up) x', 'line 1, column 6'],
    ['up\n  default 1', 'line 2, column 3'],
    ['up keep_metric_names', 'line 1, column 4'],
    ['a if b', 'line 1, column 3'],
    ['a ifnot b', 'line 1, column 3'],
    ['sum(a) limit 5', 'line 1, column 8'],
    ['rate(up)[1i]', 'line 1'],
    ['up[5m', 'line 1'],
    ['up{cluster="a}', 'line 1'],
    ['"never ends', 'a string does not end at line 1, column 1'],
    ['"ends only in looks\\"', 'a string does not end'],
    ['{"up"}', 'quoted label names are not taken at line 1, column 2'],
    ['{"cluster"="east"}', 'quoted label names'],
    ['sum by ("cluster") (up)', 'quoted label names'],
    ['up{__graphite__="*"}', 'label __graphite__ is not taken at line 1, column 4'],
    ['info(up)', 'info() reads series'],
    ['a{b="\\q"}', 'an escape that means nothing'],
    ['a{b="\\xff"}', 'bytes that are no text'],
    ['a{b="\\ud800"}', 'not valid Unicode'],
    ['a{b="\\U00110000"}', 'an escape that means nothing'],
    ['ünicode', 'line 1'],
    ['a\\{b="c"}', 'line 1'],
    ['up; up', 'line 1'],
    ['median(up)', 'line 1'],
    ['range_quantile(0.5, up)', 'line 1'],
    ['{cluster="a"} or', 'line 1'],
    ['union(a, b)', 'line 1'],
    ['a\0b', 'line 1'],
  ])('for %j', (query, message) => {
    expect(() => narrowQuery(query, clusters)).toThrow(QueryRefusedError)
    expect(() => narrowQuery(query, clusters)).toThrow(message)
  })

  it('when it is too long, before and after', () => {
    expect(() => narrowQuery('a'.repeat(maxQueryLength + 1), clusters)).toThrow(QueryRefusedError)
    const many = Array.from({ length: 1000 }, (_, n) => `${(n * 7919) ** 3}-cluster`)
    expect(() => narrowQuery('a + b', many)).toThrow(/use fewer selectors/)
  })

  it('when brackets are thousands deep, in short time', () => {
    const began = process.cpuUsage()
    narrowQuery(`${'('.repeat(500)}up${')'.repeat(500)}`, clusters)
    expect(() => narrowQuery('('.repeat(maxQueryLength), clusters)).toThrow(QueryRefusedError)
    expect(cpuMs(began)).toBeLessThan(5000)
  })
})

describe('the matcher', () => {
  const clusterName = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,12}[a-z0-9])?$/)
  it('matches exactly its clusters, whatever their names', () =>
    fc.assert(
      fc.property(fc.array(clusterName, { minLength: 1, maxLength: 5 }), clusterName, (names, other) => {
        const text = clusterMatcher(names).slice('cluster=~'.length)
        const pattern = new RegExp(`^(?:${JSON.parse(text)})$`)
        for (const name of names) expect(pattern.test(name)).toBe(true)
        expect(pattern.test(other)).toBe(names.includes(other))
        expect(pattern.test('')).toBe(false)
      }),
    ))
  it('of a whole fleet matches exactly its clusters, and fits into a query many times', () => {
    const patternOf = (names: readonly string[]) =>
      new RegExp(`^(?:${JSON.parse(clusterMatcher(names).slice('cluster=~'.length))})$`)
    fc.assert(
      fc.property(
        fc.array(clusterName, { minLength: 200, maxLength: 400, size: 'max' }),
        clusterName,
        (names, other) => {
          const pattern = patternOf(names)
          expect(names.every((name) => pattern.test(name))).toBe(true)
          for (const one of [other, '', ...names.flatMap((name) => [name.slice(1), name.slice(0, -1), `${name}a`])])
            expect(pattern.test(one), one).toBe(names.includes(one))
        },
      ),
      { numRuns: 20 },
    )
    const fleet = Array.from({ length: 1000 }, (_, n) => `prod-eu-${String(n).padStart(4, '0')}.example`)
    expect(fleet.every((name) => patternOf(fleet).test(name))).toBe(true)
    expect(narrowQuery('a + b * c / d', fleet).length).toBeLessThan(16_000)
  })
  it('of no cluster does not exist', () => {
    expect(() => clusterMatcher([])).toThrow(/without a cluster/)
    expect(() => clusterMatcher(['west', ''])).toThrow(/without a cluster/)
  })
})

describe('a selector of a list', () => {
  const listed = [{ source: 'ns/a', names: ['total', 'cost'], clusters: ['west'] }]
  const shown = (text: string) => narrowSelector(text, clusters, () => undefined, listed)

  it.each([
    ['up', [`up { ${matcher} }`]],
    ['up{cluster="east"}', [`up { ${matcher} , cluster = "east" }`]],
    ['# of a\nup # b', [`up { ${matcher} }`]],
    ['{__name__="up"}', [`{ ${matcher} , __name__ = "up" }`]],
  ])('that names a metric is narrowed as in a query: %s', (text, expected) => expect(shown(text)).toEqual(expected))

  it.each(['{}', '{cluster="west"}', '{__name__=~".+"}'])(
    'that names none finds what is listed besides: %s',
    (text) => {
      const own = text === '{}' ? '' : ` , ${text.slice(1, -1).replace(/[=~]+/, ' $& ')}`
      const names = '__name__=~"clusterpulse_custom_resource_total|clusterpulse_custom_resource_cost"'
      expect(shown(text)).toEqual([
        `{ ${matcher} , ${others}${own} }`,
        `{ cluster=~"west" , source=~"ns\\\\/a" , ${names}${own} }`,
      ])
    },
  )

  it.each(['', 'up[5m]', 'up offset 1m', 'rate(up[5m])', '(up)', 'up or up', '1', '"up"', 'up @ 1', 'up}'])(
    'that is none is refused: %j',
    (text) => expect(() => shown(text)).toThrow(QueryRefusedError),
  )
})

describe('a query evaluates to', () => {
  it.each([
    ['1', 'scalar'],
    ['-1', 'scalar'],
    ['-(1)', 'scalar'],
    ['1 + 1', 'scalar'],
    ['# x\n(1 > bool 2) * time()', 'scalar'],
    ['scalar(up)', 'scalar'],
    ['scalar # x\n(up)', 'scalar'],
    ['pi()', 'scalar'],
    ['-up', 'vector'],
    ['1 + up', 'vector'],
    ['up * scalar(up)', 'vector'],
    ['vector(1)', 'vector'],
    ['sum(up)', 'vector'],
    ['hour()', 'vector'],
    ['up offset 5m', 'vector'],
    ['"text"', 'string'],
    ["('text')", 'string'],
    ['up[5m]', 'matrix'],
    ['up[5m] offset 1m', 'matrix'],
    ['(up[5m:1m])', 'matrix'],
  ])('%s: a %s', (query, type) => expect(resultTypeOf(query)).toBe(type))

  it('the text that a string means', () => expect(textOf("# 'x'\n('it\\'s')")).toBe("it's"))
})
