import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { KubeClient, KubeObject, Resource } from '#kube'
import { type CompiledSource, compileMetricSource } from '#metricsource'
import { type Batch, type Plan, parseClusterName } from '#model'
import { stepOf } from '../collect/steps.ts'
import { Agent, type AgentOptions } from './agent.ts'
import { type BatchRecord, decodeRecord, encodeRecord } from './buffer-record.ts'
import { Fresh } from './fresh.ts'
import { laneOf } from './sources.ts'
import { MemoryHub } from './testing/memory-hub.ts'
import { countingCollector } from './testing/small-cluster.ts'
import { VirtualTime } from './testing/virtual-time.ts'
import { thin } from './thinning.ts'

const START = Date.UTC(2026, 10, 1)
const cluster = parseClusterName('west')

function aSource(name: string, interval: number): CompiledSource {
  const { source, findings } = compileMetricSource(
    {
      metadata: { name, namespace: 'clusterpulse' },
      spec: {
        source: { apiVersion: 'example.com/v1', kind: 'Widget' },
        fields: [{ name: 'size', path: '.spec.size', type: 'integer' }],
        collection: { intervalSeconds: interval },
      },
    },
    START,
  )
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}

describe('an agent with sources in its plan', () => {
  let directory = ''
  let time = new VirtualTime(START)
  const open: Agent[] = []
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'agent-sources-'))
    time = new VirtualTime(START)
  })
  afterEach(async () => {
    for (const agent of open.splice(0)) await stopped(agent)
    await rm(directory, { recursive: true, force: true })
  })

  async function stopped(agent: Agent): Promise<void> {
    let isOver = false
    const stopping = agent.stop().finally(() => {
      isOver = true
    })
    while (!isOver) await time.advance(100, () => new Promise((resolve) => setImmediate(resolve)))
    await stopping
  }

  let count = 0
  /** Widgets of which each reading finds one more. */
  const kube = (): KubeClient => {
    const client = {
      ping: () => Promise.resolve(),
      find: async () => ({ plural: 'widgets', namespaced: true }),
      async *list() {
        count++
        const items = Array.from({ length: count }, (_, i) => ({
          metadata: { namespace: 'a', name: `w${i}` },
          spec: { size: i },
        }))
        yield { items, resourceVersion: '1', next: '' }
      },
    }
    return client as unknown as KubeClient // no more of it is asked
  }

  async function anAgent(hub: MemoryHub, options: Partial<AgentOptions> = {}): Promise<Agent> {
    const agent = await Agent.open({
      cluster,
      version: '1',
      transport: hub,
      token: () => Promise.resolve('t'),
      kube,
      directory,
      plan: { intervalMs: 60_000 },
      collectors: [countingCollector()],
      clock: time,
      monotonic: time.monotonic,
      random: () => 0.5,
      ...options,
    })
    open.push(agent)
    return agent
  }

  const pass = (ms: number, agent: Agent, hub: MemoryHub) =>
    time.advance(ms, async () => {
      let same = 0
      for (let last = ''; same < 6; ) {
        await new Promise((resolve) => setImmediate(resolve))
        const { buffer, collection, uplink, sources } = agent.status()
        const now = JSON.stringify([hub.arrivals.size, buffer.batches, collection.rounds, uplink.sentBytes, sources])
        same = now === last && !agent.isBusy ? same + 1 : 0
        last = now
      }
    })

  const planOf = (...sources: readonly unknown[]): Plan => ({
    version: `p${sources.length}`,
    intervalMs: 60_000,
    timeoutMs: 5_000,
    operatorScanIntervalMs: 60_000,
    sources,
  })

  it('collects them by their own interval, between the rounds, and sends what changed', async () => {
    count = 0
    const hub = new MemoryHub({ cluster, now: () => time.now() })
    hub.plan = planOf(aSource('widgets', 30).definition, { neither: 'here nor there' })
    const agent = await anAgent(hub)
    await pass(100_000, agent, hub)
    const arrived = [...hub.arrivals.values()]
    expect(arrived.map(({ batch }) => batch.sequence)).toEqual(arrived.map((_, i) => i + 1))
    expect(arrived.every(({ backfill }) => !backfill)).toBe(true)
    const partial = arrived.filter(({ batch }) => batch.partial)
    expect(partial.length).toBeGreaterThanOrEqual(3)
    for (const { batch } of partial) expect([batch.parts, batch.failure]).toEqual([[], undefined])
    const rows = partial.at(-1)?.view.tables?.get('clusterpulse/widgets')
    expect(rows?.size).toBe(count)
    expect(rows?.column('size')?.(count - 1)).toBe(count - 1)
    // A difference, not the whole.
    expect(partial.at(-1)?.batch.tables).toEqual([expect.objectContaining({ outcome: 'changed' })])
    expect(agent.status().sources).toEqual([
      expect.objectContaining({ source: 'clusterpulse/widgets', outcome: 'complete', rows: count }),
    ])
    // The plan without them ends them.
    hub.say({
      payload: {
        case: 'plan',
        value: { version: 'p0', json: new TextEncoder().encode(JSON.stringify({ ...planOf(), version: 'p0' })) },
      },
    })
    await pass(1_000, agent, hub)
    expect(agent.status().sources).toEqual([])
  })

  it('reads rows of compiled-in kinds with the rounds, keeps none while nobody listens, and reads them again then', async () => {
    count = 0
    const hub = new MemoryHub({ cluster, now: () => time.now() })
    hub.plan = { ...planOf(), version: 'rows', resources: ['services', 'of a newer hub'] }
    const rows = ({ batch }: { readonly batch: Batch }) => batch.tables?.map(({ source }) => source)
    const agent = await anAgent(hub, { kube: () => ({ ...kube(), serves: () => Promise.resolve(true) }) as KubeClient })
    await pass(100_000, agent, hub)
    const live = [...hub.arrivals.values()]
    expect(live.filter(({ batch }) => !batch.partial).every((one) => rows(one) === undefined)).toBe(true)
    expect(live.map(rows)).toContainEqual(['services'])
    hub.up = false
    hub.cut()
    await pass(300_000, agent, hub)
    const before = new Set(hub.arrivals.keys())
    hub.up = true
    await pass(50_000, agent, hub)
    const after = [...hub.arrivals.values()].filter(({ batch }) => !before.has(batch.sequence))
    expect(after.filter(({ backfill }) => backfill).every((one) => rows(one) === undefined)).toBe(true)
    expect(after.filter(({ backfill }) => !backfill).map(rows)).toContainEqual(['services'])
  })

  it('reads what nodes and pods use as often as its plan says, without a restart, and keeps none of it while nobody listens', async () => {
    count = 0
    const hub = new MemoryHub({ cluster, now: () => time.now() })
    const resources = ['node-usage', 'pod-usage']
    hub.plan = { ...planOf(), version: 'slow', resources, refreshMs: 60_000 }
    const asked: string[] = []
    const measured = (): KubeClient =>
      ({
        ping: () => Promise.resolve(),
        serves: () => Promise.resolve(true),
        async *list({ plural, fromJson }: Resource<unknown>) {
          const cpu = `${++count}m`
          const node = { metadata: { name: 'n1' }, usage: { cpu, memory: '1Ki' } } as unknown as KubeObject // as an API server answers
          yield { items: plural === 'nodes' ? [fromJson?.(node)] : [], resourceVersion: '1', next: '' }
        },
        listAll: async () => [{ metadata: { name: 'n1' } }],
        request: async (_: string, path: string) => {
          asked.push(path)
          return { node: { fs: { capacityBytes: 10, usedBytes: 4 } } }
        },
      }) as unknown as KubeClient // no more of it is asked
    const agent = await anAgent(hub, { kube: measured })
    const usages = () =>
      [...hub.arrivals.values()].filter(({ batch }) => batch.tables?.some(({ source }) => source === 'node-usage'))
    await pass(10_000, agent, hub)
    const slow = usages().length
    expect(slow).toBeGreaterThan(0)
    expect(usages().at(-1)?.view.tables?.get('node-usage')?.row(0).values).toMatchObject({
      cpuText: '1m',
      diskUsed: null,
    })
    const say = (plan: Plan) =>
      hub.say({
        payload: {
          case: 'plan',
          value: { version: plan.version, json: new TextEncoder().encode(JSON.stringify(plan)) },
        },
      })
    say({ ...planOf(), version: 'fast', resources, refreshMs: 5_000, kubelets: 'proxy' })
    await pass(30_000, agent, hub)
    expect(usages().length - slow).toBeGreaterThanOrEqual(5)
    expect(usages().at(-1)?.view.tables?.get('node-usage')?.row(0).values).toMatchObject({
      diskCapacity: 10,
      diskUsed: 4,
    })
    expect(asked[0]).toBe('/api/v1/nodes/n1/proxy/stats/summary')
    // Kubelets are asked once in a quarter of a minute, for both tables.
    expect(asked.length).toBeLessThanOrEqual(3)

    hub.up = false
    hub.cut()
    const before = usages().length
    await pass(120_000, agent, hub)
    hub.up = true
    await pass(40_000, agent, hub)
    expect(
      usages()
        .slice(before)
        .some(({ backfill }) => backfill),
    ).toBe(false)
    expect(usages().length).toBeGreaterThan(before)
    say({ ...planOf(), version: 'none' })
    await pass(1_000, agent, hub)
    expect(agent.status().sources).toEqual([])
  })

  it('brings the newest round and the newest of each source first after a time without a hub', async () => {
    count = 0
    const hub = new MemoryHub({ cluster, now: () => time.now() })
    hub.plan = planOf(aSource('one', 30).definition, aSource('two', 90).definition)
    const agent = await anAgent(hub)
    await pass(20_000, agent, hub)
    hub.up = false
    hub.cut()
    await pass(600_000, agent, hub)
    const before = new Set(hub.arrivals.keys())
    hub.up = true
    await pass(400_000, agent, hub)
    expect(agent.status().buffer.batches).toBe(0)
    const after = [...hub.arrivals.values()].filter(({ batch }) => !before.has(batch.sequence))
    const live = after.filter(({ backfill }) => !backfill)
    const [first, ...others] = live.map(({ batch }) => batch)
    // Whatever is older than these came as backlog, so they must hold all there is to know.
    const newest = (sequence: number) => Math.min(...live.map(({ batch }) => batch.sequence)) <= sequence
    const backlog = after.filter(({ backfill }) => backfill).map(({ batch }) => batch)
    expect(backlog.length).toBeGreaterThan(10)
    const before0 = backlog.filter(({ sequence }) => newest(sequence))
    for (const old of before0) {
      const isSaidLater = old.partial
        ? old.tables?.every(({ source }) => saysLater(live, old, (batch) => speaksOf(batch, source)))
        : saysLater(live, old, (batch) => !batch.partial)
      expect(isSaidLater, `batch ${old.sequence} is said again by a live one`).toBe(true)
    }
    const firsts = [first, ...others].slice(0, 4)
    expect(firsts.some((batch) => batch && !batch.partial)).toBe(true)
    for (const source of ['clusterpulse/one', 'clusterpulse/two'])
      expect(
        firsts.some((batch) => batch && speaksOf(batch, source)),
        source,
      ).toBe(true)
  })
})

const speaksOf = ({ tables = [] }: Batch, source: string) => tables.some((part) => part.source === source)
const saysLater = (live: readonly { readonly batch: Batch }[], old: Batch, says: (batch: Batch) => boolean): boolean =>
  live.some(({ batch }) => batch.sequence > old.sequence && says(batch))

const batchOf = (sequence: number, sources: readonly string[] | undefined): Batch =>
  sources
    ? {
        ...stepOf(
          { cluster, source: 'push', collectedAt: 0 },
          sources.map((source) => ({ source, hash: '', durationMs: 0, outcome: 'absent', code: '', message: '' })),
        ),
        sequence,
      }
    : { cluster, sequence, source: 'push', collectedAt: 0, durationMs: 0, parts: [] }

const recordOf = (sequence: number, lane = 0): BatchRecord => ({
  kind: 'batch',
  sequence,
  collectedAt: 1,
  stamp: 2,
  bootId: 'boot',
  compression: 'none',
  bodyBytes: 3,
  body: Buffer.from('abc'),
  ...(lane > 0 && { lane }),
})

describe('what is fresh', () => {
  it('is the newest round, and for each source the newest batch that speaks of it', () =>
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }), { nil: undefined })),
        (drawn) => {
          const fresh = new Fresh()
          for (const [i, sources] of drawn.entries()) fresh.add(batchOf(i + 1, sources), recordOf(i + 1), false)
          const wanted = new Set<number>()
          const rounds = drawn.flatMap((sources, i) => (sources ? [] : [i + 1]))
          if (rounds.length > 0) wanted.add(Math.max(...rounds))
          for (const name of ['a', 'b', 'c'] as const) {
            const speaking = drawn.flatMap((sources, i) => (sources?.includes(name) ? [i + 1] : []))
            if (speaking.length > 0) wanted.add(Math.max(...speaking))
          }
          expect(fresh.sequences()).toEqual([...wanted].sort((a, b) => a - b))
        },
      ),
    ))
})

describe('lanes', () => {
  it('are one for the rounds, and one for each set of sources', () => {
    expect(laneOf(batchOf(1, undefined))).toBe(0)
    expect(laneOf(batchOf(1, ['a', 'b']))).toBe(laneOf(batchOf(2, ['b', 'a'])))
    expect(laneOf(batchOf(1, ['a']))).not.toBe(laneOf(batchOf(1, ['b'])))
  })

  it('are kept with their batches on disk', () => {
    for (const lane of [0, 1, 2 ** 32 - 1]) {
      const record = recordOf(7, lane)
      expect(decodeRecord(encodeRecord(record))).toEqual(record)
    }
  })

  it('are thinned each for itself: no round goes for the sake of a source', () => {
    const held = [0, 5, 0, 5, 0, 6].map((lane, i) => ({ sequence: i, collectedAt: i, kind: 'batch' as const, lane }))
    const { kept } = thin(held, 1000, () => false)
    expect(kept.map(({ sequence }) => sequence)).toEqual([0, 1, 5])
  })
})
