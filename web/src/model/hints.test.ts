import { describe, expect, it } from 'vitest'
import type { FilterTarget } from './filter.ts'
import { commonLabels, fillExample, filterHints } from './hints.ts'

interface Row {
  readonly name: string
  readonly health: string
  readonly labels: Readonly<Record<string, string>>
}
const target: FilterTarget<Row> = {
  fields: {
    name: { kind: 'text', read: ({ name }) => name },
    health: { kind: 'text', read: ({ health }) => health, values: ['healthy', 'unhealthy'] },
    cpu: { kind: 'percent', read: () => null },
  },
  labels: ({ labels }) => labels,
  words: ({ name }) => name,
}
const rows: readonly Row[] = [
  { name: 'eu-1', health: 'healthy', labels: { env: 'prod', team: 'a' } },
  { name: 'eu-2', health: 'degraded', labels: { env: 'prod' } },
  { name: 'us-1', health: 'healthy', labels: { env: 'staging' } },
]
const hints = (text: string) => filterHints(text, target, rows, 'clusters')

describe('hints of a filter', () => {
  it.each([
    ['evironment=prod', 'evironment is no column here, and no label of these clusters'],
    ['helth:degraded', 'helth is no column here, and no label of these clusters; did you mean health?'],
    ['health:degarded', 'health:degarded: none of these clusters has that; did you mean health:degraded?'],
    ['env=produ', 'env=produ: none of these clusters has that; did you mean env:prod?'],
    ['evn=prod', 'evn is no column here, and no label of these clusters; did you mean env?'],
    ['name~uk-1', 'name~uk-1: none of these clusters has that; there are eu-1, eu-2, us-1'],
    ['health~helthy', 'health~helthy: none of these clusters has that; did you mean health:healthy?'],
    ['sus-1', 'sus-1: none of these clusters is called so; did you mean us-1?'],
    ['nothing-like-it', 'nothing-like-it: none of these clusters is called so'],
    ['env=qa', 'env=qa: none of these clusters has that; there are prod, staging'],
  ])('%s: %s', (text, hint) => expect(hints(text)).toEqual([hint]))

  it('say of a field that is none so too where there are more rows than these', () => {
    const some = (text: string) => filterHints(text, target, rows, 'rows', false)
    expect(some('bogus:foo')).toEqual(['bogus is no column here, and no label of the first 3 rows'])
    expect(some('helth:degraded')).toEqual([
      'helth is no column here, and no label of the first 3 rows; did you mean health?',
    ])
    expect(some('env=qa')).toEqual([])
  })

  it.each([
    'env=prod',
    'health:unhealthy',
    'team:none',
    'health~deg',
    'cpu>80',
    'eu',
    'env=prod,staging',
    '-other',
    'name~eu',
    '',
  ])('has nothing to say of %j', (text) => expect(hints(text)).toEqual([]))

  it('say only what was probably meant where there are more rows than are known', () => {
    const some = (text: string) => filterHints(text, target, rows, 'rows', false)
    expect(some('health:degarded env=qa nothing-like-it sus-1')).toEqual([
      'health:degarded: did you mean health:degraded?',
      'sus-1: did you mean us-1?',
    ])
  })
})

describe('examples of a filter', () => {
  it('are out of the rows, and leave out what no row has', () => {
    expect(fillExample('health:* *=* cpu>80 name~* cpu:*', target, rows)).toBe(
      'health:healthy env=prod cpu>80 name~eu-',
    )
    expect(fillExample('health:* *=* cpu>80', target, [])).toBe('cpu>80')
  })
  it('name the labels of most rows first', () => expect(commonLabels(target, rows)).toEqual(['env', 'team']))
})
