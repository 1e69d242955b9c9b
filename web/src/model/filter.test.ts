import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileFilter, type FilterTarget, parseFilter, splitTerms, termText } from './filter.ts'

interface Row {
  name: string
  health: string
  version: string | null
  cpu: number | null
  memory: number | null
  age: number | null
  roles: readonly string[]
  stale: boolean
  labels: Record<string, string>
}
const now = Date.UTC(2026, 0, 1)
const aRow = (row: Partial<Row> = {}): Row => ({
  name: 'eu-prod-1',
  health: 'healthy',
  version: 'v1.29.4',
  cpu: 0.42,
  memory: 3 * 2 ** 30,
  age: now - 90_000,
  roles: ['control-plane', 'worker'],
  stale: false,
  labels: { env: 'prod', 'topology.kubernetes.io/zone': 'eu-1a' },
  ...row,
})
const target: FilterTarget<Row> = {
  fields: {
    name: { kind: 'text', read: ({ name }) => name },
    health: { kind: 'text', read: ({ health }) => health },
    version: { kind: 'version', read: ({ version }) => version },
    cpu: { kind: 'percent', read: ({ cpu }) => cpu },
    memory: { kind: 'bytes', read: ({ memory }) => memory },
    age: { kind: 'time', read: ({ age }) => age },
    role: { kind: 'text', read: ({ roles }) => roles },
    stale: { kind: 'text', read: ({ stale }) => stale },
  },
  labels: ({ labels }) => labels,
  words: ({ name }) => name,
}
const matches = (text: string, row: Partial<Row> = {}) => compileFilter(text, target, now).test(aRow(row))

describe('filter', () => {
  it.each([
    ['', true],
    ['prod', true],
    ['PROD eu', true],
    ['stage', false],
    ['-stage', true],
    ['"eu-prod"', true],
    ['health:healthy', true],
    ['health:degraded', false],
    ['health:degraded,healthy', true],
    ['health!=degraded', true],
    ['health!=degraded,healthy', false],
    ['-health:healthy', false],
    ['HEALTH:Healthy', true],
    ['env=prod', true],
    ['env=stage', false],
    ['env!=stage', true],
    ['nolabel:none', true],
    ['env:none', false],
    ['topology.kubernetes.io/zone~1a', true],
    ['version<4.15', true],
    ['version<1.29', false],
    ['version:1.29', true],
    ['version>=1.29.4', true],
    ['version>1.28', true],
    ['cpu>41', true],
    ['cpu>42', false],
    ['cpu:42%', true],
    ['cpu<=42', true],
    ['memory>2Gi', true],
    ['memory<3Gi', false],
    ['age>1m', true],
    ['age>2m', false],
    ['role:worker', true],
    ['role:gpu', false],
    ['role~control', true],
    ['stale:no', true],
    ['name~eu-', true],
    ['health:healthy env=prod version<4.15 cpu>8 name~eu-', true],
    ['health:healthy env=prod version<4.15 cpu>80 name~eu-', false],
  ])('%j answers %s', (text, answer) => expect(matches(text)).toBe(answer))

  it('finds unknown values by none, and never as more, less or different', () => {
    for (const text of ['cpu>0', 'cpu<100', 'cpu:0', 'cpu!=0', 'version!=1.0', 'version<9']) {
      expect(matches(text, { cpu: null, version: null }), text).toBe(false)
    }
    expect(matches('cpu:none', { cpu: null })).toBe(true)
    expect(matches('cpu!=none', { cpu: null })).toBe(false)
    expect(matches('cpu:none')).toBe(false)
  })

  it('orders a pre-release before its release, and releases by number', () => {
    expect(matches('version<4.16.0', { version: '4.16.0-rc.2' })).toBe(true)
    expect(matches('version<4.9', { version: '4.15.1' })).toBe(false)
  })

  it.each([
    ['cpu>lots', 'cpu>lots: lots is no percentage'],
    ['version<new', 'version<new: new is no version'],
    ['age>5', 'age>5: 5 is no span such as 5m or 3d'],
    ['health:', 'health: lacks a value'],
  ])('says what is wrong with %j, and matches nothing, negated or not', (text, fault) => {
    const filter = compileFilter(text, target)
    expect(filter.faults).toEqual([fault])
    expect(filter.test(aRow())).toBe(false)
    expect(matches(`-${text}`)).toBe(false)
  })

  it.each(['> 10', 'cpu > 10', '=prod', '-!=x'])('says that a sign has no column before it: %j', (text) => {
    const { faults, test } = compileFilter(text, target)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(/ has no column before it: write a term without spaces/)
    expect(test(aRow())).toBe(false)
  })

  it('takes the name of a field in quotes, and as a word what is all in quotes', () => {
    const spaced: FilterTarget<Row> = {
      ...target,
      fields: { ...target.fields, 'cpu used': target.fields.cpu as never },
    }
    expect(compileFilter('"cpu used">41', spaced).test(aRow())).toBe(true)
    expect(compileFilter('-"cpu used">41', spaced).test(aRow())).toBe(false)
    const { labels: _, ...bare } = spaced
    expect(compileFilter('"as of">10', bare).faults).toEqual(['as of is no column here'])
    expect(parseFilter('"cpu>41" "a:b c"')).toMatchObject([
      { kind: 'word', text: 'cpu>41' },
      { kind: 'word', text: 'a:b c' },
    ])
    expect(parseFilter(termText('cpu used', '>', '4 1'))).toMatchObject([{ field: 'cpu used', values: ['4 1'] }])
  })

  it('calls a field that no column has a fault where rows have no labels', () => {
    const { labels: _, ...bare } = target
    expect(compileFilter('env=prod', bare).faults).toEqual(['env is no column here'])
    expect(compileFilter('helth:degraded', bare).faults).toEqual(['helth is no column here; did you mean health?'])
    expect(compileFilter('constructor:a', bare).faults).toEqual(['constructor is no column here'])
  })

  it('reads back what a chip or a link writes, whatever the value', () =>
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }).filter((value) => value.replaceAll('"', '').trim() !== ''),
        (value) => {
          const text = termText('name', ':', value)
          const [term, ...more] = parseFilter(text)
          expect(more).toEqual([])
          expect(term).toMatchObject({ kind: 'field', field: 'name', op: ':' })
          expect((term as { values: readonly string[] }).values.join(',')).toBe(value.replaceAll('"', ''))
        },
      ),
    ))

  it('never throws and loses no term, whatever is typed', () =>
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab:=!~<>-", 1%') }), (text) => {
        expect(splitTerms(text).join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
        compileFilter(text, target).test(aRow())
      }),
    ))
})
