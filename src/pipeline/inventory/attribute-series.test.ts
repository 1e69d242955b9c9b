import { describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { aRow } from './api/testing/world.ts'
import { attributeSeries, type SeriesSource } from './attribute-series.ts'
import { RowStore } from './store/index.ts'

/** @param all attributes of each row */
function summed(all: readonly Row['attributes'][], metrics: SeriesSource['spec']['metrics']) {
  const store = new RowStore(() => undefined)
  const key = { namespace: 'team-a', name: 'apps' }
  store.target(key).put(all.map((attributes, n) => aRow({ name: `web-${n}`, attributes })))
  const state = store.state(key)
  const rows = state.kind === 'rows' ? state.rows : []
  const sampling = attributeSeries([{ profile: 'team-a/p', spec: metrics ? { metrics } : {}, kinds: [], rows }])
  let step = sampling.next()
  while (!step.done) step = sampling.next()
  const { sums, divided, leftOut } = step.value
  return {
    sums: Object.fromEntries(sums.map(({ labels, value }) => [labels.series, value])),
    divided: divided.map(({ labels: { profile: _, gvk: __, ...labels }, value }) => ({ ...labels, value })),
    leftOut: leftOut.map(({ value }) => value),
  }
}

describe('series of attributes', () => {
  it('are the sums of all that are numbers where the profile names none', () => {
    const rows = [
      { replicas: 3, cpu: '0.5', image: 'web:1', isPaused: true, labels: { a: 1 }, list: [1] },
      { replicas: 2, cpu: '1e1', image: '', empty: null },
    ]
    expect(summed(rows, undefined).sums).toEqual({ object_count: 2, replicas: 5, cpu: 10.5 })
  })

  it('are those alone that it names, under its names, and none where there is no number', () => {
    const rows = [{ replicas: 3, cpu: 1 }, { cpu: 1 }]
    const metrics = [
      { name: 'wanted', path: 'replicas' },
      { name: 'missing', path: 'memory' },
    ]
    expect(summed(rows, metrics)).toEqual({ sums: { object_count: 2, wanted: 3 }, divided: [], leftOut: [] })
  })

  it('have valid labels that are none of ours, and never one series twice', () => {
    const labels = ['gvk', '0day', 'app.io/name', 'app_io/name']
    const rows = [
      { n: 1, gvk: 'x', '0day': true, 'app.io/name': 'a', 'app_io/name': 'b' },
      { n: 2, gvk: 'x', '0day': true, 'app.io/name': 'other', 'app_io/name': 'b' },
    ]
    const labelled = { attribute_gvk: 'x', attribute_0day: 'true', app_io_name: 'b', series: 'n' }
    expect(summed(rows, [{ name: 'n', path: 'n', labels }]).divided).toEqual([{ ...labelled, value: 3 }])
  })

  it('are at most 200 for one sum, the same ones in any order of rows, and the others are counted', () => {
    const rows = Array.from({ length: 250 }, (_, n) => ({ n: 1, host: `h${String(n).padStart(3, '0')}` }))
    const metrics = [{ name: 'n', path: 'n', labels: ['host'] }]
    const { divided, leftOut, sums } = summed(rows, metrics)
    expect([divided.length, leftOut, sums.n]).toEqual([200, [50], 250])
    expect(summed([...rows].reverse(), metrics).divided).toEqual(divided)
  })

  it('take no more than their share, however many combinations there are', () => {
    const rows = Array.from({ length: 3000 }, (_, n) => ({
      n: 1,
      ...Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((label) => [label, `${n}${label.repeat(240)}`])),
    }))
    const metrics = Array.from({ length: 100 }, (_, i) => ({
      name: `m${i}`,
      path: 'n',
      labels: ['a', 'b', 'c', 'd', 'e'],
    }))
    const [began, before] = [performance.now(), process.memoryUsage().heapUsed]
    const { divided, leftOut, sums } = summed(rows, metrics)
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(500 * 2 ** 20)
    expect(divided.length).toBeLessThanOrEqual(5000)
    expect([leftOut.length, Math.min(...leftOut) > 0, sums.m0]).toEqual([100, true, 3000])
  })
})
