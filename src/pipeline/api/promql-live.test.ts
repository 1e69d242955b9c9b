import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '#http'
import { all } from '../../../test/properties.ts'
import { narrowQuery } from './promql.ts'
import { MemoryHistory } from './test/memory-history.ts'
import { allow, but } from './test/policies.ts'
import { promql } from './test/random-promql.ts'
import { Victoria, victoriaPath } from './test/victoria.ts'
import { aNode, aWorld, complete, proxy, start, type World } from './test/world.ts'

// Two stores: `shared` has everything, `own` only what ann may see. Whatever ann asks through the hub, both answer alike;
// so nothing of the rest comes out by any way, not even through a sum, a join, or a name.
const metrics = [
  'up',
  'clusterpulse_cluster_pods_total',
  'a:b',
  'sum',
  'rate',
  'by',
  'count',
  'time',
  'step',
  'limit',
  'default',
  '_',
]
// All metrics of one node are equal: which of them VictoriaMetrics takes for `or` is chance.
const samples = (labels: string, base: number): string[] =>
  metrics.flatMap((metric) =>
    Array.from({ length: 20 }, (_, n) => `${metric}{${labels}} ${base + n} ${start - n * 30_000}`),
  )
const west = [
  ...samples('cluster="west",node="a",job="x",le="1"', 0),
  ...samples('cluster="west",node="b",job="x"', 0.5),
]
const rest = [
  ...samples('cluster="east",node="a",job="x",le="1",secret="east-secret"', 1e6),
  ...samples('cluster="west2",node="a",job="x"', 2e6),
  ...samples('cluster="wes",node="a",job="x"', 3e6),
  ...samples('cluster="a",node="a"', 4e6),
  ...samples('node="a",job="x",secret="nobody"', 5e6),
  'only_east{cluster="east"} 7 1767225600000',
  'target_info{cluster="east",job="x",instance="i"} 1 1767225600000',
]

const missing = victoriaPath === undefined && process.env.CI_REQUIRE_ALL !== '1'

describe.skipIf(missing)('PromQL on a real VictoriaMetrics (skipped where there is none)', () => {
  let shared: Victoria
  let own: Victoria
  let worldOfShared: World
  let worldOfOwn: World

  const policies = [
    allow('ann', { clusters: ['west'] }),
    allow('ben', { clusters: ['west', 'east'] }),
    allow('eve', { clusters: [] }),
    allow('half', { clusters: ['west'], resources: [but('nodes', 'b')] }),
  ]
  async function worldOn(victoria: Victoria): Promise<World> {
    const history = new MemoryHistory()
    history.promql = victoria
    const world = await aWorld({ identity: proxy, policies }, { history })
    for (const cluster of ['west', 'east']) {
      await world.connect(cluster)
      await world.batch(cluster, [complete('node', [aNode('a'), aNode('b')])])
    }
    return world
  }
  beforeAll(async () => {
    if (victoriaPath === undefined) throw new Error('victoria-metrics is not on the path')
    ;[shared, own] = await Promise.all([Victoria.start(victoriaPath), Victoria.start(victoriaPath)])
    await Promise.all([shared.write([...west, ...rest]), own.write(west)])
    ;[worldOfShared, worldOfOwn] = await Promise.all([worldOn(shared), worldOn(own)])
  })
  afterAll(async () => {
    for (const one of [worldOfShared, worldOfOwn, shared, own]) await one?.[Symbol.asyncDispose]()
  })

  interface Told {
    readonly status: number
    readonly body: { readonly data?: { readonly result?: readonly { metric: object; values: object }[] } }
  }
  async function ask(world: World, query: string, user = 'ann'): Promise<Told> {
    const time = new URLSearchParams({
      query,
      start: String(start / 1000 - 300),
      end: String(start / 1000),
      step: '60',
    })
    const { status, body } = await world.get(`/api/v1/query_range?${time}`, { 'x-forwarded-user': user })
    return { status, body: body as Told['body'] }
  }
  /** in one order, which is no part of an answer's meaning; which of several faults a backend names is chance */
  const plain = ({ status, body }: Told): unknown => {
    const result = (body.data?.result ?? []).map((series) => JSON.stringify(series)).sort()
    return { status, result }
  }

  it('answers what is asked of one’s own', async () => {
    const { status, body } = await ask(worldOfShared, 'sum by (cluster) (up)')
    expect([status, body.data?.result?.length]).toEqual([200, 1])
    expect(body.data?.result?.[0]?.metric).toEqual({ cluster: 'west' })
    const both = await ask(worldOfShared, 'count(up) by (cluster)', 'ben')
    expect(both.body.data?.result?.map(({ metric }) => metric)).toEqual([{ cluster: 'east' }, { cluster: 'west' }])
  })

  it.each([
    'up',
    'up{}',
    '{__name__="up"}',
    '{__name__=~".+"}',
    '{}',
    'up{cluster="east"}',
    'up{cluster=~"east|west"}',
    'up{cluster=~".*"}',
    'up{cluster!="west"}',
    'up{cluster!~"west"}',
    'up{cluster=""}',
    'up{cluster=~""}',
    'up{cluster=~"|east"}',
    'up{cluster="east",cluster="east"}',
    'up{secret!=""}',
    'up{node="a",}',
    'only_east',
    'absent(only_east)',
    'absent_over_time(only_east[5m])',
    'sum(up)',
    'sum without (cluster) (up)',
    'count(count by (cluster) (up))',
    'topk(10, up)',
    'bottomk(1, -up)',
    'quantile(1, up)',
    'count_values("v", up)',
    'max_over_time(up[5m])',
    'max_over_time(max(up)[5m:1m])',
    'max_over_time((up{cluster="east"} or up)[5m:1m])',
    'up or up{cluster="east"}',
    'up unless up{cluster="west"}',
    'up{cluster="east"} and on() up',
    'up * on() group_left(secret) max by (secret) (up)',
    'up * ignoring(cluster) group_right(cluster) up{cluster="east"}',
    'up + ignoring(cluster, secret, le) up{cluster="east"}',
    'label_replace(up, "cluster", "east", "", "")',
    'label_replace(up{cluster="east"}, "cluster", "west", "", "")',
    'label_join(up{cluster="east"}, "cluster", "", "job")',
    'up offset 1m',
    'up @ end()',
    'up @ 1767225600',
    'up offset -1m',
    'rate(up[5m]) > 0',
    'up == bool up{cluster="east"}',
    'scalar(only_east)',
    'vector(scalar(up{cluster="east"}))',
    'timestamp(up{cluster="east"})',
    'sort_desc(up)',
    'histogram_quantile(0.9, up)',
    'up # {cluster="west"}\n or up{cluster="east"}',
    'up{job="x"#"}\n,cluster="east"}',
    'up{job="} or up{"}',
    'up{job=`\\`} or up{cluster="east"} or up{job=`\\`}',
    "up{job='\\'} or up{cluster=\"east\"} or up{job=\\''}",
    'up{job="\\\\"} or up{cluster="east"}',
    'label_replace(up, "x", `\\`, "cluster", `, up) or up{cluster="east"} #`)',
    'by{cluster="east"}',
    'sum{cluster="east"}',
    'limit',
    'default',
    'a:b{cluster="east"}',
    'target_info',
    '((up))',
    '-up',
    'up ^ -up{cluster="east"}',
  ])('lets %j see nothing else', async (query) => {
    const answer = await ask(worldOfShared, query)
    expect(plain(answer)).toEqual(plain(await ask(worldOfOwn, query)))
    expect([200, 400]).toContain(answer.status)
    expect(JSON.stringify(answer.body)).not.toMatch(/secret|"wes"|west2|"(1|2|3|5)0{6}"/)
  })

  it.each([
    'up{cluster="west" or cluster="east"}',
    '{cluster="west" or __name__="up"}',
    'WITH (x = up{cluster="east"}) x',
    'with (f(a) = a) f(up)',
    'up default only_east',
    'up if only_east',
    'up ifnot only_east',
    'up limit 1',
    'sum(up) limit 5',
    'union(up, only_east)',
    '(up, only_east)',
    'label_set(up, "cluster", "east")',
    'alias(up, "x")',
    'info(up)',
    'up{__graphite__="*"}',
    '{"up"}',
    '{"up", "cluster"="east"}',
    'u\\p{cluster="east"}',
    'up{cl\\uster="east"}',
    'up[5m:1i]',
    'up offset 1i',
    'up{cluster="east',
    'up{cluster=east}',
    'up}',
    'up{cluster=~"a"} keep_metric_names',
    'up) or (up{cluster="east"}',
    'up\u2028{cluster="east"',
    'rollup(up[5m])',
    'count_values_over_time("x", up[5m])',
  ])('refuses %j', async (query) => {
    const { status, body } = await ask(worldOfShared, query)
    expect([status, body]).toMatchObject([400, { status: 'error', errorType: 'bad_data', code: 'query_refused' }])
  })

  it('answers any query as if the rest were not there', async () => {
    const counts = { answered: 0, refused: 0, different: 0 }
    await fc.assert(
      fc.asyncProperty(promql, async (query) => {
        // Which of several series stands for a group of on(), or comes first of equals, is chance, in one store as in two.
        fc.pre(!/\b(on|topk)\b/.test(query))
        const answer = await ask(worldOfShared, query)
        expect(plain(answer), query).toEqual(plain(await ask(worldOfOwn, query)))
        counts[answer.status === 200 ? 'answered' : 'refused'] += 1
        const [all, some] = [await ask(worldOfShared, query, 'ben'), await ask(worldOfOwn, query, 'ben')]
        if (JSON.stringify(plain(all)) !== JSON.stringify(plain(some))) counts.different += 1
      }),
      all({ numRuns: 150 }),
    )
    expect(counts.answered).toBeGreaterThan(50)
    // Who sees more gets more: else the two stores would answer alike however badly a query were narrowed.
    expect(counts.different).toBeGreaterThan(20)
  })

  it('is asked as a form, as dashboards do, and by the client', async () => {
    const user = { 'x-forwarded-user': 'ann', host: 'localhost', 'content-type': 'application/x-www-form-urlencoded' }
    const payload = new URLSearchParams({ query: 'up{node="a"}', time: String(start / 1000) }).toString()
    const form = await worldOfShared.server.app.inject({ method: 'POST', url: '/api/v1/query', headers: user, payload })
    expect(form.json()).toMatchObject({
      status: 'success',
      data: { resultType: 'vector', result: [{ metric: { cluster: 'west' } }] },
    })
    const client = createClient({ baseUrl: await worldOfShared.server.start(), headers: { 'x-forwarded-user': 'ann' } })
    const at = { start: start / 1000 - 60, end: start / 1000, step: 60 }
    expect((await client.promQlRange('up{node="a"}', at)).data).toMatchObject({
      resultType: 'matrix',
      result: [{ metric: { cluster: 'west' } }],
    })
    expect((await client.promQl('1+1')).data).toMatchObject({ resultType: 'scalar' })
    await expect(client.promQl('up{')).rejects.toMatchObject({ status: 400, code: 'query_refused' })
  })

  it('reads the matcher of a whole fleet as we do', async () => {
    const others = Array.from({ length: 1000 }, (_, n) => `wes-${n}.example`)
    const count = async (clusters: readonly string[]) => {
      const { body } = await shared.ask('query', {
        query: narrowQuery('count(up)', clusters),
        time: String(start / 1000),
      })
      return (body as { data: { result: { value: [number, string] }[] } }).data.result.map(({ value }) => value[1])
    }
    expect(await count([...others, 'west'])).toEqual(['2'])
    expect(await count([...others, 'east', 'west2', 'west'])).toEqual(['4'])
    expect(await count(others)).toEqual([])
  })

  it('is refused to who sees a cluster in part, and empty for who sees none', async () => {
    expect(await ask(worldOfShared, 'up', 'half')).toMatchObject({
      status: 403,
      body: { status: 'error', code: 'history_filtered' },
    })
    expect(await ask(worldOfShared, 'up', 'eve')).toMatchObject({
      status: 200,
      body: { data: { resultType: 'matrix', result: [] } },
    })
    expect((await ask(worldOfShared, 'up{', 'eve')).status).toBe(400)
  })

  it('passes nothing but the documented parameters to the backend', async () => {
    const extra = 'extra_label=cluster=east&extra_filters[]={cluster="east"}&nocache=1&trace=1&match[]=up'
    const { body } = await worldOfShared.get(`/api/v1/query?query=up&time=${start / 1000}&${extra}`, {
      'x-forwarded-user': 'ann',
    })
    expect(body).toEqual({
      status: 'success',
      data: { resultType: 'vector', result: [expect.anything(), expect.anything()] },
    })
  })

  it('answers the faults of the backend as faults of the query', async () => {
    const { status, body } = await ask(worldOfShared, 'label_replace(up, "a", "b", "cluster", "(")')
    expect([status, body]).toMatchObject([
      400,
      { errorType: 'bad_data', code: 'query_refused', error: expect.stringContaining('backend refuses') },
    ])
  })
})
