import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { openHistory } from '#history'
import type { FillingView } from '#http'
import { Ingester } from '#ingest'
import { type ClusterName, metricPrefix, minutes, parseClusterName, systemClock } from '#model'
import { openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { aBatch, aNode, complete, facts } from '../../pipeline/state/test/fleet-words.ts'
import { fillPast, pastTimes } from './demo-past.ts'

const HOUR = minutes(60)
const DAY = 24 * HOUR
const metric = `${metricPrefix.cluster}cpu_used`
const east: ClusterName = parseClusterName('prod-east')
// Ten minutes ago, and no whole multiple of anything.
const known = Math.floor(Date.now() / minutes(1)) * minutes(1) - minutes(10) - 7_000

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'past-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** A hub's write path over real files, that has read a cluster of two nodes once. */
async function aHub() {
  const log = await openLog({ directory: join(directory, 'log') })
  const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 5 })
  const history = await openHistory({ kind: 'duckdb', directory: join(directory, 'history') })
  const events = openEvents({ kind: 'in-process' })
  const ingester = await Ingester.open({ log, state, events, history })
  await ingester.connect(east, facts())
  const nodes = ['a', 'b'].map((name) => aNode(name, { used: { cpuCores: 2, memoryBytes: 4e9 } }))
  const read = async (at: number) => {
    await ingester.accept({
      batch: aBatch(east, ingester.nextSequence(east), [complete('node', ...nodes)], { collectedAt: at }),
    })
    await ingester.flushed()
  }
  const filling = new Map<string, FillingView>()
  const fill = (signal = new AbortController().signal) =>
    fillPast(
      {
        filling,
        known: new Map([[east, known]]),
        reachMs: 30 * DAY,
        state,
        ingester,
        history,
        clock: { ...systemClock, now: () => known + 3_000 },
      },
      signal,
    )
  const cpu = async (from: number, to: number, stepMs: number) => {
    await ingester.flushed('history')
    const question = { cluster: east, scope: 'cluster', metrics: [metric], from, to, stepMs, maxSeries: 9 } as const
    return (await history.range(question)).series[0]?.values ?? []
  }
  const spans = async () => {
    await ingester.flushed('history')
    return history.spans({ cluster: east, from: 0, to: Date.now() })
  }
  return {
    ...{ ingester, history, state, read, fill, filling, cpu, spans },
    async [Symbol.asyncDispose]() {
      for (const one of [ingester, events, history, state, log]) await one[Symbol.asyncDispose]()
    },
  }
}

describe('the past of the demo', () => {
  it('is 30 days to the moment the cluster became known, nearer together the younger it is', () => {
    const times = pastTimes(known)
    expect(times[0]).toBeLessThan(known)
    expect(times[0]).toBeGreaterThanOrEqual(known - 30_000)
    expect(times.at(-1)).toBeLessThanOrEqual(known - 30 * DAY + minutes(30))
    expect([...times].sort((left, right) => right - left)).toEqual(times)
    expect(new Set(times).size).toBe(times.length)
    const steps = times.slice(1).map((at, i) => (times[i] ?? 0) - at)
    expect(Math.max(...steps.slice(0, 110))).toBe(30_000)
    expect(Math.max(...steps)).toBe(minutes(30))
  })

  it('comes to history marked as what it is, and joins what is measured', async () => {
    await using hub = await aHub()
    await hub.read(known + 2_000)
    expect(await hub.fill()).toBe(pastTimes(known).length)
    expect(await hub.spans()).toMatchObject([{ kind: 'simulated', to: pastTimes(known)[0] }])
    const hour = await hub.cpu(known - HOUR + 30_000, known + 2_000, 30_000)
    expect(hour.filter((value) => value === null)).toHaveLength(0)
    // 4 cores are measured: the newest of the past is near, and nothing of the hour jumps.
    expect(hour.at(-2)).toBeGreaterThan(3.7)
    expect(hour.at(-2)).toBeLessThan(4.3)
    const month = await hub.cpu(known - 29 * DAY, known, DAY)
    expect(month.filter((value) => value === null)).toHaveLength(0)
    // Yesterday is busier than the same day of the week four weeks before.
    expect(month).toHaveLength(30)
    expect(month[0]).toBeLessThan(month.at(-2) ?? 0)
    // What is true now is what was measured, whatever came after it.
    expect(hub.state.cluster('prod-east')?.status.lastSyncAt).toBe(known + 2_000)
  })

  it('comes once: a restart goes on where the last one ended, and fills no gap of its own', async () => {
    {
      await using hub = await aHub()
      await hub.read(known + 2_000)
      const stop = new AbortController()
      const filling = hub.fill(stop.signal)
      while (hub.ingester.received(east, 'simulated-past').length === 0) await systemClock.sleep(1)
      stop.abort()
      await filling.catch(() => undefined)
      expect((await hub.spans())[0]?.count).toBeLessThan(pastTimes(known).length)
    }
    {
      await using hub = await aHub()
      await hub.fill()
      expect(await hub.spans()).toMatchObject([{ kind: 'simulated', count: pastTimes(known).length }])
    }
    await using hub = await aHub()
    await hub.read(known + minutes(9))
    expect(await hub.fill()).toBe(0)
    const since = await hub.cpu(known, known + minutes(9), minutes(1))
    expect(since.filter((value) => value !== null)).toHaveLength(2)
  })

  it('says while it comes how far it is there, and no longer than it comes', async () => {
    await using hub = await aHub()
    const times = pastTimes(known)
    const told: number[] = []
    const looks: Promise<void>[] = []
    const { filling } = hub
    const set = filling.set.bind(filling)
    filling.set = (cluster, view) => {
      if (view.reached !== told.at(-1)) told.push(view.reached)
      // What is said to be there is there.
      if (view.reached < known)
        looks.push(hub.cpu(view.reached, view.reached, 1000).then((values) => expect(values).not.toContain(null)))
      return set(cluster, view)
    }
    const filled = hub.fill()
    await expect.poll(() => hub.filling.get(east)).toEqual({ from: times.at(-1), reached: known, to: known })
    await hub.read(known + 2_000)
    await filled
    await Promise.all(looks)
    expect(told.length).toBeGreaterThan(2)
    expect(told).toEqual(told.toSorted((a, b) => b - a))
    expect(hub.filling.size).toBe(0)
    await hub.fill()
    expect(hub.filling.size).toBe(0)
  })

  it('says after a restart how far it was there before', async () => {
    {
      await using hub = await aHub()
      await hub.read(known + 2_000)
      const stop = new AbortController()
      const filling = hub.fill(stop.signal)
      while (hub.ingester.received(east, 'simulated-past').length === 0) await systemClock.sleep(1)
      stop.abort()
      await filling.catch(() => undefined)
    }
    await using hub = await aHub()
    const stop = new AbortController()
    let first: FillingView | undefined
    const set = hub.filling.set.bind(hub.filling)
    hub.filling.set = (cluster, filling) => {
      first ??= filling
      return set(cluster, filling)
    }
    await hub.fill(stop.signal)
    expect(first?.to).toBe(known)
    expect(first?.reached).toBeLessThan(known)
  })

  it('is none where the cluster is never read, and ends at once when the hub stops', async () => {
    await using hub = await aHub()
    expect(await hub.fill(AbortSignal.timeout(50))).toBe(0)
    expect(await hub.spans()).toEqual([])
  })
})
