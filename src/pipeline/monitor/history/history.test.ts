import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { atOnce, silentLogger } from '#runtime'
import { cpuMs } from '../../../../test/cpu.ts'
import { T0 } from '../../state/test/fleet-words.ts'
import { monitored } from '../testing/monitored.ts'
import { HistoryFiles } from './files.ts'
import { UsageHistory } from './history.ts'
import { downsampled, historyQuery, pointsOf } from './query.ts'
import { type Measured, Series, type Values } from './series.ts'

const always = () => true
const minute = 60_000
const ask = (text: string, now = T0) => historyQuery(new URLSearchParams(text), now)
const one = (time: number, value: number): Measured => {
  const values: Values = [value, value * 2, value * 3]
  return { time, count: 1, mean: values, max: values }
}
const seriesOf = (count: number, everyMs: number, value: (at: number) => number = (at) => at) => {
  const series = new Series()
  for (let at = 0; at < count; at++) {
    const { mean } = one(0, value(at))
    series.add(T0 + at * everyMs, mean, always)
  }
  return series
}

describe('questions about the past', () => {
  it('end now and begin an hour before their end where nothing, or nothing readable, is said', () => {
    expect(ask('')).toEqual({
      startMs: T0 - 60 * minute,
      endMs: T0,
      start: '2025-12-31T23:00:00Z',
      end: '2026-01-01T00:00:00Z',
      resolution: 'raw',
    })
    expect(ask('start=yesterday&end=2026-02-30T00:00:00Z')).toEqual(ask(''))
    expect(ask('start=2026-01-01T24:00:00Z')).toEqual(ask(''))
    expect(ask('end=2026-01-01T10:00:00.5Z')).toMatchObject({ start: '2026-01-01T09:00:00.5Z' })
  })

  it('keep the offset of what was given', () => {
    const { start, startMs } = ask('start=2026-01-01T01:00:00%2B02:00')
    expect([start, startMs]).toEqual(['2026-01-01T01:00:00+02:00', T0 - 60 * minute])
    expect(ask('start=2026-01-01T01:00:00+02:00').startMs).toBe(startMs)
  })

  it.each([
    ['1', 'raw'],
    ['1.001', '1m'],
    ['6', '1m'],
    ['24', '5m'],
    ['25', '15m'],
  ])('take for %s hours the resolution %s', (hours, resolution) => {
    const start = new Date(T0 - Number(hours) * 60 * minute).toISOString()
    expect(ask(`start=${start}`).resolution).toBe(resolution)
    expect(ask(`start=${start}&resolution=`).resolution).toBe(resolution)
  })

  it('take a resolution as it is said, and any other word for raw', () => {
    expect(ask('resolution=15m').resolution).toBe('15m')
    for (const word of ['2m', '1M', 'toString']) expect(ask(`resolution=${word}`).resolution).toBe('raw')
  })
})

describe('downsampling', () => {
  it('puts points into buckets whose start is cut to the resolution, with mean and maximum', () => {
    const points = [one(T0 + 59_000, 1), one(T0 + 60_000, 2), one(T0 + 119_999, 4), one(T0 + 240_000, 9)]
    expect([...downsampled(points, minute)].map(({ time, mean, max }) => [time - T0, mean[0], max[0]])).toEqual([
      [0, 1, 1],
      [60_000, 3, 4],
      [240_000, 9, 9],
    ])
  })

  it('gives a bucket twice where time runs backwards', () => {
    const points = [one(T0, 1), one(T0 + minute, 2), one(T0, 3)]
    expect([...downsampled(points, minute)].map(({ time }) => time - T0)).toEqual([0, minute, 0])
  })

  it('keeps sums, never leaves the range of what it averages, and has no empty bucket', () =>
    fc.assert(
      fc.property(
        fc.array(fc.record({ gap: fc.nat(400_000), value: fc.nat(1_000_000) }), { minLength: 1 }),
        fc.constantFrom(minute, 5 * minute, 15 * minute),
        (steps, resolution) => {
          let time = T0
          const points = steps.map(({ gap, value }) => {
            time += gap
            return one(time, value)
          })
          const buckets = [...downsampled(points, resolution)]
          expect(new Set(buckets.map((bucket) => bucket.time)).size).toBe(buckets.length)
          for (const bucket of buckets) {
            const inside = points.filter(({ time: at }) => at >= bucket.time && at < bucket.time + resolution)
            const values = inside.map(({ mean }) => mean[0])
            expect(inside.length).toBeGreaterThan(0)
            expect(bucket.time % resolution).toBe(0)
            expect(bucket.mean[0]).toBeCloseTo(values.reduce((sum, value) => sum + value, 0) / values.length, 6)
            expect(bucket.max[0]).toBe(Math.max(...values))
          }
          const covered = buckets.reduce(
            (sum, { time: at }) => sum + points.filter((p) => p.time >= at && p.time < at + resolution).length,
            0,
          )
          expect(covered).toBe(points.length)
        },
      ),
    ))

  it('divides whole numbers of pods as integers, and tells maxima of buckets only', () => {
    const series = seriesOf(2, 1000, (at) => [1, 4][at] ?? 0)
    expect(pointsOf(series, { ...ask(''), endMs: T0 + minute, resolution: '1m' }, true)).toEqual([
      { t: '2026-01-01T00:00:00Z', cpu: 2, mem: 5, disk: 7, cpu_max: 4, mem_max: 8, disk_max: 12 },
    ])
    expect(pointsOf(series, { ...ask(''), startMs: T0, endMs: T0 }, true)).toEqual([
      { t: '2026-01-01T00:00:00Z', cpu: 1, mem: 2, disk: 3 },
    ])
  })
})

describe('tiers', () => {
  it('keep each measurement of an hour, and minutes of a day, told once and in order', () => {
    const series = seriesOf(12 * 60 * 3, 5000) // three hours
    const all = [...series.between(T0, T0 + 3 * 60 * minute)]
    expect(all.filter(({ count }) => count === 1)).toHaveLength(720)
    expect(all.filter(({ count }) => count === 12).length).toBe(120)
    expect(all.reduce((sum, { count }) => sum + count, 0)).toBe(12 * 60 * 3)
    expect(all.map(({ time }) => time)).toEqual(all.map(({ time }) => time).toSorted((a, b) => a - b))
  })

  it('tell a month in quarters of an hour, with the highest of each, in less than 0.4 MB', () => {
    const series = seriesOf(35 * 24 * 60, minute, (at) => (at % 1440 === 0 ? 100 : 1))
    const end = T0 + 35 * 24 * 60 * minute
    const all = pointsOf(series, { ...ask(''), startMs: T0, endMs: end, resolution: '15m' }, false)
    expect(all.length).toBeGreaterThanOrEqual(30 * 96)
    expect(all.length).toBeLessThanOrEqual(30 * 96 + 2)
    expect(all.filter(({ cpu_max }) => cpu_max === 100)).toHaveLength(30)
    expect(series.bytes).toBeLessThan(400_000)
  })

  it('never tell a measurement twice, whatever comes when', () =>
    fc.assert(
      fc.property(fc.array(fc.nat(40 * minute), { maxLength: 300 }), (gaps) => {
        const series = new Series()
        let time = T0
        for (const gap of gaps) {
          time += gap + 1
          series.add(time, [1, 1, 1], always)
        }
        const told = [...series.between(T0, time)].reduce((sum, { count }) => sum + count, 0)
        expect(told).toBe(gaps.length)
      }),
    ))

  it('are the same after they went through numbers', () => {
    const series = seriesOf(2000, 7000, (at) => at % 91)
    const restored = Series.restore(JSON.parse(JSON.stringify(series.dump())), always)
    for (const each of [series, restored]) each.add(T0 + 2000 * 7000, [5, 6, 7], always)
    const range = [T0, T0 + 3000 * 7000] as const
    expect([...restored.between(...range)]).toEqual([...series.between(...range)])
  })
})

describe('the history of a fleet', () => {
  const pods = [{ namespace: 'core', name: 'api', node: 'n1' }]
  const at = (time: number, more = {}) => monitored({ usage: { n1: {} }, pods, at: time, ...more })
  const open = (maxBytes = 2 ** 26) => new UsageHistory({ maxBytes, wants: always })
  const timesOf = (history: UsageHistory, entity: 'node' | 'pod', name: string) =>
    [...(history.find('west', entity, name)?.between(0, T0 * 2) ?? [])].map(({ time }) => time - T0)

  it('records each read once, at its time, and no point of a node that is not measured', () => {
    const history = open()
    for (const cluster of [at(T0), at(T0), at(T0 + 5000), at(T0 + 10_000, { usage: {} })])
      atOnce(history.record(cluster))
    expect(timesOf(history, 'node', 'n1')).toEqual([0, 5000])
    expect(timesOf(history, 'pod', 'core/api')).toEqual([0, 5000, 10_000])
  })

  it('stays within its bound however many pods come and go', () => {
    const history = open(2 ** 20)
    for (let round = 0; round < 40; round++) {
      const names = Array.from({ length: 100 }, (_, i) => ({ namespace: 'core', name: `r${round}-p${i}` }))
      atOnce(history.record(at(T0 + round * 5 * minute, { pods: names })))
      expect(history.bytes).toBeLessThan(2 ** 20 * 1.3)
    }
    expect(history.counts.dropped).toBeGreaterThan(0)
    expect(history.find('west', 'pod', 'core/r39-p0')).toBeDefined()
  })

  it('looks for room once for all pods of a read', () => {
    const history = open(2 ** 22)
    const names = Array.from({ length: 12_000 }, (_, i) => ({ namespace: 'core', name: `p${i}` }))
    const before = process.cpuUsage()
    atOnce(history.record(at(T0, { pods: names })))
    const tookMs = cpuMs(before)
    expect(history.counts.refused).toBeGreaterThan(5000)
    expect(tookMs).toBeLessThan(1500)
  })

  it('forgets clusters that are gone, and gives their room back', () => {
    const history = open()
    atOnce(history.record(at(T0)))
    history.prune(new Set(), T0)
    expect([[...history.each('west', 'node', always)].filter(Boolean), history.bytes]).toEqual([[], 0])
  })

  describe('over a restart', () => {
    let directory: string
    beforeEach(() => {
      directory = mkdtempSync(join(tmpdir(), 'usage-history-'))
    })
    afterEach(() => rmSync(directory, { recursive: true, force: true }))
    const files = (history: UsageHistory) =>
      HistoryFiles.open({ directory, history, maxBytes: 2 ** 26, logger: silentLogger, clock: systemClock })

    it('is what it was, from the copy and the points after it', async () => {
      const first = open()
      {
        await using kept = await files(first)
        atOnce(first.record(at(T0)))
        await kept.save()
        await kept.copy()
        atOnce(first.record(at(T0 + 5000)))
        await kept.save()
        atOnce(first.record(at(T0 + 10_000)))
      }
      const second = open()
      await using _kept = await files(second)
      expect(timesOf(second, 'node', 'n1')).toEqual([0, 5000, 10_000])
      atOnce(second.record(at(T0 + 10_000))) // the state that was restored too
      atOnce(second.record(at(T0 + 15_000)))
      expect(timesOf(second, 'pod', 'core/api')).toEqual([0, 5000, 10_000, 15_000])
    })
  })
})
