import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { metricPrefix, minutes, parseClusterName, seconds } from '#model'
import { drivers, type Place } from './testing/drivers.ts'
import { aGroup, aSet, lost, pods, west } from './testing/sets.ts'
import type { HistoryRecord, HistoryStore, RangeQuery } from './types.ts'

const podsTotal = `${metricPrefix.cluster}pods_total`
// A whole multiple of every step used here, an hour ago.
const t0 = Math.floor((Date.now() - minutes(60)) / minutes(10)) * minutes(10)

for (const driver of drivers) {
  describe.skipIf(driver.missing !== undefined)(`history in ${driver.name}${driver.missing ?? ''}`, () => {
    let place: Place
    let store: HistoryStore
    let position = -1

    beforeAll(async () => {
      place = await driver.place()
    })
    afterAll(async () => {
      await place[Symbol.asyncDispose]()
    })
    afterEach(async () => {
      await store[Symbol.asyncDispose]()
      await place.clear()
      position = -1
    })

    const open = async (): Promise<void> => {
      store = await place.open()
    }
    const keep = async (...records: readonly HistoryRecord[]): Promise<void> => {
      position += records.length
      await store.append(records, position)
      await place.settle()
    }
    const range = (over: Partial<RangeQuery> = {}) =>
      store.range({
        cluster: 'west',
        scope: 'cluster',
        metrics: [podsTotal],
        from: t0,
        to: t0 + minutes(5) - 1,
        stepMs: minutes(1),
        maxSeries: 50,
        ...over,
      })
    const values = async (over: Partial<RangeQuery> = {}) => (await range(over)).series.map((one) => one.values)

    it('answers the mean of each step, null where nothing was, and nothing for what it never saw', async () => {
      await open()
      await keep(pods(t0, 10), pods(t0 + seconds(30), 20), pods(t0 + seconds(59.999), 30), pods(t0 + minutes(3), 7))
      expect(await range()).toEqual({
        start: t0,
        stepMs: minutes(1),
        points: 5,
        series: [{ metric: podsTotal, key: '', values: [20, null, null, 7, null] }],
      })
      expect((await range({ cluster: 'east' })).series).toEqual([])
      expect((await range({ metrics: [`${metricPrefix.cluster}nodes_total`] })).series).toEqual([])
      expect((await range({ from: t0 - minutes(50), to: t0 - 1 })).series).toEqual([])
    })

    it('aligns steps to their multiples, and takes all samples of the first and the last step', async () => {
      await open()
      await keep(pods(t0 - 1, 100), pods(t0, 1), pods(t0 + seconds(59), 3), pods(t0 + minutes(1), 5))
      const answer = await range({ from: t0 + seconds(30), to: t0 + seconds(40) })
      expect(answer).toMatchObject({ start: t0, points: 1, series: [{ values: [2] }] })
      expect(await values({ from: t0 - 1, to: t0 + minutes(1) })).toEqual([[100, 2, 5]])
    })

    it('keeps a record once, however often the log offers it', async () => {
      await open()
      await keep(pods(t0, 10))
      await store.append([pods(t0, 10)], position)
      await store.append([pods(t0, 10)], position)
      await keep(pods(t0 + seconds(30), 40))
      expect(await values()).toEqual([[25, null, null, null, null]])
      expect((await place.samples?.('west')) ?? 2).toBe(2)
    })

    it('counts what it keeps of a past, by cluster, and not what is measured now', async () => {
      await open()
      await keep(pods(t0, 10))
      expect([store.lateRecords?.('west'), store.lateRecords?.('east')]).toEqual([0, 0])
      await keep(lost(t0, t0 + 1))
      expect([store.lateRecords?.('west'), store.lateRecords?.('east')]).toEqual([1, 0])
    })

    it('keeps what it has over a restart, and its position', async () => {
      await open()
      expect(store.position()).toBe(-1)
      await keep(pods(t0, 10), lost(t0, t0 + 1))
      await store[Symbol.asyncDispose]()
      await open()
      expect(store.position()).toBe(1)
      await keep(pods(t0 + seconds(1), 20))
      expect(await values()).toEqual([[15, null, null, null, null]])
      expect(await store.spans({ cluster: 'west', from: t0, to: t0 })).toHaveLength(1)
    })

    it('takes times in any order', async () => {
      await open()
      await keep(pods(t0 + minutes(2), 3), pods(t0, 1), pods(t0 + minutes(1), 2))
      expect(await values()).toEqual([[1, 2, 3, null, null]])
    })

    it('never stores what is no number', async () => {
      await open()
      const hostile = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
      await keep(...hostile.map((value, i) => pods(t0 + i, value)))
      await keep({
        kind: 'samples',
        samples: aSet(t0, [aGroup('custom', { x: { 'ns/a': Number.POSITIVE_INFINITY, 'ns/b': 4 } })]),
      })
      expect((await range()).series).toEqual([])
      const custom = { scope: 'custom', metrics: [`${metricPrefix.custom}x`] } as const
      expect((await range(custom)).series).toMatchObject([{ key: 'ns/b' }])
    })

    it('gives numbers of twelve digits back exactly, and whole ones of any length', async () => {
      await open()
      const exact = [0, -1, 0.1, 0.333333333333, 6.4e10, 1e-7, 1e6, 123_456_789_012_345, Number.MAX_SAFE_INTEGER]
      // A series each: VictoriaMetrics packs the numbers of a series with one exponent.
      const column = Object.fromEntries(exact.map((value, i) => [`n${i}`, value]))
      await keep({ kind: 'samples', samples: aSet(t0, [aGroup('node', { cpu_used: column })]) })
      const answer = await values({ scope: 'node', metrics: [`${metricPrefix.node}cpu_used`], to: t0 })
      expect(answer.map(([first]) => first)).toEqual(exact)
    })

    it('tells nodes, operators and custom numbers apart by their names', async () => {
      await open()
      await keep({
        kind: 'samples',
        samples: aSet(t0, [
          aGroup('node', { cpu_used: { n1: 1, n2: 2 }, ready: { n1: 1, n2: 0 } }),
          aGroup('operator', { installed: { 'op.v1': 1 } }),
          aGroup('clusterOperator', { available: { dns: 1 }, degraded: { dns: 0 } }),
          aGroup('custom', { requests: { 'shop/orders': 12.5 } }),
        ]),
      })
      const node = (name: string) => `${metricPrefix.node}${name}`
      const nodes = await range({ scope: 'node', metrics: [node('ready'), node('cpu_used')], keys: ['n2'] })
      expect(nodes.series.map(({ metric, key, values: [first] }) => [metric, key, first])).toEqual([
        [node('ready'), 'n2', 0],
        [node('cpu_used'), 'n2', 2],
      ])
      const all = await range({ scope: 'node', metrics: [node('cpu_used')] })
      expect(all.series.map(({ key }) => key)).toEqual(['n1', 'n2'])
      const operators = await range({
        scope: 'clusterOperator',
        metrics: ['available', 'degraded'].map((name) => metricPrefix.clusterOperator + name),
      })
      expect(operators.series.map(({ values: [first] }) => first)).toEqual([1, 0])
      const custom = await range({ scope: 'custom', metrics: [`${metricPrefix.custom}requests`] })
      expect(custom.series).toMatchObject([{ key: 'shop/orders' }])

      const keys = (scope: RangeQuery['scope'], limit = 10, from = t0) =>
        store.keys({ cluster: 'west', scope, from, to: t0 + 1000, limit })
      expect(await keys('node')).toEqual(['n1', 'n2'])
      expect(await keys('node', 1)).toEqual(['n1'])
      expect(await keys('node', 10, t0 + 1)).toEqual([])
      expect(await keys('operator')).toEqual(['op.v1'])
      expect(await keys('clusterOperator')).toEqual(['dns'])
      expect(await keys('custom')).toEqual(['shop/orders'])
    })

    const hostile = [
      'a"b',
      'back\\slash',
      'line\nbreak',
      'tab\tand\rreturn',
      "it's; DROP TABLE words; --",
      '{cluster="east"} 1',
      'ünïcödé ☃ 🚀',
      '$(x) .*|',
      ' ',
      '#',
      'trailing\\',
    ]
    it('keeps and finds names of any letters, and mixes none up', async () => {
      await open()
      const column = Object.fromEntries(hostile.map((name, i) => [name, i]))
      await keep({ kind: 'samples', samples: aSet(t0, [aGroup('custom', { x: column })]) })
      const metrics = [`${metricPrefix.custom}x`]
      const query = { cluster: 'west', scope: 'custom', from: t0, to: t0, limit: 100 } as const
      expect([...(await store.keys(query))].sort()).toEqual([...hostile].sort())
      for (const [i, name] of hostile.entries()) {
        const answer = await range({ scope: 'custom', metrics, keys: [name] })
        expect(answer.series.map(({ key, values: [first] }) => [key, first])).toEqual([[name, i]])
      }
    })

    it('takes custom metrics of any name, cleaned', async () => {
      await open()
      await keep({ kind: 'samples', samples: aSet(t0, [aGroup('custom', { 'é"\n} 1': { a: 5 } })]) })
      const metric = `${metricPrefix.custom}é"\n} 1`
      const answer = await range({ scope: 'custom', metrics: [metric] })
      expect(answer.series).toMatchObject([{ metric, key: 'a' }])
      const clean = `${metricPrefix.custom}_____1`
      expect((await range({ scope: 'custom', metrics: [clean] })).series).toMatchObject([{ metric: clean }])
    })

    it('refuses more series than asked for', async () => {
      await open()
      const column = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`n${i}`, i]))
      await keep({ kind: 'samples', samples: aSet(t0, [aGroup('node', { ready: column, cpu_used: column })]) })
      const query = { scope: 'node', metrics: [`${metricPrefix.node}ready`] } as const
      expect((await range({ ...query, maxSeries: 12 })).series).toHaveLength(12)
      await expect(range({ ...query, maxSeries: 11 })).rejects.toMatchObject({ code: 'too_many_series' })
    })

    it('refuses ranges that make no sense', async () => {
      await open()
      const refused = { code: 'invalid_range' }
      await expect(range({ to: t0 - 1 })).rejects.toMatchObject(refused)
      await expect(range({ stepMs: 0 })).rejects.toMatchObject(refused)
      await expect(range({ metrics: [] })).rejects.toMatchObject(refused)
      await expect(range({ from: Number.NaN })).rejects.toMatchObject(refused)
      await expect(range({ from: 0, stepMs: 1 })).rejects.toMatchObject(refused)
    })

    it('merges repaired and pulled batches into spans, and ends a span at a batch of another way or at a hole', async () => {
      await open()
      const push = { source: 'push' } as const
      const repaired = { source: 'push', repaired: true } as const
      const at = (n: number) => t0 + seconds(30 * n)
      await keep(
        pods(at(0), 1, push),
        pods(at(1), 1),
        pods(at(2), 1),
        pods(at(3), 1, push),
        pods(at(6), 1, repaired),
        pods(at(5), 1, repaired),
        pods(at(4), 1, repaired),
        pods(at(40), 1, repaired),
      )
      const spans = await store.spans({ cluster: 'west', from: t0, to: at(100) })
      expect(spans).toEqual([
        { kind: 'pulled', from: at(1), to: at(2), cause: '', count: 2 },
        { kind: 'repaired', from: at(4), to: at(6), cause: '', count: 3 },
        { kind: 'repaired', from: at(40), to: at(40), cause: '', count: 1 },
      ])
      expect(await store.spans({ cluster: 'west', from: at(7), to: at(39) })).toEqual([])
      expect(await store.spans({ cluster: 'east', from: t0, to: at(100) })).toEqual([])
    })

    it('marks no pulled batch of a cluster that never pushes', async () => {
      await open()
      await keep(pods(t0, 1), pods(t0 + 1, 2))
      expect(await store.spans({ cluster: 'west', from: t0, to: t0 + 5 })).toEqual([])
    })

    it('marks what was made up, however sparse it is, and nothing of what was measured beside it', async () => {
      await open()
      const at = (n: number) => t0 - minutes(90) + minutes(30 * n)
      const simulated = { simulated: true } as const
      await keep(pods(at(0), 1, simulated), pods(at(1), 2, simulated), pods(at(2), 3, simulated), pods(t0, 4))
      expect(await store.spans({ cluster: 'west', from: at(0), to: t0 })).toEqual([
        { kind: 'simulated', from: at(0), to: at(2), cause: '', count: 3 },
      ])
      expect(await values({ from: at(0), to: t0, stepMs: minutes(30) })).toEqual([[1, 2, 3, 4]])
      // A cluster that pushes now is told apart as ever.
      await keep(pods(t0 + minutes(1), 5, { source: 'push' }))
      expect((await store.spans({ cluster: 'west', from: at(0), to: t0 })).map(({ kind }) => kind)).toEqual([
        'simulated',
        'pulled',
      ])
    })

    it('keeps what the hub tells of itself apart where it does not touch', async () => {
      await open()
      const at = (n: number) => t0 + minutes(n)
      const cause = 'unreachable' as const
      await keep(lost(at(0), at(1), { cause, count: 1 }), lost(at(1), at(2), { cause, count: 1 }))
      await keep(lost(at(4), at(5), { cause, count: 1 }), lost(at(6), at(9), { cause: 'hub_down', count: 6 }))
      expect(await store.spans({ cluster: 'west', from: at(0), to: at(10) })).toEqual([
        { kind: 'lost', from: at(0), to: at(2), cause, count: 2 },
        { kind: 'lost', from: at(4), to: at(5), cause, count: 1 },
        { kind: 'lost', from: at(6), to: at(9), cause: 'hub_down', count: 6 },
      ])
    })

    it('merges losses of one cause, and finds those that reach into the range', async () => {
      await open()
      const at = (n: number) => t0 + minutes(n)
      await keep(
        lost(at(0), at(2)),
        lost(at(3), at(4), { count: 5 }),
        lost(at(1), at(3), { cause: 'thinned', count: 1 }),
        lost(at(0), at(9), {}, 'east'),
        lost(at(30), at(31)),
      )
      expect(await store.spans({ cluster: 'west', from: at(1), to: at(40) })).toEqual([
        { kind: 'lost', from: at(0), to: at(4), cause: 'dropped', count: 7 },
        { kind: 'lost', from: at(1), to: at(3), cause: 'thinned', count: 1 },
        { kind: 'lost', from: at(30), to: at(31), cause: 'dropped', count: 2 },
      ])
      expect(await store.spans({ cluster: 'west', from: at(5), to: at(29) })).toEqual([])
    })

    it('takes out of what the hub missed what came late or was declared, and leaves pieces of more than two intervals', async () => {
      await open()
      const at = (n: number) => t0 + minutes(n)
      const repaired = { source: 'push', repaired: true } as const
      await keep(pods(at(0), 1, { source: 'push' }), pods(at(30), 1, { source: 'push' }))
      await keep(lost(at(0), at(20), { cause: 'not_received', count: 19 }))
      await keep(lost(at(20), at(30), { cause: 'hub_down', count: 9 }))
      const holes = async (from = 0, to = 40) => {
        const spans = await store.spans({ cluster: 'west', from: at(from), to: at(to) })
        return spans
          .filter(({ kind }) => kind === 'lost')
          .map(({ cause, from, to, count }) => [cause, (from - t0) / minutes(1), (to - t0) / minutes(1), count])
      }
      const whole = ['not_received', 0, 20, 19]
      expect(await holes()).toEqual([whole, ['hub_down', 20, 30, 9]])
      await keep(
        lost(at(5), at(8), { cause: 'dropped', count: 4 }),
        lost(at(0), at(3), { cause: 'agent_down', count: 2 }),
      )
      await keep(...[8, 9, 10, 11, 20, 21, 22, 24, 26].map((n) => pods(at(n), 1, repaired)))
      const left = [
        ['agent_down', 0, 3, 2],
        ['dropped', 5, 8, 4],
        ['not_received', 11, 20, 8],
        ['hub_down', 26, 30, 3],
      ]
      expect(await holes()).toEqual(left)
      expect(await holes(12, 13), 'where only a part of the hole is asked for').toEqual([['not_received', 11, 20, 8]])
      expect(await holes(9, 10)).toEqual([])
    })

    it('goes on with a cluster whose name was used before', async () => {
      await open()
      await keep(pods(t0, 1))
      await keep(pods(t0, 9, { cluster: parseClusterName('east') }))
      await keep(pods(t0 + minutes(2), 3, { cluster: west }))
      expect(await values()).toEqual([[1, null, 3, null, null]])
    })

    it('leaves out a set whose time is none, and keeps the rest', async () => {
      await open()
      await keep(pods(Number.NaN, 1), pods(-5, 1), pods(1e18, 1), pods(t0, 4), lost(Number.NaN, t0))
      expect(await values()).toEqual([[4, null, null, null, null]])
      expect(store.availability()).toEqual({ state: 'available' })
    })

    it('ends a question when its signal aborts', async () => {
      await open()
      await keep(pods(t0, 1))
      const query = { cluster: 'west', scope: 'cluster', metrics: [podsTotal], from: t0, to: t0 } as const
      const ended = store.range({ ...query, stepMs: 1000, maxSeries: 1 }, AbortSignal.abort())
      await expect(ended).rejects.toMatchObject({ name: 'AbortError' })
      expect(await values()).toEqual([[1, null, null, null, null]])
    })

    it('answers many at once', async () => {
      await open()
      await keep(pods(t0, 1))
      const answers = await Promise.all(Array.from({ length: 40 }, () => values()))
      expect(answers).toEqual(Array.from({ length: 40 }, () => [[1, null, null, null, null]]))
    })
  })
}
