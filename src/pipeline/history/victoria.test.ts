import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Clock, metricPrefix, minutes, seconds } from '#model'
import { beginNoted } from './position-file.ts'
import { FaultyBackend } from './testing/faulty-backend.ts'
import { aGroup, aSet, lost, pods } from './testing/sets.ts'
import { VictoriaMetrics, victoriaMissing } from './testing/victoria-metrics.ts'
import type { HistoryRecord } from './types.ts'
import { VictoriaHistory, type VictoriaHistoryOptions } from './victoria.ts'

const podsTotal = `${metricPrefix.cluster}pods_total`
const t0 = Math.floor((Date.now() - minutes(60)) / minutes(10)) * minutes(10)

let directory: string
let now = Date.now()
const stores: VictoriaHistory[] = []
// Time stands still until a test moves it; samples settle when it is told to.
const clock: Clock = {
  now: () => now,
  sleep: (_, signal) => new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true })),
}

beforeEach(async () => {
  now = Date.now()
  directory = await mkdtemp(join(tmpdir(), 'history-'))
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

async function open(endpoint: string, options: Partial<VictoriaHistoryOptions> = {}): Promise<VictoriaHistory> {
  const store = await VictoriaHistory.open({ endpoint, directory, clock, ...options })
  stores.push(store)
  return store
}
/** The records of a log whose nth is a sample of n at t0 + n seconds. */
const log = (from: number, to: number): HistoryRecord[] =>
  Array.from({ length: to - from + 1 }, (_, i) => pods(t0 + seconds(from + i), from + i))
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

describe.skipIf(victoriaMissing() !== undefined)(`history in a real VictoriaMetrics${victoriaMissing() ?? ''}`, () => {
  let server: VictoriaMetrics
  let proxy: FaultyBackend

  beforeAll(async () => {
    server = await VictoriaMetrics.start()
    proxy = await FaultyBackend.start(server.endpoint)
  })
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  afterEach(async () => {
    proxy.fault = 'pass'
    proxy.imports.length = 0
    await server.deleteAll()
  })

  /** what is stored, repeats included, in the order of time */
  const stored = async (): Promise<number[]> => {
    const series = await server.export(podsTotal)
    return series.flatMap(({ values }) => values).sort((left, right) => left - right)
  }

  it('calls safe only what was sent long enough ago to the same process', async () => {
    const store = await open(server.endpoint)
    await store.append(log(0, 4), 4)
    await store.settle()
    expect(store.position()).toBe(-1)
    now += seconds(16)
    await store.settle()
    expect(store.position()).toBe(4)
  })

  it('sends again what a killed VictoriaMetrics lost, and only that', async () => {
    const store = await open(server.endpoint)
    await store.append(log(0, 9), 9)
    now += seconds(16)
    await store.settle()
    await store.append(log(10, 19), 19)
    await server.kill()
    await expect(store.append(log(20, 29), 29)).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
    expect(store.availability()).toMatchObject({ state: 'unavailable' })
    await server.start()
    // The first ten were called safe by a clock that runs ahead of the disk: this once, the marker tells so.
    const isWhole = await store.append(log(20, 29), 29).then(
      () => true,
      () => false,
    )
    if (!isWhole) {
      expect(store.position()).toBe(-1)
      await store.append(log(0, 29), 29)
    }
    now += seconds(16)
    await store.settle()
    expect(store.position()).toBe(29)
    expect(await stored()).toEqual(upTo(30))
    expect(store.availability()).toEqual({ state: 'available' })
  })

  it('takes everything again from a log when VictoriaMetrics comes back empty', async () => {
    const store = await open(server.endpoint)
    await store.append(log(0, 9), 9)
    now += seconds(16)
    await store.settle()
    expect(store.position()).toBe(9)
    await server.kill()
    await server.wipe()
    await server.start()
    // Nothing tells at once, but before anything is called safe the process there is asked who it is.
    await store.append(log(10, 12), 12).catch((error: unknown) => expect(error).toMatchObject({ retryable: true }))
    for (let tries = 0; tries < 3 && store.position() !== -1; tries++) {
      now += seconds(16)
      await store.settle().catch((error: unknown) => expect(error).toMatchObject({ retryable: true }))
    }
    expect(store.position()).toBe(-1)
    await store.append(log(0, 12), 12)
    expect(await stored()).toEqual(upTo(13))
  })

  it('takes again what an older copy lacks, also where it was put back while nobody asked, and doubles nothing', async () => {
    await using own = await VictoriaMetrics.start()
    const settled = async (store: VictoriaHistory) => {
      now += seconds(16)
      await store.settle()
    }
    const ownStored = async () => (await own.export(podsTotal)).flatMap(({ values }) => values).sort((a, b) => a - b)
    const first = await open(own.endpoint)
    await first.append(log(0, 9), 9)
    await settled(first)
    await first.append(log(10, 19), 19)
    await settled(first)
    const copy = await own.backUp()
    await own.start()
    for (const [from, to] of [
      [20, 24],
      [25, 29],
    ] as const) {
      // An import that breaks may be one that the former process took.
      await first.append(log(from, to), to).catch(() => first.append(log(from, to), to))
      await settled(first)
    }
    expect(first.position()).toBe(29)
    await first[Symbol.asyncDispose]()
    await own.restore(copy)
    await own.start()

    const second = await open(own.endpoint)
    expect(second.position()).toBe(29)
    await expect(second.append(log(30, 30), 30)).rejects.toMatchObject({ code: 'store_unavailable' })
    // The marks tell what the copy surely has: that of 19 may have been its last seconds.
    expect(second.position()).toBe(9)
    await second.append(log(10, 30), 30)
    await settled(second)
    expect(second.position()).toBe(30)
    expect(await ownStored()).toEqual(upTo(31))
    expect(await second.newestRound('west', t0 + seconds(12.5))).toBe(t0 + seconds(12))
    expect(await second.newestRound('east', t0 + seconds(12.5))).toBeUndefined()
  })

  it('doubles nothing when what we noted is damaged', async () => {
    const first = await open(server.endpoint)
    await first.append(log(0, 9), 9)
    await first[Symbol.asyncDispose]()
    const file = join(directory, 'position.json')
    const text = await readFile(file, 'utf8')
    for (const damaged of [
      text.replace(/"sent":\d+/, '"sent":2'),
      text.replace(/"safe":-1/, '"safe":7'),
      text.slice(0, 40),
    ]) {
      await writeFile(file, damaged)
      now += seconds(1)
      const store = await open(server.endpoint)
      expect(store.position()).toBe(-1)
      await store.append(log(0, 9), 9)
      await store[Symbol.asyncDispose]()
      expect(await stored()).toEqual(upTo(10))
    }
  })

  it('doubles nothing when we crash between the import and the position', async () => {
    const first = await open(server.endpoint)
    await first.append(log(0, 9), 9)
    await first[Symbol.asyncDispose]()
    const second = await open(server.endpoint)
    expect(second.position()).toBe(-1)
    await second.append(log(0, 4), 4)
    await second.append(log(5, 14), 14)
    now += seconds(16)
    await second.settle()
    expect(second.position()).toBe(14)
    expect(await stored()).toEqual(upTo(15))
  })

  it('doubles no first sample of a cluster that was looked for before it came', async () => {
    // VictoriaMetrics remembers for ten seconds which series a question found, here none; a flush of its own does not change that.
    await using fresh = await VictoriaMetrics.start()
    await beginNoted(directory, 5)
    for (let start = 0; start < 2; start++) {
      const store = await open(fresh.endpoint)
      await store.append(log(0, 0), 5)
      await store[Symbol.asyncDispose]()
      // Its own flush comes every second, and nothing tells of it.
      await new Promise((resolve) => setTimeout(resolve, 2_500))
    }
    expect((await fresh.export(podsTotal)).flatMap(({ values }) => values)).toEqual([0])
  })

  for (const fault of ['taken, then reset', 'taken, then hang', 'reset', 'hang'] as const) {
    it(`stores each sample once where an import ends with: ${fault}`, async () => {
      const store = await open(proxy.endpoint, { importTimeoutMs: 300, maxBodyBytes: 2000 })
      await store.append(log(0, 4), 4)
      proxy.fault = fault
      await expect(store.append(log(5, 9), 9)).rejects.toMatchObject({ code: 'store_unavailable' })
      await expect(store.append(log(5, 12), 12)).rejects.toMatchObject({ code: 'store_unavailable' })
      proxy.fault = 'pass'
      await store.append(log(5, 5), 5)
      await store.append(log(6, 14), 14)
      expect(await stored()).toEqual(upTo(15))
      // What is certain again is not asked for: the next goes at once.
      proxy.imports.length = 0
      await store.append(log(15, 15), 15)
      expect(proxy.imports).toHaveLength(1)
    })
  }

  it('says with its own words why VictoriaMetrics refuses, and goes on with the next', async () => {
    const store = await open(proxy.endpoint)
    proxy.fault = { status: 400, text: 'cannot parse this' }
    await expect(store.append(log(0, 0), 0)).rejects.toMatchObject({
      code: 'samples_refused',
      retryable: false,
      reason: '400 cannot parse this',
    })
    proxy.fault = { status: 503, text: 'read-only mode' }
    await expect(store.append(log(1, 1), 1)).rejects.toMatchObject({
      code: 'store_unavailable',
      retryable: true,
      reason: '503 read-only mode',
    })
    proxy.fault = 'pass'
    await store.append(log(1, 1), 1)
    expect(await stored()).toEqual([1])
  })

  it('sends in bodies of the bounded size, compressed where that is wanted', async () => {
    const store = await open(proxy.endpoint, { maxBodyBytes: 500, gzip: true })
    await store.append(log(0, 19), 19)
    expect(proxy.imports.length).toBeGreaterThan(4)
    expect(proxy.imports.every(({ encoding }) => encoding === 'gzip')).toBe(true)
    expect(await stored()).toEqual(upTo(20))
  })

  it('takes no more than it may hold until it is settled', async () => {
    const store = await open(server.endpoint, { maxUnsettledBytes: 1100 })
    await store.append(log(0, 2), 2)
    await store.append(log(3, 3), 3)
    await expect(store.append(log(4, 4), 4)).rejects.toMatchObject({ code: 'store_unavailable' })
    now += seconds(16)
    await store.append(log(4, 4), 4)
    expect(store.position()).toBe(3)
    expect(await stored()).toEqual(upTo(5))
  })

  it('begins with a note that cannot be read as with none', async () => {
    await writeFile(join(directory, 'position.json'), '{"safe": 12')
    const store = await open(server.endpoint)
    expect(store.position()).toBe(-1)
    await store.append(log(0, 1), 1)
    expect(await stored()).toEqual(upTo(2))
  })

  it('reads in another process, which may not write', async () => {
    const writer = await open(server.endpoint)
    const push = { source: 'push' } as const
    await writer.append([pods(t0, 7, push), pods(t0 + 1000, 9), lost(t0 + 2000, t0 + 3000)], 2)
    await server.flush()
    const reader = await VictoriaHistory.open({ endpoint: server.endpoint })
    stores.push(reader)
    await expect(reader.append(log(3, 3), 3)).rejects.toMatchObject({ code: 'history_read_only' })
    expect(await reader.spans({ cluster: 'west', from: t0, to: t0 + 5000 })).toEqual([
      { kind: 'pulled', from: t0 + 1000, to: t0 + 1000, cause: '', count: 1 },
      { kind: 'lost', from: t0 + 2000, to: t0 + 3000, cause: 'dropped', count: 2 },
    ])
    const answer = await reader.promql.ask('query', { query: `sum(${podsTotal})`, time: String(t0 / 1000 + 2) })
    expect(answer).toMatchObject({ status: 200, body: { data: { result: [{ value: [t0 / 1000 + 2, '9'] }] } } })
    expect(await reader.promql.ask('query', { query: 'sum(' })).toMatchObject({
      status: 422,
      body: { status: 'error' },
    })
  })

  it('shows the newest sample at once', async () => {
    const store = await open(server.endpoint)
    const at = Date.now() - 100
    await store.append([pods(at, 5)], 0)
    await server.flush()
    const answer = await store.range({
      cluster: 'west',
      scope: 'cluster',
      metrics: [podsTotal],
      from: at - 1000,
      to: at + 1000,
      stepMs: 1000,
      maxSeries: 1,
    })
    expect(answer.series[0]?.values.filter((value) => value !== null)).toEqual([5])
  })

  it('knows nodes of long ranges by the day', async () => {
    const store = await open(server.endpoint)
    const set = aSet(t0, [aGroup('node', { ready: { n1: 1, n2: 0 } })])
    await store.append([{ kind: 'samples', samples: set }], 0)
    await server.flush()
    const query = { cluster: 'west', scope: 'node', to: t0 + 1, limit: 10 } as const
    expect(await store.keys({ ...query, from: t0 - 20 * 86_400_000 })).toEqual(['n1', 'n2'])
  })
})

describe('history without its VictoriaMetrics', () => {
  it('opens, says that it is away, and refuses for now', async () => {
    const nobody = await FaultyBackend.start()
    const { endpoint } = nobody
    await nobody[Symbol.asyncDispose]()
    const store = await open(endpoint)
    await expect(store.append(log(0, 0), 0)).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(store.spans({ cluster: 'west', from: 0, to: 1 })).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(store.availability()).toMatchObject({
      state: 'unavailable',
      reason: expect.stringContaining('ECONNREFUSED'),
    })
    expect(store.position()).toBe(-1)
  })

  it('ends an import when its signal aborts', async () => {
    await using backend = await FaultyBackend.start()
    backend.fault = 'hang'
    const store = await open(backend.endpoint)
    const controller = new AbortController()
    const appended = store.append(log(0, 0), 0, controller.signal)
    setTimeout(() => controller.abort(), 100)
    await expect(appended).rejects.toMatchObject({ name: 'AbortError' })
  })
})
