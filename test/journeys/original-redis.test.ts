import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compilePolicy } from '#access'
import { storeAsOriginal } from '../../src/pipeline/access/testing/original-writer.ts'
import { policy } from '../../src/pipeline/access/testing/words.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { originalCollection, originalNodeDocument, originalRound, originalSource } from '../original-manager.ts'
import { shown } from '../page/shown.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const noRedis = redisMissing === undefined ? '' : ` (not run: ${redisMissing})`
const T0 = Date.now() - 60_000

/** Our `api` in front of a Redis that only an original manager writes. */
describe.skipIf(noRedis !== '')(`api over the Redis of an original manager${noRedis}`, () => {
  let redis: TestRedis
  let hand: Redis
  const running: Running[] = []
  beforeAll(async () => {
    redis = await startRedis()
    hand = new Redis(redis.port)
    await west(T0)
    await originalRound(hand, { name: 'east', nodes: [{ name: 'e1' }] })
    await originalSource(hand)
    await originalCollection(hand, 'west', [
      { namespace: 'a', name: 'one', values: { phase: 'Bound', capacity: 5 } },
      { namespace: 'b', name: 'two', values: { phase: 'Bound', capacity: 7 } },
    ])
    const pvc = { type: 'pvc', visibility: 'filtered' as const, filters: { namespaces: { allowed: ['a'] } } }
    const rule = {
      selector: { matchNames: ['west'] },
      permissions: { view: true, viewMetrics: true },
      resources: [pvc],
    }
    await storeAsOriginal(
      hand,
      compilePolicy(policy('Allow', [rule], { users: ['alice'] }), { now: T0 }).document as never,
    )
  })
  /** Two rounds, the second at this time. */
  const west = async (last: number) => {
    const nodes = [{ name: 'n1' }, { name: 'n2', status: 'NotReady' as const }]
    for (const at of [last - 30_000, last])
      await originalRound(hand, { name: 'west', mode: 'push', nodes, namespaces: ['a', 'b'], at })
  }
  afterAll(async () => {
    for (const each of running) await each[Symbol.asyncDispose]()
    hand?.disconnect()
    await redis?.[Symbol.asyncDispose]()
  })

  async function anApi(env: Readonly<Record<string, string>> = {}) {
    const api = clusterpulse(['api', '--host', '127.0.0.1', '--port', '0'], {
      env: {
        REDIS_HOST: '127.0.0.1',
        REDIS_PORT: String(redis.port),
        TRUSTED_PROXIES: '127.0.0.1',
        ADMIN_USERS: 'root',
        ...env,
      },
    })
    running.push(api)
    const url = (await api.says(/http:\/\/[\d.:]+/))[0]
    const get = async (path: string, user = 'alice') => {
      const answer = await fetch(url + path, { headers: { 'X-Forwarded-User': user } })
      // biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes, compared below
      return { status: answer.status, body: (await answer.json()) as any }
    }
    return { api, get, url }
  }
  const both = { STATE_SOURCE: 'original', RBAC_SEMANTICS: 'original' }

  it('says within 5 s which keys are missing and what to do, as long as it is not told whose they are', async () => {
    let get: Awaited<ReturnType<typeof anApi>>['get'] = () => Promise.reject(new Error('nothing was started'))
    const saidAfterMs = await leastOf(3, 5_000, async () => {
      get = (await anApi()).get
      const from = Date.now()
      await eventually(
        () => get('/api/v1/clusters'),
        ({ body }) => body.code === 'state_missing',
      )
      return Date.now() - from
    })
    expect(saidAfterMs).toBeLessThan(5_000)
    const answer = await get('/api/v1/clusters')
    expect(answer.status).toBe(503)
    for (const said of ['clusterpulse:owners', 'takes over in place', 'docs/guide/migrate.md'])
      expect(answer.body.error).toContain(said)
    expect((await get('/readyz')).body.error).toContain('clusterpulse:owners')
    // Even what needs no state is not decided by policies that nothing proves to be complete.
    expect(await get('/api/v1/auth/policies')).toMatchObject({ status: 503, body: { code: 'policies_unavailable' } })
    expect((await get('/api/v1/session')).body.provisional).toBeNull()
  })

  it('refuses to start with one setting and not the other', async () => {
    const api = clusterpulse(['api', '--host', '127.0.0.1', '--port', '0'], { env: { STATE_SOURCE: 'original' } })
    running.push(api)
    expect(await api.ended()).not.toBe(0)
    expect(api.stderr()).toContain('STATE_SOURCE=original needs RBAC_SEMANTICS=original')
  })

  it('serves the documented keys to whom the policies there allow, and says that nothing proves them complete', async () => {
    const { get } = await anApi(both)
    // What is from before the API was there may be too old by now.
    const at = Date.now()
    await west(at)
    const { body: clusters } = await eventually(
      () => get('/api/v1/clusters'),
      ({ status }) => status === 200,
    )
    expect(clusters.map(({ name }: { name: string }) => name)).toEqual(['west'])
    expect(clusters[0]).toMatchObject({
      spec: { displayName: 'WEST', endpoint: 'https://west.example:6443' },
      status: { health: 'healthy', message: 'Collector push active' },
      metrics: { nodes: 2, pods: 20, pods_running: 14, deployments: 5, namespaces: 2 },
    })
    expect((await get('/api/v1/clusters', 'root')).body).toHaveLength(2)
    expect((await get('/api/v1/clusters', 'mallory')).body).toEqual([])
    // The first answers may be of what stood there before.
    const expected = originalNodeDocument({ name: 'n1' }, at)
    const { body: node } = await eventually(
      () => get('/api/v1/clusters/west/nodes/n1?include_metrics=true'),
      ({ body }) => body.timestamp === expected.timestamp,
    )
    expect(node).toMatchObject(expected)
    expect(node.metrics_history.map(({ cpu_usage }: { cpu_usage: number }) => cpu_usage)).toEqual([50, 50, 50, 50])
    const pvcs = (await get('/api/v1/clusters/west/custom/pvc')).body
    expect(pvcs.items.map(({ _name }: { _name: string }) => _name)).toEqual(['one'])
    expect(pvcs.aggregations).toEqual({ total: 1, bytes: 5 })
    expect((await get('/api/v1/session')).body.provisional).toContain('complete')
  })

  it.skipIf(noBrowser !== undefined)(
    `says so on every page, for as long as it is so${noBrowser ? ` (not run: ${noBrowser})` : ''}`,
    async () => {
      const { get, url } = await anApi(both)
      await eventually(
        () => get('/api/v1/clusters'),
        ({ status }) => status === 200,
      )
      const browser = await openBrowser()
      try {
        const page = await browser.newPage({ extraHTTPHeaders: { 'X-Forwarded-User': 'alice' } })
        const banner = page.getByRole('status').filter({ hasText: 'Not proved to be complete.' })
        for (const path of ['/', '/clusters/west', '/types', '/access']) {
          await page.goto(url + path)
          await banner.waitFor()
          await shown(banner, path).toContain('STATE_SOURCE')
          // Nothing takes it away.
          expect(await banner.getByRole('button').count(), path).toBe(0)
        }
      } finally {
        await browser.close()
      }
    },
  )

  it('follows what the manager announces', async () => {
    const { get } = await anApi(both)
    await eventually(
      () => get('/api/v1/clusters/west/nodes'),
      ({ body }) => body.length === 2,
    )
    await originalRound(hand, { name: 'west', mode: 'push', nodes: [{ name: 'n3' }], namespaces: ['a'] })
    await eventually(
      () => get('/api/v1/clusters/west/nodes'),
      ({ body }) => body.length === 3,
      20_000,
    )
    // A Deny that comes hides the cluster at once.
    const deny = policy('Deny', [{ selector: { matchNames: ['west'] } }], { users: ['alice'], priority: 500 })
    await storeAsOriginal(hand, compilePolicy(deny, { now: T0 }).document as never)
    await eventually(
      () => get('/api/v1/clusters'),
      ({ body }) => body.length === 0,
      20_000,
    )
  })
})
