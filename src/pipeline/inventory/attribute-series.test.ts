import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { aRow } from './api/testing/world.ts'
import { attributeSeries, type SeriesSource } from './attribute-series.ts'
import { RowStore } from './store/index.ts'

function rowsOf(all: readonly Row['attributes'][]): SeriesSource['rows'] {
  const store = new RowStore(() => undefined)
  const key = { namespace: 'team-a', name: 'apps' }
  store.target(key).put(all.map((attributes, n) => aRow({ name: `web-${n}`, attributes })))
  const state = store.state(key)
  return state.kind === 'rows' ? state.rows : []
}

function sampled(sources: readonly SeriesSource[], atEach = () => {}) {
  const sampling = attributeSeries(sources)
  let step = sampling.next()
  while (!step.done) {
    atEach()
    step = sampling.next()
  }
  return step.value
}

/** @param all attributes of each row */
function summed(all: readonly Row['attributes'][], metrics: SeriesSource['spec']['metrics']) {
  const { sums, divided, leftOut } = sampled([
    { profile: 'team-a/p', spec: metrics ? { metrics } : {}, kinds: [], rows: rowsOf(all) },
  ])
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
    expect((performance.now() - began) / slowness).toBeLessThan(10_000)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(500 * 2 ** 20)
    expect(divided.length).toBeLessThanOrEqual(5000)
    expect([leftOut.length, Math.min(...leftOut) > 0, sums.m0]).toEqual([100, true, 3000])
  })

  it('of many namespaces take together what a scrape has room and time for', () => {
    const long = (n: number, label: string) => `${n}${label.repeat(300)}`
    const rows = rowsOf(
      Array.from({ length: 400 }, (_, n) => ({
        n: 1,
        ...Object.fromEntries(['а', 'б', 'в', 'г', 'д'].map((label, i) => [`l${i}`, long(n, label)])),
      })),
    )
    const labels = ['l0', 'l1', 'l2', 'l3', 'l4']
    const metrics = Array.from({ length: 100 }, (_, i) => ({ name: `m${i}`, path: 'n', labels }))
    const sources = Array.from({ length: 60 }, (_, i) => ({
      profile: `team-${i}/p`,
      spec: { metrics },
      kinds: [],
      rows,
    }))
    const few = { profile: 'z/p', spec: { metrics: [{ name: 'm', path: 'n', labels: ['zone'] }] }, kinds: [] }
    const zones = rowsOf(Array.from({ length: 50 }, (_, n) => ({ n: 1, zone: `z${n % 3}` })))
    let highest = 0
    const before = process.memoryUsage().heapUsed
    const { sums, divided } = sampled([...sources, { ...few, rows: zones }], () => {
      highest = Math.max(highest, process.memoryUsage().heapUsed - before)
    })
    expect(highest).toBeLessThan(400 * 2 ** 20)
    expect(sums.filter(({ value }) => value === 400)).toHaveLength(60 * 101)
    // Who asks for little has it.
    expect(divided.filter(({ labels }) => labels.profile === 'z/p')).toHaveLength(3)
  })

  it('have for one namespace all that a namespace may have', () => {
    const rows = Array.from({ length: 2000 }, (_, n) => ({ n: 1, host: `node-${n}.${'a-region.example.'.repeat(2)}` }))
    const metrics = Array.from({ length: 25 }, (_, i) => ({ name: `m${i}`, path: 'n', labels: ['host'] }))
    // On a busy machine the time that a namespace may take is over sooner.
    let { divided, leftOut } = summed(rows, metrics)
    for (let tries = 1; tries < 20 && divided.length === 0; tries++) ({ divided, leftOut } = summed(rows, metrics))
    expect([divided.length, leftOut]).toEqual([5000, Array.from({ length: 25 }, () => 1000)])
  })

  it('keep nothing of a value but its label', () => {
    const rows = rowsOf(Array.from({ length: 100 }, (_, n) => ({ n: 1, text: `${n}${'x'.repeat(100_000)}` })))
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    collect()
    const before = process.memoryUsage().heapUsed
    const metrics = [{ name: 'm', path: 'n', labels: ['text'] }]
    const { divided } = sampled([{ profile: 'a/p', spec: { metrics }, kinds: [], rows }])
    collect()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5 * 2 ** 20)
    expect(divided.map(({ labels }) => labels.text?.length)).toEqual(divided.map(() => 256))
    expect(divided).toHaveLength(100)
  })
})
