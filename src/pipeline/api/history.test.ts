import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { createClient, type FillingView, type HistoryView, HistoryViewSchema } from '#http'
import { type Loss, metricsCatalogue, parseClusterName, type SampleSet } from '#model'
import { historyCsv } from './history.ts'
import { gone, tooMany } from './test/memory-history.ts'
import { allow, but, within } from './test/policies.ts'
import { aNode, aWorld, complete, proxy, start, type World } from './test/world.ts'

const every = 30_000
const aLoss: Loss = {
  ...{ origin: 'agent', sequence: 3, lost: [[1, 2]], from: start - 60_000, to: start - 30_000 },
  ...{ cause: 'dropped', count: 2, keptEveryMs: 0 },
}

/** The last hour of two nodes: a counts up from 1, b from 101; the cluster counts up from 1001. */
async function fill(world: World): Promise<void> {
  await world.connect('west')
  await world.connect('east')
  for (const cluster of ['west', 'east']) {
    await world.batch(cluster, [
      complete('node', [aNode('a'), aNode('b')]),
      complete('namespace', [{ name: 'shop', phase: 'Active', createdAt: start, labels: {} }]),
    ])
    for (let n = 1; n <= 120; n++) {
      const samples: SampleSet = {
        cluster: parseClusterName(cluster),
        at: start - 3_600_000 + n * every,
        source: 'pull',
        repaired: false,
        groups: [
          {
            scope: 'node',
            keys: ['a', 'b', 'removed'],
            columns: [
              { metric: 'clusterpulse_node_cpu_used', values: Float64Array.of(n, 100 + n, 200 + n) },
              { metric: 'clusterpulse_node_pods_total', values: Float64Array.of(n, 100 + n, 200 + n) },
            ],
          },
          {
            scope: 'cluster',
            keys: [''],
            columns: [{ metric: 'clusterpulse_cluster_cpu_used', values: Float64Array.of(1000 + n) }],
          },
        ],
      }
      await world.history.append([{ kind: 'samples', samples }])
    }
  }
}

const west = '/api/v1/clusters/west/metrics/history'
const nodeA = '/api/v1/clusters/west/nodes/a/metrics/history'
const several = '/api/v2/clusters/west/history'
const historyOf = async (world: World, url: string, headers = {}): Promise<HistoryView> => {
  const { status, body } = await world.get(url, headers)
  expect(status, JSON.stringify(body)).toBe(200)
  expect([...Compile(HistoryViewSchema).Errors(body)]).toEqual([])
  return body as HistoryView
}

describe('history of a cluster', () => {
  it('has unit and title of each metric, equally spaced points, and the spans that touch them', async () => {
    await using world = await aWorld()
    await fill(world)
    const lost = { kind: 'lost' as const, from: start - 900_000, to: start - 600_000, cause: 'dropped', count: 10 }
    world.history.allSpans.push(lost, { ...lost, from: 1, to: 2 })
    const view = await historyOf(world, `${west}?metric=cpu_used,cpu_capacity&range=15m`)
    expect(view.metrics).toEqual([
      { name: 'cpu_used', unit: 'cores', title: 'CPU used' },
      { name: 'cpu_capacity', unit: 'cores', title: 'CPU capacity' },
    ])
    expect(view).toMatchObject({ start: start / 1000 - 900, end: start / 1000, step: 30 })
    expect(view.series).toHaveLength(1)
    expect(view.series[0]).toMatchObject({ metric: 'cpu_used', labels: { cluster: 'west' } })
    expect(view.series[0]?.points.map(([at]) => at)).toEqual(
      Array.from({ length: 31 }, (_, n) => start / 1000 - 900 + n * 30),
    )
    expect(view.series[0]?.points.at(-1)).toEqual([start / 1000, 1120])
    expect(view.spans).toEqual([lost])
  })

  it('means the samples of a step, and says null where there are none', async () => {
    await using world = await aWorld()
    await fill(world)
    const { series } = await historyOf(world, `${west}?metric=cpu_used&range=2h&step=10m`)
    const [first, , , , , , sixth, last] = series[0]?.points ?? []
    expect(first?.[1]).toBe(null)
    expect(sixth).toEqual([(start - 3_600_000) / 1000, 1010])
    expect(last).toEqual([(start - 3_000_000) / 1000, 1029.5])
  })

  it('shows no hole where a round began a moment late', async () => {
    await using world = await aWorld()
    await fill(world)
    const cluster = parseClusterName('west')
    for (const [n, late] of [-10, 10, 20].entries()) {
      const columns = [{ metric: 'clusterpulse_cluster_memory_used_bytes', values: Float64Array.of(n) }]
      const at = start - 600_000 + n * every + late
      const samples = {
        cluster,
        at,
        source: 'pull' as const,
        repaired: false,
        groups: [{ scope: 'cluster' as const, keys: [''], columns }],
      }
      await world.history.append([{ kind: 'samples', samples }])
    }
    const { series } = await historyOf(world, `${west}?metric=memory_used_bytes&range=11m&step=30`)
    expect(series[0]?.points.flatMap(([, value]) => value ?? [])).toEqual([0, 0, 1, 2])
  })

  it('wants a metric before anything else is looked at', async () => {
    await using world = await aWorld({}, {})
    for (const url of [
      west,
      `${west}?metric=`,
      `${west}?metric=,`,
      `${several}`,
      '/api/v1/clusters/nowhere/metrics/history',
      nodeA,
    ]) {
      const { status, body } = await world.get(url)
      expect([status, body], url).toEqual([
        400,
        { error: 'metric parameter required', code: 'metric_required', requestId: expect.any(String) },
      ])
    }
  })

  it('names the metrics of the scope to who asks for another', async () => {
    await using world = await aWorld()
    await fill(world)
    for (const [url, scope] of [
      [west, 'cluster'],
      [nodeA, 'node'],
      [`${several}?scope=clusterOperator`, 'clusterOperator'],
    ] as const) {
      const { status, body } = await world.get(`${url}${url.includes('?') ? '&' : '?'}metric=cpu_used,nonsense`)
      expect([status, (body as { code: string }).code], url).toEqual([400, 'unknown_metric'])
      for (const metric of metricsCatalogue.filter((one) => one.scope === scope))
        expect((body as { error: string }).error).toContain(metric.name)
    }
  })

  it('refuses a label, a query or a quote in the place of a metric', async () => {
    await using world = await aWorld()
    await fill(world)
    for (const metric of [
      'cpu_used{cluster="east"}',
      'cpu_used"} or up{a="',
      'clusterpulse_cluster_cpu_used',
      '__proto__',
      '*',
    ])
      expect((await world.get(`${west}?metric=${encodeURIComponent(metric)}`)).body, metric).toMatchObject({
        code: 'unknown_metric',
      })
    expect(world.history.asked).toEqual([])
  })

  it('is bounded in points and series, and says what would do', async () => {
    await using world = await aWorld()
    await fill(world)
    await world.batch('west', [
      complete(
        'node',
        Array.from({ length: 60 }, (_, n) => aNode(`n${n}`)),
      ),
    ])
    const points = await world.get(`${west}?metric=cpu_used&range=30d&step=1m`)
    expect([points.status, points.body]).toMatchObject([
      400,
      { code: 'too_many_points', error: expect.stringContaining('step=30m') },
    ])
    const series = await world.get(`${several}?metric=cpu_used`)
    expect([series.status, series.body]).toMatchObject([
      400,
      { code: 'too_many_series', error: expect.stringContaining('at most 50 of the 60') },
    ])
    const fewer = await world.get(`${several}?metric=cpu_used,pods_total&key=n1&key=n2`)
    expect(fewer.status).toBe(200)
    expect(world.history.asked.every(({ maxSeries }) => maxSeries === 50)).toBe(true)
  })
})

describe('history of several things', () => {
  it('has one series per metric and visible node, in the order asked', async () => {
    await using world = await aWorld()
    await fill(world)
    const { series } = await historyOf(world, `${several}?metric=pods_total,cpu_used&range=5m`)
    expect(series.map(({ metric, labels }) => [metric, labels.node])).toEqual([
      ['pods_total', 'a'],
      ['pods_total', 'b'],
      ['cpu_used', 'a'],
      ['cpu_used', 'b'],
    ])
    const one = await historyOf(world, `${several}?metric=cpu_used&key=b&key=nowhere`)
    expect(one.series.map(({ labels }) => labels)).toEqual([{ cluster: 'west', node: 'b' }])
    const none = await historyOf(world, `${several}?metric=cpu_used&key=nowhere`)
    expect(none.series).toEqual([])
  })

  it('comes as CSV, one row per time and node', async () => {
    await using world = await aWorld()
    await fill(world)
    const url = `${several}?metric=cpu_used,ready&range=5m&step=5m`
    const csv = await world.get(`${url}&format=csv`)
    expect(csv.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="west-node-history.csv"',
    })
    expect(csv.body).toBe(
      [
        'time,cluster,node,cpu_used,ready,simulated',
        '2025-12-31T23:55:00.000Z,west,a,114.5,,false',
        '2026-01-01T00:00:00.000Z,west,a,120,,false',
        '2025-12-31T23:55:00.000Z,west,b,214.5,,false',
        '2026-01-01T00:00:00.000Z,west,b,220,,false',
        '',
      ].join('\r\n'),
    )
    expect((await world.get(url, { accept: 'text/csv' })).body).toBe(csv.body)
    expect((await world.get(`${url}&format=json`, { accept: 'text/csv' })).headers['content-type']).toBe(
      'application/json',
    )
  })

  it.each([
    ['=HYPERLINK("http://x")', `"'=HYPERLINK(""http://x"")"`],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['-2+3', "'-2+3"],
    ['\n=1+1', `"'\n=1+1"`],
    ['\uff1d1+1', "'\uff1d1+1"],
  ])('keeps %j in the CSV a text, which a spreadsheet would run', (csv, cell) => {
    const points: (readonly [number, number])[] = [[0, -1]]
    const view = {
      ...{ start: 0, end: 60, step: 60, spans: [] },
      metrics: [{ name: 'operator_health', unit: '', title: 'Health' }],
      series: [{ metric: 'operator_health', labels: { cluster: 'west', operator: csv }, points }],
    }
    expect([...historyCsv(view as unknown as HistoryView)].join('')).toContain(`,west,${cell},-1,false\r\n`)
  })

  it('marks in the CSV what was made up for the demonstration', () => {
    const lines = historyCsv({
      ...{ start: 0, end: 120, step: 60 },
      metrics: [{ name: 'cpu_used', unit: 'cores', title: 'CPU' }],
      series: [
        {
          metric: 'cpu_used',
          labels: { cluster: 'west' },
          points: [
            [0, 1],
            [60, 2],
            [120, 3],
          ],
        },
      ],
      spans: [
        { kind: 'simulated', from: 0, to: 90_000, cause: '', count: 4 },
        { kind: 'pulled', from: 0, to: 120_000, cause: '', count: 5 },
      ],
    })
    expect(
      [...lines]
        .join('')
        .split('\r\n')
        .map((line) => line.split(',').slice(-2).join(',')),
    ).toEqual(['cpu_used,simulated', '1,true', '2,true', '3,false', ''])
  })

  it('is read by the client', async () => {
    await using world = await aWorld()
    await fill(world)
    const client = createClient({ baseUrl: await world.server.start() })
    const query = { metric: ['cpu_used', 'pods_total'], range: '15m' }
    expect((await client.nodeHistory('west', 'a', query)).series).toHaveLength(2)
    expect((await client.clusterHistory('west', { metric: ['cpu_used'] })).step).toBe(30)
    expect(
      (await client.history('west', { ...query, key: ['b'], start: start / 1000 - 600, range: '5m' })).series,
    ).toHaveLength(2)
    const csv = await fetch(client.historyCsvUrl('west', { ...query, scope: 'node', key: ['a'] }))
    expect((await csv.text()).split('\r\n')[0]).toBe('time,cluster,node,cpu_used,pods_total,simulated')
    await expect(client.clusterHistory('west', { metric: ['x'] })).rejects.toMatchObject({ code: 'unknown_metric' })
  })
})

describe('a caller who sees a part', () => {
  const ofWest = { clusters: ['west'] }
  const policies = [
    allow('whole', ofWest),
    allow('half', { ...ofWest, resources: [but('nodes', 'b')] }),
    // A filter counts although nothing is called so now.
    allow('tenant', { ...ofWest, resources: [but('namespaces', 'shop')] }),
    allow('unmeasured', { ...ofWest, metrics: false }),
    allow('podless', { ...ofWest, resources: [within('pods', 'shop')] }),
  ]
  const as = (user: string) => ({ 'x-forwarded-user': user })

  it('has 404 for hidden, removed and unknown nodes alike, and for clusters that are hidden or unknown', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await fill(world)
    const url = (cluster: string, node: string) =>
      `/api/v1/clusters/${cluster}/nodes/${node}/metrics/history?metric=cpu_used`
    expect((await world.get(url('west', 'a'), as('half'))).status).toBe(200)
    expect((await world.get(url('west', 'b'), as('whole'))).status).toBe(200)
    for (const node of ['b', 'removed', 'nowhere'])
      expect((await world.get(url('west', node), as('half'))).body, node).toEqual({
        error: `cluster west has no node ${JSON.stringify(node)} that you may see`,
        code: 'node_not_found',
        requestId: expect.any(String),
      })
    for (const cluster of ['east', 'nowhere'])
      for (const path of [
        `/api/v1/clusters/${cluster}/metrics/history`,
        `/api/v2/clusters/${cluster}/history`,
        url(cluster, 'a').split('?')[0],
      ])
        expect((await world.get(`${path}?metric=cpu_used`, as('half'))).body, path).toEqual({
          error: `there is no cluster "${cluster}" that you may see`,
          code: 'cluster_not_found',
          requestId: expect.any(String),
        })
  })

  it('has the series of visible nodes only, whoever asked the same before', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await fill(world)
    for (const key of ['', '&key=a&key=b']) {
      const all = await historyOf(world, `${several}?metric=cpu_used${key}`, as('whole'))
      const some = await historyOf(world, `${several}?metric=cpu_used${key}`, as('half'))
      expect(all.series.map(({ labels }) => labels.node)).toEqual(['a', 'b'])
      expect(some.series.map(({ labels }) => labels.node)).toEqual(['a'])
    }
    expect(world.history.asked.map(({ keys }) => keys)).toEqual([['a', 'b'], ['a']])
  })

  it('has no totals of the cluster', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await fill(world)
    for (const url of [`${west}?metric=cpu_used`, `${several}?scope=cluster&metric=cpu_used`]) {
      expect((await world.get(url, as('whole'))).status).toBe(200)
      for (const user of ['half', 'tenant'])
        expect(await world.get(url, as(user)), user).toMatchObject({ status: 403, body: { code: 'history_filtered' } })
    }
  })

  it('has no measurements where no policy grants them, whoever asked the same before', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await fill(world)
    for (const url of [`${west}?metric=cpu_used`, `${nodeA}?metric=cpu_used`, `${several}?metric=cpu_used`]) {
      expect((await world.get(url, as('whole'))).status).toBe(200)
      expect(await world.get(url, as('unmeasured')), url).toMatchObject({
        status: 403,
        body: { code: 'metrics_not_permitted' },
      })
    }
    const url = '/api/v1/clusters/west/nodes/a?include_metrics=true'
    expect((await world.get(url, as('unmeasured'))).body).not.toHaveProperty('metrics_history')
  })

  it('has nothing that is summed over pods that are hidden, whoever asked the same before', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await fill(world)
    const metrics = ({ series }: HistoryView) => series.map(({ metric }) => metric)
    const url = `${nodeA}?metric=cpu_used,pods_total`
    expect(metrics(await historyOf(world, url, as('whole')))).toEqual(['cpu_used', 'pods_total'])
    expect(metrics(await historyOf(world, url, as('podless')))).toEqual(['cpu_used'])
    const sample = (user: string) => world.get('/api/v1/clusters/west/nodes/a?include_metrics=true', as(user))
    expect(JSON.stringify((await sample('whole')).body)).toMatch(/"pods_total":120/)
    expect(JSON.stringify((await sample('podless')).body)).not.toMatch(/"pods_total":\d/)
  })

  it('without a name is not served', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await fill(world)
    for (const url of [west, nodeA, several]) expect((await world.get(`${url}?metric=cpu_used`)).status).toBe(401)
  })
})

describe('an answer of history', () => {
  it('is asked of the store once for many who ask at once and soon after, and again when its last point may have moved', async () => {
    await using world = await aWorld()
    await fill(world)
    let open: () => void = () => undefined
    world.history.before = () => new Promise((resolve) => (open = resolve))
    const asks = Array.from({ length: 5 }, () => world.get(`${west}?metric=cpu_used`))
    await expect.poll(() => world.history.asked.length, { timeout: 10_000 }).toBe(1)
    open()
    const answers = await Promise.all(asks)
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(1)
    world.history.before = async () => undefined
    world.clock.at += 7499
    await world.get(`${west}?metric=cpu_used`)
    expect(world.history.asked).toHaveLength(1)
    world.clock.at += 1
    const again = await world.get(`${west}?metric=cpu_used`, { 'if-none-match': String(answers[0]?.headers.etag) })
    expect(world.history.asked).toHaveLength(2)
    expect(again.status).toBe(304)
    await world.get(`${west}?metric=cpu_used&step=60`)
    expect(world.history.asked).toHaveLength(3)
  })

  it('without a number is not kept: the next question sees what came since', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.batch('west', [complete('node', [aNode('a')])])
    expect((await historyOf(world, `${west}?metric=cpu_used`)).series).toEqual([])
    await fill(world)
    expect((await historyOf(world, `${west}?metric=cpu_used`)).series).toHaveLength(1)
  })

  it('is not kept over what was added to the past', async () => {
    await using world = await aWorld()
    await fill(world)
    await historyOf(world, `${west}?metric=cpu_used`)
    await world.history.append([{ kind: 'lost', cluster: 'east', loss: aLoss }])
    await historyOf(world, `${west}?metric=cpu_used`)
    expect(world.history.asked).toHaveLength(1)
    await world.history.append([{ kind: 'lost', cluster: 'west', loss: aLoss }])
    await historyOf(world, `${west}?metric=cpu_used`)
    expect(world.history.asked).toHaveLength(2)
  })

  it('says how far a past that is being filled has come, where the range reaches into what is missing, and only then', async () => {
    const day = 86_400_000
    let filling: FillingView | undefined = { from: start - 30 * day, reached: start - 600_000, to: start }
    await using world = await aWorld({}, { filling: (name) => (name === 'west' ? filling : undefined) })
    await fill(world)
    const told = async (url: string) => (await historyOf(world, url)).filling
    expect(await told(`${west}?metric=cpu_used&range=1h`)).toEqual(filling)
    expect(await told(`${nodeA}?metric=cpu_used&range=1h`)).toEqual(filling)
    expect(await told(`${west}?metric=cpu_used&range=5m`)).toBeUndefined()
    expect(await told(`${west.replace('west', 'east')}?metric=cpu_used&range=1h`)).toBeUndefined()
    // What is further by now is no answer of before, and what is whole says nothing.
    filling = { ...filling, reached: start - 1_200_000 }
    expect(await told(`${west}?metric=cpu_used&range=1h`)).toEqual(filling)
    filling = undefined
    expect(await told(`${west}?metric=cpu_used&range=1h`)).toBeUndefined()
  })

  it('names what is missing up to now, from the last round on, until one comes', async () => {
    await using world = await aWorld()
    await fill(world)
    const open = async (query = 'range=15m') => (await historyOf(world, `${west}?metric=cpu_used&${query}`)).spans
    const last = start
    world.clock.at = last + 60_000
    expect(await open()).toEqual([])
    world.clock.at = last + 600_000
    const hole = { kind: 'lost', from: last, cause: 'not_received' }
    expect(await open()).toEqual([{ ...hole, to: last + 600_000, count: 20 }])
    world.clock.at = last + 900_000
    expect(await open('range=5m'), 'where all that is asked for is missing').toEqual([
      { ...hole, to: last + 900_000, count: 30 },
    ])
    const before = `start=${last / 1000 - 900}&end=${last / 1000 - 300}`
    expect(await open(before)).toEqual([])
    await world.batch('west', [complete('node', [aNode('a')])])
    expect(await open()).toEqual([])
    // A collector of the original has an interval of its own.
    await world.agent('west', { connected: true, protocol: 'original' })
    for (let n = 1; n <= 4; n++) {
      world.clock.at += 300_000
      await world.batch('west', [complete('node', [aNode('a')])], { source: 'push' })
    }
    world.clock.at += 590_000
    expect(await open()).toEqual([])
    world.clock.at += 20_000
    expect(await open()).toMatchObject([{ ...hole, from: world.clock.at - 610_000 }])
  })

  it('names what is missing up to now once, where an agent has said why before its next round came', async () => {
    await using world = await aWorld()
    await fill(world)
    const open = async () => (await historyOf(world, `${west}?metric=cpu_used&range=15m`)).spans
    world.clock.at = start + 600_000
    const named = { kind: 'lost' as const, from: start, to: start + 570_000, cause: 'agent_down', count: 18 }
    world.history.allSpans.push(named)
    expect(await open()).toEqual([named])
    world.clock.at += 300_000
    const rest = { kind: 'lost', from: named.to, to: start + 900_000, cause: 'not_received' }
    expect(await open()).toMatchObject([named, rest])
  })

  it('of a failed store is not kept', async () => {
    await using world = await aWorld()
    await fill(world)
    world.history.before = async () => Promise.reject(gone)
    expect((await world.get(`${west}?metric=cpu_used`)).status).toBe(502)
    world.history.before = async () => undefined
    expect((await world.get(`${west}?metric=cpu_used`)).status).toBe(200)
  })

  it('is a stable code for each way a store can fail, without the names of its hosts', async () => {
    await using world = await aWorld()
    await fill(world)
    const ask = async () => {
      const { status, body, headers } = await world.get(`${west}?metric=cpu_used`)
      expect(JSON.stringify(body)).not.toContain('inside')
      return [status, (body as { code: string }).code, headers['retry-after']]
    }
    world.history.told = { state: 'loading' }
    expect(await ask()).toEqual([503, 'history_unavailable', '5'])
    world.history.told = { state: 'unavailable', since: start, reason: 'history-0.inside: refused' }
    expect(await ask()).toEqual([503, 'history_unavailable', '5'])
    world.history.told = { state: 'available' }
    world.history.before = async () => Promise.reject(gone)
    expect(await ask()).toEqual([502, 'history_failed', '5'])
    world.history.before = async () => {
      world.history.told = { state: 'unavailable', since: start, reason: 'history-0.inside: refused' }
      throw gone
    }
    expect(await ask()).toEqual([503, 'history_unavailable', '5'])
    world.history.told = { state: 'available' }
    world.history.before = async () => Promise.reject(new DOMException('slow', 'TimeoutError'))
    expect(await ask()).toEqual([504, 'history_timeout', undefined])
    world.history.before = async () => Promise.reject(tooMany)
    expect(await ask()).toEqual([400, 'too_many_series', undefined])
  })

  it('is 501 with what to configure where no history is kept', async () => {
    await using world = await aWorld({}, { history: undefined } as object)
    await fill(world)
    for (const url of [west, nodeA, several]) {
      const { status, body } = await world.get(`${url}?metric=pods_total`)
      expect([status, body]).toMatchObject([
        501,
        { code: 'history_off', error: expect.stringMatching(/VM_ENABLED.*VM_ENDPOINT.*VictoriaMetrics/) },
      ])
    }
    expect((await world.get('/api/v1/clusters/nowhere/metrics/history?metric=cpu_used')).status).toBe(404)
  })

  it('gives up on a store that is asked too much', async () => {
    await using world = await aWorld()
    await fill(world)
    const opens: (() => void)[] = []
    world.history.before = () => new Promise((resolve) => opens.push(resolve))
    const asks = Array.from({ length: 64 }, (_, n) => world.get(`${west}?metric=cpu_used&range=${n + 5}m`))
    await expect.poll(() => opens.length, { timeout: 10_000 }).toBe(64)
    expect(await world.get(`${west}?metric=cpu_used&range=99m`)).toMatchObject({
      status: 503,
      body: { code: 'history_unavailable' },
    })
    for (const open of opens) open()
    expect((await Promise.all(asks)).every(({ status }) => status === 200)).toBe(true)
  })
})

describe('the documented node', () => {
  const url = '/api/v1/clusters/west/nodes/a'

  it('has its last samples, newest first, only when asked with exactly true', async () => {
    await using world = await aWorld()
    await fill(world)
    const plain = (await world.get(url)).body as Record<string, unknown>
    expect(plain).not.toHaveProperty('metrics_history')
    expect((await world.get(`${url}?include_metrics=1`)).body).toEqual(plain)
    const { metrics_history: samples, ...rest } = (await world.get(`${url}?include_metrics=true`)).body as Record<
      string,
      unknown
    >
    expect(rest).toEqual(plain)
    expect(samples).toHaveLength(100)
    expect((samples as unknown[])[0]).toEqual({
      timestamp: '2026-01-01T00:00:00Z',
      cpu_usage: null,
      memory_usage: null,
      cpu_requested: null,
      memory_requested: null,
      pods_running: null,
      pods_pending: null,
      pods_total: 120,
    })
    expect((samples as unknown[])[99]).toMatchObject({ timestamp: '2025-12-31T23:10:30Z', pods_total: 21 })
  })

  it('has an empty list where nothing was kept, and no history at all', async () => {
    await using world = await aWorld({}, { history: undefined } as object)
    await fill(world)
    expect((await world.get(`${url}?include_metrics=true`)).body).toMatchObject({ name: 'a', metrics_history: [] })
    expect((await world.get('/api/v1/clusters/west/nodes/nowhere?include_metrics=true')).status).toBe(404)
  })

  it('says so when the store fails, instead of an empty list', async () => {
    await using world = await aWorld()
    await fill(world)
    world.history.before = async () => Promise.reject(gone)
    expect((await world.get(`${url}?include_metrics=true`)).status).toBe(502)
    expect((await world.get(url)).status).toBe(200)
  })
})
