import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MemoryHistory } from './test/memory-history.ts'
import { allow } from './test/policies.ts'
import { Victoria, victoriaPath } from './test/victoria.ts'
import { aNode, aWorld, complete, proxy, start, type World } from './test/world.ts'

const at = start / 1000
const nodes = 'clusterpulse_cluster_nodes_total'
const cpu = 'clusterpulse_node_cpu_usage_percent'
const lines = ['west', 'east'].flatMap((cluster) =>
  Array.from({ length: 10 }, (_, n) => start - n * 30_000).flatMap((time) => [
    `${nodes}{cluster="${cluster}"} 2 ${time}`,
    `${cpu}{cluster="${cluster}",node="${cluster}-a"} 50 ${time}`,
  ]),
)
lines.push(`clusterpulse_cluster_pods_total{cluster="west"} 7 ${start - 20 * 86_400_000}`)

const promtool = [process.env.PROMTOOL_ASSETS ?? '', ...(process.env.PATH ?? '').split(delimiter)]
  .map((folder) => join(folder, 'promtool'))
  .find((path) => existsSync(path))
const required = process.env.CI_REQUIRE_ALL === '1'

describe.skipIf(victoriaPath === undefined && !required)(
  'what tools of Prometheus ask (needs victoria-metrics)',
  () => {
    let victoria: Victoria
    let world: World
    let url: string

    beforeAll(async () => {
      if (victoriaPath === undefined) throw new Error('victoria-metrics is not on the path')
      victoria = await Victoria.start(victoriaPath)
      await victoria.write(lines)
      const history = new MemoryHistory()
      history.promql = victoria
      const policies = [allow('ann', { clusters: ['west'] }), allow('eve', { clusters: [] })]
      world = await aWorld({ identity: proxy, policies }, { history })
      for (const cluster of ['west', 'east']) {
        await world.connect(cluster)
        await world.batch(cluster, [complete('node', [aNode(`${cluster}-a`)])])
      }
      url = await world.server.start()
    })
    afterAll(async () => {
      for (const one of [world, victoria]) await one?.[Symbol.asyncDispose]()
    })

    async function ask(method: string, path: string, words: string, user = 'ann') {
      const headers = { 'x-forwarded-user': user, 'content-type': 'application/x-www-form-urlencoded' }
      const asked =
        method === 'GET'
          ? fetch(`${url}${path}?${words}`, { headers })
          : fetch(url + path, { method, headers, body: words })
      const response = await asked
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        body: (await response.json()) as { data: unknown },
      }
    }
    const range = `start=${at - 3600}&end=${at}`
    const match = (selector: string) => `match[]=${encodeURIComponent(selector)}`

    // In the order in which Grafana's data source asks: "Save & test", the kind of server, the query builder, a panel.
    it.each<[string, string, string, unknown]>([
      ['POST', '/api/v1/query', `query=1%2B1&time=${at}`, { resultType: 'scalar', result: [at, '2'] }],
      ['GET', '/api/v1/query', `query=1%2B1&time=${at}`, { resultType: 'scalar', result: [at, '2'] }],
      ['GET', '/api/v1/status/buildinfo', '', expect.objectContaining({ version: '2.55.0' })],
      ['GET', '/api/v1/rules', '', { groups: [] }],
      [
        'GET',
        '/api/v1/metadata',
        '',
        expect.objectContaining({ [cpu]: [{ type: 'gauge', help: 'CPU usage', unit: 'percent' }] }),
      ],
      ['GET', '/api/v1/metadata', `metric=${nodes}`, { [nodes]: [{ type: 'gauge', help: 'Nodes', unit: '' }] }],
      ['GET', '/api/v1/labels', range, ['__name__', 'cluster', 'node']],
      ['POST', '/api/v1/labels', range, ['__name__', 'cluster', 'node']],
      ['POST', '/api/v1/labels', `${range}&${match(nodes)}&limit=40000`, ['__name__', 'cluster']],
      ['GET', '/api/v1/label/__name__/values', `${range}&limit=40000`, [nodes, cpu]],
      ['GET', '/api/v1/label/__name__/values', `${range}&${match('{node!=""}')}`, [cpu]],
      ['GET', '/api/v1/label/cluster/values', range, ['west']],
      ['GET', '/api/v1/label/cluster/values', match('{cluster="east"}'), []],
      ['GET', '/api/v1/label/node/values', `${range}&${match(`${cpu}{cluster="west"}`)}`, ['west-a']],
      ['GET', '/api/v1/label/none/values', range, []],
      [
        'GET',
        '/api/v1/series',
        `${range}&${match('{cluster=~".+"}')}&limit=1000`,
        expect.arrayContaining([
          { __name__: nodes, cluster: 'west' },
          { __name__: cpu, cluster: 'west', node: 'west-a' },
        ]),
      ],
      ['POST', '/api/v1/series', `${range}&${match(nodes)}&${match(cpu)}`, expect.objectContaining({ length: 2 })],
      [
        'POST',
        '/api/v1/series',
        match('clusterpulse_cluster_pods_total'),
        [{ __name__: 'clusterpulse_cluster_pods_total', cluster: 'west' }],
      ],
      ['POST', '/api/v1/series', `${range}&${match('clusterpulse_cluster_pods_total')}`, []],
      ['POST', '/api/v1/query_exemplars', `${range}&query=${nodes}`, []],
      ['GET', '/api/v1/query_exemplars', `${range}&query=${nodes}`, []],
      [
        'POST',
        '/api/v1/query_range',
        `query=1&start=${at - 60}&end=${at}&step=60`,
        {
          resultType: 'matrix',
          result: [
            {
              metric: {},
              values: [
                [at - 60, '1'],
                [at, '1'],
              ],
            },
          ],
        },
      ],
      [
        'POST',
        '/api/v1/query',
        `query=${nodes}&time=${at}`,
        { resultType: 'vector', result: [{ metric: { __name__: nodes, cluster: 'west' }, value: [at, '2'] }] },
      ],
      ['POST', '/api/v1/query', `query=scalar(none)&time=${at}`, { resultType: 'scalar', result: [at, 'NaN'] }],
      ['POST', '/api/v1/query', `query="a%5C"b"&time=${at}`, { resultType: 'string', result: [at, 'a"b'] }],
      ['POST', '/api/v1/query', `query=${nodes}[2m]&time=${at}`, expect.objectContaining({ resultType: 'matrix' })],
    ])('%s %s?%s', async (method, path, words, data) => {
      const { status, body } = await ask(method, path, words)
      expect([status, body]).toEqual([200, { status: 'success', data }])
    })

    it.each([
      ['GET', '/api/v1/series', '', 400, 'bad_data'],
      ['POST', '/api/v1/series', '', 400, 'bad_data'],
      ['POST', '/api/v1/series', match('up['), 400, 'bad_data'],
      ['POST', '/api/v1/labels', match('rate(up[5m])'), 400, 'bad_data'],
      ['GET', '/api/v1/labels', 'limit=many', 400, 'bad_data'],
      ['GET', '/api/v1/labels', 'start=2&end=1', 400, 'bad_data'],
      ['GET', '/api/v1/label/a-b/values', '', 400, 'bad_data'],
      ['POST', '/api/v1/query_exemplars', 'query=up[', 400, 'bad_data'],
      ['POST', '/api/v1/query_range', `query="a"&${range}&step=60`, 400, 'bad_data'],
      ['GET', '/api/v1/query_range', `query=up[5m]&${range}&step=60`, 400, 'bad_data'],
      ['POST', '/api/v1/label/node/values', '', 405, 'execution'],
      ['GET', '/api/v1/status/flags', '', 404, 'not_found'],
      ['GET', '/api/v1/targets', '', 404, 'not_found'],
      ['GET', '/api/v1/', '', 404, 'not_found'],
    ])('refuses %s %s?%s with %d in the words of Prometheus: %s', async (method, path, words, status, errorType) => {
      const answer = await ask(method, path, words)
      expect(answer).toMatchObject({ status, body: { status: 'error', errorType, error: expect.any(String) } })
    })

    it('warns where it leaves something out', async () => {
      for (const path of ['/api/v1/labels', '/api/v1/label/__name__/values', '/api/v1/series']) {
        const { body } = await ask('GET', path, `${match('{cluster="west"}')}&limit=1`)
        expect(body, path).toMatchObject({ data: { length: 1 }, warnings: ['results truncated due to limit'] })
      }
      const both = await ask('GET', '/api/v1/query', `query=${nodes}&time=${at}&limit=1`, 'admin')
      expect(both.body).toMatchObject({ data: { result: { length: 1 } }, warnings: ['results truncated due to limit'] })
    })

    it('tells an administrator of all clusters and who sees none of none', async () => {
      const values = async (user: string) => (await ask('GET', '/api/v1/label/cluster/values', '', user)).body.data
      expect([await values('admin'), await values('eve')]).toEqual([['east', 'west'], []])
      expect((await ask('GET', '/api/v1/query', `query=1%2B1&time=${at}`, 'eve')).body.data).toEqual({
        resultType: 'scalar',
        result: [at, '2'],
      })
    })

    describe.skipIf(promtool === undefined && !required)(
      'promtool, from PROMTOOL_ASSETS or the path (scripts/build-promtool.sh)',
      () => {
        async function query(...words: readonly string[]): Promise<string> {
          if (promtool === undefined) throw new Error('promtool is missing: scripts/build-promtool.sh builds it')
          const config = join(import.meta.dirname, 'test/promtool-http.yaml')
          const { stdout } = await promisify(execFile)(promtool, [
            'query',
            words[0] ?? '',
            `--http.config.file=${config}`,
            ...words.slice(1),
          ])
          return stdout.trim()
        }
        const time = new Date(start).toISOString()

        it.each([
          [['instant', '--time', time], ['1+1'], `scalar: 2 @[${at}]`],
          // Of a string promtool says that it does not know the type: its library reads none.
          [['instant', '--time', time], [nodes], `${nodes}{cluster="west"} => 2 @[${at}]`],
          [
            ['range', '--start', String(at - 60), '--end', String(at), '--step', '1m'],
            [nodes],
            `${nodes}{cluster="west"} =>\n2 @[${at - 60}]\n2 @[${at}]`,
          ],
          [
            ['series', '--match', nodes, '--match', `${cpu}{cluster="east"}`],
            [],
            `{__name__="${nodes}", cluster="west"}`,
          ],
          [['labels'], ['cluster'], 'west'],
          [['labels', '--match', '{cluster="east"}'], ['cluster'], ''],
        ])('query %j %j', async ([kind = '', ...flags], rest, printed) => {
          expect(await query(kind, ...flags, url, ...rest)).toContain(printed)
          if (printed === '') expect(await query(kind, ...flags, url, ...rest)).toBe('')
        })

        it('prints what is wrong with a query', async () => {
          await expect(query('instant', url, 'up{')).rejects.toThrow(/bad_data.*no PromQL/s)
        })
      },
    )
  },
)
