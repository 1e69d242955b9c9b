import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type HistoryStore, openHistory } from '#history'
import type { HistoryView } from '#http'
import { type Clock, parseClusterName, type SampleSet, systemClock } from '#model'
import { Victoria, victoriaPath } from './test/victoria.ts'
import { aNode, aWorld, complete, start } from './test/world.ts'

const clock: Clock = { now: () => start, sleep: systemClock.sleep }

/** The store, and an end to it and to all it needs. */
async function open(
  driver: 'duckdb' | 'victoria',
): Promise<{ store: HistoryStore; settle: () => Promise<void>; end: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'api-history-'))
  const victoria = driver === 'victoria' && victoriaPath ? await Victoria.start(victoriaPath) : undefined
  if (driver === 'victoria' && !victoria) throw new Error('victoria-metrics is not on the path')
  const store = await openHistory(
    victoria ? { kind: 'victoria', endpoint: victoria.url, directory, clock } : { kind: 'duckdb', directory, clock },
  )
  // VictoriaMetrics shows what it took a moment later, and not all of it at once.
  const settle = async () => {
    if (victoria) await fetch(`${victoria.url}/internal/force_flush`)
  }
  const end = async () => {
    await store[Symbol.asyncDispose]()
    await victoria?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  }
  return { store, settle, end }
}

const samplesAt = (at: number, value: number): SampleSet => ({
  cluster: parseClusterName('west'),
  at,
  source: 'push',
  repaired: at < start - 540_000,
  groups: [
    {
      scope: 'node',
      keys: ['a', 'b'],
      columns: [
        { metric: 'clusterpulse_node_cpu_used', values: Float64Array.of(value, 100 + value) },
        { metric: 'clusterpulse_node_pods_total', values: Float64Array.of(value, Number.NaN) },
      ],
    },
    {
      scope: 'cluster',
      keys: [''],
      columns: [{ metric: 'clusterpulse_cluster_cpu_used', values: Float64Array.of(value * 2) }],
    },
  ],
})

describe.each(['duckdb', 'victoria'] as const)('history out of %s (skipped without its server)', (driver) => {
  const missing = driver === 'victoria' && victoriaPath === undefined && process.env.CI_REQUIRE_ALL !== '1'

  it.skipIf(missing)('is what was kept, to the last sample, with its spans', async () => {
    const { store, settle, end } = await open(driver)
    try {
      const records = Array.from({ length: 21 }, (_, n) => samplesAt(start - (20 - n) * 30_000, n))
      await store.append(
        records.map((samples) => ({ kind: 'samples' as const, samples })),
        0,
      )
      await settle()
      await using world = await aWorld({}, { history: store })
      await world.connect('west')
      await world.batch('west', [complete('node', [aNode('a'), aNode('b')])])
      const historyOf = async (url: string): Promise<HistoryView> => {
        const { status, body } = await world.get(`/api/${url}`)
        expect(status, JSON.stringify(body)).toBe(200)
        return body as HistoryView
      }
      const cluster = 'v1/clusters/west/metrics/history?range=10m&metric=cpu_used,cpu_capacity'
      await expect
        .poll(async () => {
          world.clock.at += 2000
          const { series } = await historyOf(`${cluster}&end=${start / 1000}`)
          return series[0]?.points.filter(([, value]) => value !== null).length
        })
        .toBe(21)
      const view = await historyOf(`${cluster}&end=${start / 1000}&step=1m`)
      expect(view).toMatchObject({ start: start / 1000 - 600, end: start / 1000, step: 60 })
      expect(view.series).toEqual([
        {
          metric: 'cpu_used',
          labels: { cluster: 'west' },
          points: Array.from({ length: 11 }, (_, n) => [start / 1000 - 600 + n * 60, n === 10 ? 40 : n * 4 + 1]),
        },
      ])
      expect(view.spans).toMatchObject([{ kind: 'repaired', from: start - 600_000, count: 2 }])
      // Where the range reaches back beyond all that is kept, the answer says where that begins; else it says nothing.
      expect(view.begins).toBeUndefined()
      const longer = await historyOf(`${cluster.replace('10m', '1h')}&end=${start / 1000}&step=1m`)
      expect(longer.begins).toBe(start - 600_000)
      const ofNode = await historyOf(
        `v1/clusters/west/nodes/b/metrics/history?metric=cpu_used&range=1h&end=${start / 1000}&step=1m`,
      )
      expect(ofNode.begins).toBe(start - 600_000)

      const nodes = await historyOf(`v2/clusters/west/history?metric=pods_total,cpu_used&range=5m&end=${start / 1000}`)
      expect(nodes.series.map(({ metric, labels, points }) => [metric, labels.node, points.at(-1)?.[1]])).toEqual([
        ['pods_total', 'a', 20],
        ['cpu_used', 'a', 20],
        ['cpu_used', 'b', 120],
      ])
      world.clock.at = start
      const document = (await world.get('/api/v1/clusters/west/nodes/b?include_metrics=true')).body as {
        metrics_history: unknown[]
      }
      expect(document.metrics_history).toEqual([])
      const ofA = (await world.get('/api/v1/clusters/west/nodes/a?include_metrics=true')).body as {
        metrics_history: unknown[]
      }
      expect(ofA.metrics_history).toHaveLength(21)
      expect(ofA.metrics_history[0]).toMatchObject({ timestamp: '2026-01-01T00:00:00Z', pods_total: 20 })

      const query = await world.get(`/api/v1/query?query=sum(clusterpulse_node_cpu_used)&time=${start / 1000}`)
      if (driver === 'duckdb')
        expect(query).toMatchObject({
          status: 501,
          body: { code: 'promql_off', status: 'error', errorType: 'unavailable' },
        })
      else expect(query.body).toMatchObject({ data: { result: [{ value: [start / 1000, '140'] }] } })
    } finally {
      await end()
    }
  })
})
