import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type KubeClient, KubeError, type Resource } from '#kube'
import { type CompiledSource, ownCollector } from '#metricsource'
import { parseClusterName, type RowsPart, systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { until } from '../../platform/kube/testing/scripted-server.ts'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { VirtualTime } from '../agent/testing/virtual-time.ts'
import { aMember, aSource, widgetsIn } from '../metricsource/run/testing/member.ts'
import { type ColumnSpec, defineResource } from '../resources/define.ts'
import { CollectorLoop, type CollectorLoopOptions } from './collector-loop.ts'
import { listOf } from './fold.ts'

const cluster = parseClusterName('west')
const settled = async () => {
  for (let i = 0; i < 12; i++) await new Promise((resolve) => setImmediate(resolve))
}

const named = (name: string, over: Partial<CompiledSource['collection']> = {}): CompiledSource => {
  const source = aSource({ name })
  return { ...source, collection: { ...source.collection, ...over } }
}

interface Read {
  readonly source: string
  readonly at: number
  end: number
  failed: boolean
}

/** A loop in a time of its own; every source reads a resource of its own name, for as long and as well as it is told. */
function aLoop(over: { readonly random?: () => number; readonly turn?: CollectorLoopOptions['turn'] } = {}) {
  const time = new VirtualTime(1_000_000)
  const reads: Read[] = []
  const told: { readonly part: RowsPart; readonly at: number }[] = []
  const batches: number[] = []
  const behaviour = new Map<string, { readonly durationMs: number; readonly fails: boolean }>()
  const kube = {
    ping: async () => undefined,
    find: async (group: string) => ({ plural: group, namespaced: true }),
    async *list(resource: { readonly group: string }, { signal }: { readonly signal: AbortSignal }) {
      const { durationMs, fails } = behaviour.get(resource.group) ?? { durationMs: 0, fails: false }
      const read: Read = { source: resource.group, at: time.now(), end: Number.NaN, failed: fails }
      reads.push(read)
      await time.sleep(durationMs, signal)
      signal.throwIfAborted()
      read.end = time.now()
      if (fails) throw new KubeError('unreachable', 'nobody answers')
      yield { items: [], resourceVersion: '1', next: '' }
    },
  } as unknown as KubeClient // no more of it is asked
  const loop = new CollectorLoop({
    cluster,
    source: 'pull',
    kube: async () => kube,
    onBatch: async ({ tables: parts = [] }) => {
      batches.push(parts.length)
      for (const part of parts) told.push({ part, at: time.now() })
    },
    clock: time,
    random: over.random ?? (() => 0),
    ...(over.turn && { turn: over.turn }),
    logger: silentLogger,
  })
  const source = (name: string, collection: Partial<CompiledSource['collection']> = {}): CompiledSource => {
    const one = named(name, collection)
    const target = { ...one.target, group: name }
    return { ...one, target, targets: [target] }
  }
  const end = async () => {
    const stopped = loop.stop()
    await time.advance(1_000, settled)
    await stopped
  }
  return {
    loop,
    time,
    reads,
    told,
    batches,
    behaviour,
    source,
    end,
    advance: (ms: number) => time.advance(ms, settled),
  }
}

describe('the schedule of a loop', () => {
  it('reads each source by its own interval, and does not drift', async () => {
    const { loop, reads, source, advance, end, behaviour } = aLoop()
    behaviour.set('slow', { durationMs: 7_000, fails: false })
    loop.replan([source('slow', { intervalMs: 60_000 }), source('quick', { intervalMs: 30_000 })].map(ownCollector))
    await advance(200_000)
    const startsOf = (name: string) => reads.filter((read) => read.source === name).map(({ at }) => at - 1_000_000)
    expect(startsOf('slow')).toEqual([0, 60_000, 120_000, 180_000])
    expect(startsOf('quick')).toEqual([0, 30_000, 60_000, 90_000, 120_000, 150_000, 180_000])
    await end()
  })

  it('gives each of many that began together a place of its own, soon after its first', async () => {
    let n = 0
    // Evenly over [0, 1), without a pattern between draws.
    const random = () => (++n * 0.6180339887) % 1
    const { loop, reads, source, advance, end } = aLoop({ random })
    const names = Array.from({ length: 30 }, (_, at) => `s${at}`)
    loop.replan(names.map((name) => ownCollector(source(name, { intervalMs: 30_000 }))))
    await advance(200_000)
    const startsOf = (name: string) => reads.filter((read) => read.source === name).map(({ at }) => at - 1_000_000)
    for (const name of names) {
      const starts = startsOf(name)
      expect(starts[0]).toBeLessThanOrEqual(5_000)
      for (const [i, at] of starts.entries()) {
        // The second takes its place, within half an interval of when it would have come.
        if (i > 0) expect(at - (starts[i - 1] ?? 0)).toBeLessThanOrEqual(45_000 + 2_000)
        if (i > 0) expect(at - (starts[i - 1] ?? 0)).toBeGreaterThanOrEqual(15_000)
      }
    }
    // In every tenth of an interval some, in none a third of them.
    const tenths = Array.from({ length: 10 }, () => 0)
    for (const name of names) tenths[Math.floor(((startsOf(name).at(-2) ?? 0) % 30_000) / 3_000)]!++
    expect(Math.min(...tenths)).toBeGreaterThanOrEqual(1)
    expect(Math.max(...tenths)).toBeLessThan(10)
    await end()
  })

  it('leaves out the places a long collection covers', async () => {
    const { loop, reads, source, advance, end, behaviour } = aLoop()
    behaviour.set('a', { durationMs: 70_000, fails: false })
    loop.replan([ownCollector(source('a', { intervalMs: 30_000, timeoutMs: 100_000 }))])
    await advance(200_000)
    expect(reads.map(({ at }) => at - 1_000_000)).toEqual([0, 90_000, 180_000])
    await end()
  })

  it.each([
    [30_000, 30_000],
    [60_000, 30_000],
    [300_000, 150_000],
  ])('tries again after a failure: with an interval of %i ms after %i ms', async (intervalMs, waitMs) => {
    const { loop, reads, source, advance, end, behaviour } = aLoop()
    behaviour.set('a', { durationMs: 0, fails: true })
    loop.replan([ownCollector(source('a', { intervalMs }))])
    await advance(2.5 * waitMs)
    const [first = 0, second = 0] = reads.map(({ at }) => at)
    // What was collected is handed over first.
    expect(second - first).toBeGreaterThanOrEqual(waitMs)
    expect(second - first).toBeLessThanOrEqual(waitMs + 200)
    await end()
  })

  it('goes on when the clock of the machine is set back by a day', async () => {
    const { loop, reads, source, advance, end, time } = aLoop()
    loop.replan([ownCollector(source('a', { intervalMs: 30_000 }))])
    await advance(10_000)
    time.jump(-86_400_000)
    const before = reads.length
    await advance(120_000)
    expect(reads.length).toBeGreaterThanOrEqual(before + 2)
    await end()
  })

  it('holds its promises for any intervals, durations, failures and chances', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            intervalMs: fc.integer({ min: 30_000, max: 120_000 }),
            durationMs: fc.nat(40_000),
            fails: fc.boolean(),
          }),
          { minLength: 1, maxLength: 4 },
        ),
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        fc.integer({ min: 1, max: 3 }),
        async (drawn, chances, atOnce) => {
          let running = 0
          const queue: (() => void)[] = []
          const turn = async <T>(read: () => Promise<T>): Promise<T> => {
            if (running >= atOnce) await new Promise<void>((resolve) => queue.push(resolve))
            running++
            expect(running).toBeLessThanOrEqual(atOnce)
            try {
              return await read()
            } finally {
              running--
              queue.shift()?.()
            }
          }
          const { loop, reads, told, source, advance, end, behaviour } = aLoop({
            random: () => chances.next().value,
            turn,
          })
          const sources = drawn.map((one, i) => {
            behaviour.set(`s${i}`, one)
            return source(`s${i}`, { intervalMs: one.intervalMs, timeoutMs: 60_000 })
          })
          loop.replan(sources.map(ownCollector))
          await advance(600_000)
          for (const [i, { intervalMs, fails }] of drawn.entries()) {
            const mine = reads.filter((read) => read.source === `s${i}`)
            expect(mine.length, 'each is read').toBeGreaterThan(0)
            for (const [n, read] of mine.entries()) {
              const next = mine[n + 1]
              if (!next) continue
              expect(next.at, 'one at a time').toBeGreaterThanOrEqual(read.end)
              const least = fails ? Math.max(30_000, intervalMs / 2) : intervalMs / 2
              expect(next.at - read.at, 'never in a hurry').toBeGreaterThanOrEqual(Math.min(least, intervalMs))
            }
          }
          await end()
          const count = told.length
          await advance(300_000)
          expect(told.length, 'nothing after the end').toBe(count)
        },
      ),
      { numRuns: 25 },
    ))
})

describe('a plan', () => {
  it('that leaves a source as it is does not disturb it', async () => {
    const { loop, reads, source, advance, end } = aLoop()
    loop.replan([ownCollector(source('a', { intervalMs: 60_000 }))])
    await advance(1_000)
    loop.replan([ownCollector(source('a', { intervalMs: 60_000 }))])
    await advance(10_000)
    expect(reads).toHaveLength(1)
    await end()
  })

  it('that changes a source has it read at once, and throws away what its former self collects', async () => {
    const { loop, told, source, advance, end, behaviour } = aLoop()
    behaviour.set('a', { durationMs: 5_000, fails: false })
    const former = source('a', { intervalMs: 60_000 })
    loop.replan([ownCollector(former)])
    await advance(1_000)
    loop.replan([ownCollector({ ...former, hash: 'b'.repeat(16) })])
    await advance(20_000)
    expect(told.map(({ part }) => part.hash)).toEqual(['b'.repeat(16)])
    await end()
  })

  it('without a source ends it, and tells nothing more of it', async () => {
    const { loop, told, source, advance, end, behaviour } = aLoop()
    behaviour.set('a', { durationMs: 5_000, fails: false })
    loop.replan([ownCollector(source('a'))])
    await advance(1_000)
    loop.replan([])
    await advance(200_000)
    expect([told, loop.statuses()]).toEqual([[], []])
    await end()
  })

  it('of several sources that end together is told together', async () => {
    const { loop, batches, source, advance, end } = aLoop()
    loop.replan([source('a'), source('b'), source('c')].map(ownCollector))
    await advance(1_000)
    expect(batches).toEqual([3])
    await end()
  })
})

it('says of a cluster whose client cannot be made why, and tells nothing where there is no way in', async () => {
  const time = new VirtualTime(0)
  const told: RowsPart[] = []
  let way: () => Promise<KubeClient | undefined> = () => Promise.reject(new KubeError('invalid', 'no address'))
  const loop = new CollectorLoop({
    cluster,
    source: 'pull',
    kube: () => way(),
    onBatch: async ({ tables: parts = [] }) => void told.push(...parts),
    clock: time,
    random: () => 0,
    logger: silentLogger,
  })
  loop.replan([ownCollector(named('a'))])
  await time.advance(1_000, settled)
  expect(told).toEqual([
    expect.objectContaining({ outcome: 'unreachable', code: 'kube_invalid', message: 'no address' }),
  ])
  way = async () => undefined
  await time.advance(100_000, settled)
  expect(told).toHaveLength(1)
  await loop.stop()
})

it('lets no cluster that does not answer take a turn, and asks it for a sign of life until it does', async () => {
  const time = new VirtualTime(0)
  const told: RowsPart[] = []
  let [turns, isAlive] = [0, false]
  const kube = {
    ping: async () => {
      if (!isAlive) throw new KubeError('timeout', 'no answer')
    },
    find: async () => undefined,
  } as unknown as KubeClient // no more of it is asked
  const loop = new CollectorLoop({
    cluster,
    source: 'pull',
    kube: async () => kube,
    onBatch: async ({ tables: parts = [] }) => void told.push(...parts),
    turn: (read) => {
      turns++
      return read()
    },
    clock: time,
    random: () => 0,
    logger: silentLogger,
  })
  loop.replan([ownCollector(named('a'))])
  await time.advance(40_000, settled)
  expect(turns).toBe(0)
  expect(told[0]).toMatchObject({ outcome: 'unreachable', code: 'kube_timeout' })
  isAlive = true
  await time.advance(40_000, settled)
  expect(turns).toBeGreaterThan(0)
  expect(told.at(-1)).toMatchObject({ outcome: 'absent' })
  await loop.stop()
})

describe('against a served API', () => {
  const closing: AsyncDisposable[] = []
  afterEach(async () => {
    for (const one of closing.splice(0).reverse()) await one[Symbol.asyncDispose]()
  })

  async function aServer() {
    const server = await ApiServer.open({ storage: { kind: 'memory' } })
    const listener = await listenApi({
      tokens: [{ token: 't', user: 'u', groups: ['system:masters'] }],
      mounts: new Map([['', server]]),
    })
    const credentials = { kind: 'token', token: 't' } as const
    const kube = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
    closing.push(server, listener, kube)
    const put = (namespace: string, name: string, size: number) =>
      server.objects.put({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name },
        spec: { size },
      } as ApiObject)
    for (const name of ['a', 'ab', 'other']) {
      await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    }
    return { server, kube, put }
  }

  it('shows a change of a watched source within seconds, and what is gone as well', async () => {
    const { server, kube, put } = await aServer()
    await put('a', 'one', 1)
    await put('other', 'two', 2)
    const told: RowsPart[] = []
    const metrics = new Metrics({}, { processMetrics: false })
    const loop = new CollectorLoop({
      cluster,
      source: 'pull',
      kube: async () => kube,
      onBatch: async ({ tables: parts = [] }) => void told.push(...parts),
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
      metrics,
    })
    closing.push(loop)
    const source = aSource({
      source: { apiVersion: 'v1', kind: 'ConfigMap', namespaces: { include: ['a*'] } },
      collection: { watch: true },
    })
    loop.replan([ownCollector(source)])
    const ids = () => {
      const part = told.at(-1)
      return part?.outcome === 'complete' ? Array.from({ length: part.rows.size }, (_, row) => part.rows.idAt(row)) : []
    }
    await until(() => ids().join() === 'a/one')
    await until(() => loop.statuses()[0]?.isFollowed)
    const changedAt = Date.now()
    await put('ab', 'three', 3)
    await put('other', 'four', 4)
    await until(() => ids().join() === 'a/one,ab/three')
    expect((Date.now() - changedAt) / slowness).toBeLessThan(15_000)
    await server.objects.delete({ group: '', version: 'v1', plural: 'configmaps' }, { namespace: 'a', name: 'one' })
    await until(() => ids().join() === 'ab/three')
    expect(await metrics.registry.metrics()).toContain(
      'clusterpulse_source_collections_total{source="clusterpulse/widgets",outcome="complete"} 1',
    )
  })

  it('follows a kind that is compiled in by its name, as one goes and comes again', async () => {
    const { server, kube, put } = await aServer()
    await put('a', 'one', 1)
    await put('a', 'two', 1)
    const told: RowsPart[] = []
    const loop = new CollectorLoop({
      cluster,
      source: 'pull',
      kube: async () => kube,
      onBatch: async ({ tables: parts = [] }) => void told.push(...parts),
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
    })
    closing.push(loop)
    const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
    const reads = [listOf(configMaps)]
    const size: ColumnSpec = { label: 'Size', kind: 'number', read: ({ spec }) => (spec as { size: number }).size }
    const maps = defineResource({
      ...{ name: 'maps', singular: 'map', title: 'Maps', reads, access: 'namespaced', everyMs: 60_000, maxRows: 2 },
      ...{ columns: { size }, counts: { total: { function: 'sum', field: 'size', groupBy: undefined } } },
    })
    loop.replan([ownCollector({ ...maps, collection: { ...maps.collection, watch: true } })])
    const total = () => {
      const part = told.at(-1)
      return part?.outcome === 'complete' ? part.aggregations.total : undefined
    }
    await until(() => loop.statuses()[0]?.isFollowed)
    expect(total()).toBe(2)
    await server.objects.delete(configMaps, { namespace: 'a', name: 'one' })
    await until(() => total() === 1)
    await put('ab', 'one', 4)
    await until(() => total() === 5)
    // One more than there may be: what is known stays, and the next collection says that some are left out.
    await put('ab', 'two', 8)
    await until(() => !loop.statuses()[0]?.isFollowed)
    expect(total()).toBe(5)
  })

  it('reads by the interval where a watch is refused', async () => {
    const member = await aMember()
    closing.push(member)
    member.widgets = widgetsIn(2, 'a')
    member.meddle = ({ url }, response) => {
      if (!url.searchParams.has('watch')) return false
      response.writeHead(403).end()
      return true
    }
    const told: RowsPart[] = []
    const loop = new CollectorLoop({
      cluster,
      source: 'pull',
      kube: async () => member.kube,
      onBatch: async ({ tables: parts = [] }) => void told.push(...parts),
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
    })
    closing.push(loop)
    loop.replan([ownCollector(named('a', { watch: true, intervalMs: 300 }))])
    await until(() => told.length >= 3)
    expect(told.every(({ outcome }) => outcome === 'complete')).toBe(true)
    // One attempt for each collection, not a storm of them.
    expect(member.lists().filter((line) => line.includes('watch=1')).length).toBeLessThanOrEqual(told.length + 1)
  })
})
