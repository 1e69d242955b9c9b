import { describe, expect, it } from 'vitest'
import { metricsCatalogue } from '../../../src/contract/model/index.ts'
import type { HistoryView, SpanView } from '../contract.ts'
import {
  type ChartPlan,
  chartText,
  clusterCharts,
  fillingText,
  hasValues,
  isBlank,
  lastingValues,
  metricsOf,
  nearest,
  nodeCharts,
  pictureCsv,
  pictureOf,
  shownCharts,
  sourceText,
  spanGroups,
  usualWay,
  valuesOf,
} from './picture.ts'
import { formatValue } from './units.ts'

const start = Date.UTC(2026, 10, 21, 8, 0, 0)
const minute = 60_000
const linesOf = (plans: readonly ChartPlan[]) =>
  plans.filter(({ id }) => id === 'operators').flatMap(({ lines }) => lines.map(({ word }) => word))
const view = (series: Record<string, (number | null)[]>, spans: SpanView[] = []): HistoryView => ({
  metrics: [],
  start: start / 1000,
  end: start / 1000 + 240,
  step: 60,
  series: Object.entries(series).map(([metric, values]) => ({
    metric,
    labels: {},
    points: values.map((value, index) => [start / 1000 + index * 60, value]),
  })),
  spans,
})
const plan: ChartPlan = {
  id: 'cpu',
  title: 'CPU',
  unit: 'cores',
  lines: [
    { metric: 'cpu_used', word: 'used', stroke: 'first' },
    { metric: 'cpu_capacity', word: 'capacity', stroke: 'fourth' },
  ],
}
const span = (kind: SpanView['kind'], from: number, to: number, cause = '', count = 2): SpanView => ({
  kind,
  from: start + from * minute,
  to: start + to * minute,
  cause,
  count,
})

describe('a past that is being filled', () => {
  const day = 86_400_000
  const filled = (days: number, of = 30) =>
    fillingText({ from: start - of * day, reached: start - days * day, to: start })
  it.each([
    [0, '0 of 30 days so far'],
    [0.6, '0 of 30 days so far'],
    [9.9, '9 of 30 days so far'],
    [30, '30 of 30 days so far'],
  ])('has so many whole days: %d', (days, text) => expect(filled(days)).toBe(text))
  it('is as long as what is kept', () => expect(filled(0.5, 1)).toBe('0 of 1 day so far'))
})

describe('a picture', () => {
  it('keeps holes as holes, and what is no number is a hole', () => {
    const picture = pictureOf(view({ cpu_used: [1, null, Number.NaN, 4] }))
    expect(valuesOf(picture, 'cpu_used')).toEqual([1, null, null, 4])
    expect(picture.newest).toBe(start + 3 * minute)
  })

  it('puts series of different length at their own times', () => {
    const picture = pictureOf(view({ cpu_used: [1, 2, 3], cpu_capacity: [8] }))
    expect(valuesOf(picture, 'cpu_capacity')).toEqual([8, null, null])
    expect(valuesOf(picture, 'never_sent')).toEqual([null, null, null])
  })

  it('knows what is blank, and which chart has nothing', () => {
    expect(isBlank(pictureOf(view({})))).toBe(true)
    expect(isBlank(pictureOf(view({ cpu_used: [null, null] })))).toBe(true)
    expect(hasValues(pictureOf(view({ pods_total: [1] })), plan)).toBe(false)
    expect(hasValues(pictureOf(view({ cpu_used: [null, 0] })), plan)).toBe(true)
  })

  it('goes on to the end of its last step, and not beyond what was asked for', () => {
    const told = view({ cpu_used: [1, 2, 3, 4, 5] })
    const last = start + 4 * minute
    expect(pictureOf(told, last + 5 * minute).to).toBe(last + minute)
    expect(pictureOf(told, last + 7000).to).toBe(last + 7000)
    expect(pictureOf(told, last - 7000).to).toBe(last)
  })

  it('finds the nearest point', () => {
    const times = [0, 10, 20, 30]
    expect([-5, 0, 4, 6, 14, 29, 99].map((at) => nearest(times, at))).toEqual([0, 0, 0, 1, 1, 3, 3])
    expect(nearest([], 5)).toBe(-1)
  })
})

describe('how a point came', () => {
  const picture = pictureOf(
    view({ cpu_used: [1, 2, null, 4, 5] }, [span('lost', 2, 2.5, 'dropped', 5), span('repaired', 3, 3.2, '', 1)]),
  )
  it.each([
    [0, 'live, pushed by the agent'],
    [2, 'lost: 5 batches will never come, dropped, because the buffer of the agent was full'],
    [3, 'repaired: 1 batch sent later out of the buffer of the agent'],
    [4, 'live, pushed by the agent'],
  ])('point %d', (index, text) => expect(sourceText(picture, index, 'push')).toBe(text))

  it('says of a hole that nobody declared that there is no sample', () => {
    const holed = pictureOf(view({ cpu_used: [1, null, 3] }))
    expect(sourceText(holed, 1, 'push')).toBe('no sample')
    expect(sourceText(holed, 0, 'pull')).toBe('live, read by the hub')
  })

  it.each([
    ['pushes', { mode: 'push', source: 'push' }, [], 'push'],
    ['is pulled', { mode: 'pull', source: 'pull' }, [], 'pull'],
    [
      'was pulled in a stretch, so the rest was pushed',
      { mode: 'pull', source: 'pull' },
      [span('pulled', 0, 1)],
      'push',
    ],
    ['awaits its first agent', { mode: 'push', source: 'pull' }, [], ''],
    ['is pulled, after a past that was made up', { mode: 'pull', source: 'pull' }, [span('simulated', 0, 1)], 'pull'],
    ['was pushed once, and is pulled now', { mode: 'pull', source: 'pull' }, [span('repaired', 0, 1)], ''],
  ] as const)('does not claim more than is known of a cluster that %s', (_name, cluster, spans, way) => {
    expect(usualWay(pictureOf(view({ cpu_used: [1, 2] }, [...spans])), { ...cluster, agent: null })).toBe(way)
  })

  it('sums up each kind of span once', () => {
    const groups = spanGroups(
      pictureOf(
        view({ cpu_used: [1] }, [span('lost', 3, 4, 'dropped'), span('lost', 0, 1, 'thinned'), span('pulled', 1, 2)]),
      ),
    )
    expect(groups.map(({ kind, text }) => [kind, text])).toEqual([
      ['pulled', '2 batches'],
      [
        'lost',
        '4 batches (thinned out, because the buffer of the agent was filling; dropped, because the buffer of the agent was full)',
      ],
    ])
    expect(spanGroups(pictureOf(view({ cpu_used: [1] }, [span('simulated', 0, 9)])))).toMatchObject([
      { kind: 'simulated', text: 'made up for the demonstration' },
    ])
    expect(groups[1]?.where).toContain('1 more stretch')
  })

  it('calls nothing lost for ever that may still come', () => {
    const open = pictureOf(view({ cpu_used: [1] }, [span('lost', 0, 9, 'not_received')]))
    expect(sourceText(open, 0, 'push')).toBe('2 batches not received: what an agent still has of it takes its place')
    expect(spanGroups(open).map(({ text }) => text)).toEqual([
      '2 batches (not received: what an agent still has of it takes its place)',
    ])
  })
})

describe('the file', () => {
  it('holds what is shown in base units, one row per point, an empty cell for a hole', () => {
    const picture = pictureOf(view({ cpu_used: [1.5, null], cpu_capacity: [8, 8] }, [span('pulled', 1, 2)]))
    expect(pictureCsv(picture, [plan], 'push').split('\r\n')).toEqual([
      'time,cpu_used_cores,cpu_capacity_cores,source',
      '2026-11-21T08:00:00Z,1.5,8,"live, pushed by the agent"',
      '2026-11-21T08:01:00Z,,8,pulled: the hub read 2 batches itself while the agent was away',
      '',
    ])
  })
})

describe('a chart in words', () => {
  it('says where each line was and is, and what is missing', () => {
    const picture = pictureOf(view({ cpu_used: [1, null, 3, 2], cpu_capacity: [8, null, 8, 8] }))
    expect(chartText(picture, plan, formatValue)).toMatch(
      /^CPU, .*: used between 1 core and 3 cores, last 2 cores; capacity between 8 cores and 8 cores, last 8 cores\. 1 point has no sample\.$/,
    )
    expect(chartText(pictureOf(view({})), plan, formatValue)).toMatch(/no samples/)
  })
})

describe('the charts', () => {
  it.each([
    ['cluster', clusterCharts],
    ['node', nodeCharts],
  ] as const)('of a %s ask for metrics that are kept, with the unit they have', (scope, charts) => {
    const known = new Map(metricsCatalogue.filter((each) => each.scope === scope).map(({ name, unit }) => [name, unit]))
    for (const { unit, lines } of charts) for (const { metric } of lines) expect(known.get(metric), metric).toBe(unit)
    expect(new Set(metricsOf(charts)).size).toBe(metricsOf(charts).length)
  })
})

describe('charts of what a cluster does not serve', () => {
  const shown = (own: number, served: boolean) => {
    const picture = pictureOf(view({ operators_total: [3, 3], operators_count: [own, own] }))
    return linesOf(shownCharts(picture, clusterCharts, (type) => type === 'operator' || served))
  }
  it('have no line of zeros', () => expect(shown(0, false)).toEqual(['of OLM']))
  it('keep a zero of what is served, and what was served once', () => {
    expect(shown(0, true)).toEqual(['of OLM', 'of the cluster'])
    expect(shown(30, false)).toEqual(['of OLM', 'of the cluster'])
  })
  it('are gone where nothing is left', () => {
    const picture = pictureOf(view({ operators_count: [0, 0] }))
    expect(linesOf(shownCharts(picture, clusterCharts, () => false))).toEqual([])
    expect(linesOf(shownCharts(null, clusterCharts, () => true))).toEqual([])
  })
})

describe('a line of what is read every five minutes', () => {
  const operators = { metric: 'operators_total', word: 'of OLM', stroke: 'first', of: 'operator' } as const
  const drawn = (nodes: (number | null)[], values: (number | null)[]) =>
    lastingValues(pictureOf(view({ nodes_total: nodes, operators_total: values })), operators)
  it('keeps its value from one read to the next', () =>
    expect(drawn([3, 3, 3, 3, 3, 3, 3], [null, 5, null, null, null, null, 6])).toEqual([null, 5, 5, 5, 5, 5, 6]))
  it('ends where it is read no more', () =>
    expect(drawn(Array(12).fill(3), [5, ...Array(11).fill(null)])).toEqual([
      ...Array(8).fill(5),
      ...Array(4).fill(null),
    ]))
  it('is broken where no round came, and so is every other line', () => {
    expect(drawn([3, 3, null, 3], [5, null, null, null])).toEqual([5, 5, null, null])
    const nodes = { metric: 'nodes_total', word: 'total', stroke: 'first' } as const
    expect(lastingValues(pictureOf(view({ nodes_total: [3, null, 3], cpu_used: [1, 1, 1] })), nodes)).toEqual([
      3,
      null,
      3,
    ])
  })
})
