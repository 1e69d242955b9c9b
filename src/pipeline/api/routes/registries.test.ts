import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import {
  type FleetPageView,
  getRegistry,
  listFleetRows,
  listRegistries,
  type RegistryDetailView,
  type RegistryView,
  type RouteContract,
  type TypeView,
  v1RegistriesStatus,
} from '#http'
import { minutes } from '#model'
import { MemoryRegistries, type ProbeResult, type RegistryFacts } from '#registry'
import { aTrail, get } from '../test/ask.ts'
import { allow, deny, none, only } from '../test/policies.ts'
import { aWorld, proxy, start, type World } from '../test/world.ts'
import type { ApiOptions } from '../types.ts'

const facts = (name: string, changes: Partial<RegistryFacts> = {}): RegistryFacts => ({
  name,
  displayName: `The ${name}`,
  endpoint: `https://${name}.example`,
  type: 'harbor',
  labels: {},
  insecure: false,
  skipTlsVerify: false,
  caPem: 'the-ca',
  allowPrivateRedirects: false,
  credentialsRef: { name: 'the-secret-name', namespace: 'the-secret-namespace' },
  intervalMs: 60_000,
  timeoutMs: 10_000,
  checkCatalog: true,
  catalogPageSize: 100,
  healthCheckPaths: [],
  ...changes,
})

const result = (changes: Partial<ProbeResult> = {}): ProbeResult => ({
  at: start,
  available: true,
  responseMs: 12,
  version: 'registry/2.0',
  features: { docker_v2_api: true },
  repositoryCount: 2,
  isCatalogTruncated: false,
  repositories: ['a', 'b'],
  health: 'healthy',
  message: 'Registry is healthy (response time: 12ms), 2 repositories',
  code: '',
  error: '',
  warnings: [],
  ...changes,
})

const refused = 'does not work with the credentials of Secret the-secret-namespace/the-secret-name: no'

/** ann sees quay only, bob gold registries, eve clusters and no registry. */
const policies = [
  allow('ann', { resources: [only('registries', 'quay')] }),
  allow('bob', { labels: { tier: 'gold' } }),
  allow('eve', { resources: [none('registries')] }),
  allow('all'),
  deny('not', { users: ['not'], priority: 200 }),
]

async function aFleet(options: Partial<ApiOptions> = {}): Promise<World & { registries: MemoryRegistries }> {
  const registries = await MemoryRegistries.open({ clock: { now: () => start, sleep: async () => undefined } })
  const world = await aWorld({ identity: proxy, policies }, { ...options, registries })
  await registries.declare(facts('quay'))
  await registries.declare(facts('harbor', { labels: { tier: 'gold' } }))
  await registries.declare(facts('new'))
  await registries.record('quay', result())
  await registries.record(
    'harbor',
    result({ health: 'degraded', warnings: [{ code: 'unauthorized', message: refused }] }),
  )
  return Object.assign(world, { registries })
}

const fits = ({ schema }: RouteContract, body: unknown) =>
  expect([...Compile(schema.response).Errors(body)]).toEqual([])

async function list(world: World, as: string): Promise<readonly RegistryView[]> {
  const { status, body } = await get(world, '/api/v2/registries', { as })
  expect(status).toBe(200)
  fits(listRegistries, body)
  return body.items as readonly RegistryView[]
}

const names = (views: readonly { readonly name: string }[]) => views.map(({ name }) => name)

describe('registries', () => {
  it('are listed by name, as far as policies show them', async () => {
    await using world = await aFleet()
    expect(names(await list(world, 'admin'))).toEqual(['harbor', 'new', 'quay'])
    expect(names(await list(world, 'all'))).toEqual(['harbor', 'new', 'quay'])
    expect(names(await list(world, 'ann'))).toEqual(['quay'])
    expect(names(await list(world, 'bob'))).toEqual(['harbor'])
    expect(await list(world, 'eve')).toEqual([])
    expect(await list(world, 'not')).toEqual([])
    expect(await list(world, 'nobody-knows')).toEqual([])
  })

  it('are told with what was found last, and what was never probed with nothing', async () => {
    await using world = await aFleet()
    const [, fresh, quay] = await list(world, 'admin')
    expect(quay).toMatchObject({
      ...{
        displayName: 'The quay',
        endpoint: 'https://quay.example',
        health: 'healthy',
        available: true,
        since: start,
      },
      ...{
        checkedAt: start,
        stale: false,
        responseMs: 12,
        version: 'registry/2.0',
        repositories: ['a', 'b'],
        recent: [12],
      },
    })
    expect(fresh).toMatchObject({ health: 'unknown', available: null, checkedAt: null, stale: false, responseMs: null })
  })

  it('of which nothing was heard for three intervals are stale, and their health is not known', async () => {
    await using world = await aFleet()
    world.clock.at = start + minutes(3) - 1
    expect((await list(world, 'ann'))[0]).toMatchObject({ health: 'healthy', stale: false })
    world.clock.at = start + minutes(3)
    const [quay] = await list(world, 'ann')
    expect(quay).toMatchObject({ health: 'unknown', available: true, stale: true })
    expect(quay?.message).toMatch(/^no news since 2026-01-01T00:00:00Z; before that: Registry is healthy/)
  })

  it('are told one by one with their measurements', async () => {
    await using world = await aFleet()
    const { status, body } = await get(world, '/api/v2/registries/quay', { as: 'ann' })
    expect(status).toBe(200)
    fits(getRegistry, body)
    expect((body as unknown as RegistryDetailView).measurements).toEqual([[start, 12, true]])
  })

  it('that are hidden answer as those that do not exist', async () => {
    await using world = await aFleet()
    const answers = ['harbor', 'nowhere', '__proto__'].map(async (name) => {
      const { status, body } = await get(world, `/api/v2/registries/${name}`, { as: 'ann' })
      const { requestId: _, ...rest } = body
      return JSON.stringify([status, rest]).replaceAll(name, '…')
    })
    const [hidden, ...absent] = await Promise.all(answers)
    expect(hidden).toContain('registry_not_found')
    for (const one of absent) expect(one).toBe(hidden)
  })

  it('that are hidden are told apart in the audit', async () => {
    const trail = aTrail()
    await using world = await aFleet({ audit: trail })
    for (const name of ['harbor', 'nowhere', 'quay']) await get(world, `/api/v2/registries/${name}`, { as: 'ann' })
    expect(trail.entries.map(({ kind, resource, reason }) => [kind, resource, reason])).toEqual([
      ['denial', 'registry harbor', 'the registry is hidden'],
      ['access', 'registry nowhere', expect.stringContaining('there is no registry')],
      ['access', 'registry quay', ''],
    ])
  })

  it('are not told to whom nobody knows', async () => {
    await using world = await aFleet()
    for (const url of ['/api/v2/registries', '/api/v2/registries/quay', '/api/v1/registries/status'])
      expect((await get(world, url)).status, url).toBe(401)
  })

  it('name the Secret of their credentials to administrators only, and what is in it to nobody', async () => {
    await using world = await aFleet()
    for (const url of ['/api/v2/registries', '/api/v2/registries/harbor', '/api/v1/registries/status']) {
      const { body } = await get(world, url, { as: 'bob' })
      expect(JSON.stringify(body), url).not.toMatch(/the-secret|the-ca/)
      const told = JSON.stringify((await get(world, url, { as: 'admin' })).body)
      expect(told.includes('the-secret-namespace/the-secret-name'), url).toBe(url.startsWith('/api/v2'))
    }
  })

  it('are answered with 304 until something changes', async () => {
    await using world = await aFleet()
    const first = await get(world, '/api/v2/registries', { as: 'ann' })
    const again = { as: 'ann', headers: { 'if-none-match': String(first.headers.etag) } }
    expect((await get(world, '/api/v2/registries', again)).status).toBe(304)
    await world.registries.record('quay', result({ at: start + 1000, responseMs: 13 }))
    const changed = await get(world, '/api/v2/registries', again)
    expect(changed.status).toBe(200)
    expect((changed.body as unknown as { items: RegistryView[] }).items[0]?.responseMs).toBe(13)
  })

  it('whose store is lost are answered from memory for a while, then refused', async () => {
    const registries = await MemoryRegistries.open()
    const lost: { since: number; reason: string }[] = []
    const reader = Object.assign(registries, { unavailable: () => lost[0] })
    await using world = await aWorld({ identity: proxy, policies }, { registries: reader as never })
    await registries.declare(facts('quay'))
    lost.push({ since: start, reason: 'away' })
    world.clock.at = start + 10_000
    expect(names(await list(world, 'ann'))).toEqual(['quay'])
    world.clock.at = start + 10_001
    for (const url of ['/api/v2/registries', '/api/v2/registries/quay', '/api/v1/registries/status'])
      expect(await get(world, url, { as: 'ann' }), url).toMatchObject({
        status: 503,
        body: { code: 'store_unavailable' },
      })
  })

  it('are none where the hub watches none', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    expect(await list(world, 'admin')).toEqual([])
    expect((await get(world, '/api/v2/registries/quay', { as: 'admin' })).status).toBe(404)
    expect((await get(world, '/api/v1/registries/status', { as: 'admin' })).body).toEqual([])
  })
})

describe('registries as rows', () => {
  const rowsOf = async (world: World, as: string, query = '') => {
    const { status, body } = await get(world, `/api/v2/rows/registries${query}`, { as })
    if (status === 200) fits(listFleetRows, body)
    return { status, ...(body as unknown as FleetPageView) }
  }

  it('are those of the list, worst first, with the same values', async () => {
    await using world = await aFleet()
    for (const as of ['admin', 'all', 'ann', 'bob', 'eve', 'not', 'nobody-knows']) {
      const listed = await list(world, as)
      const { items, total } = await rowsOf(world, as, '?sort=name')
      expect(names(items), as).toEqual(names(listed))
      expect(total).toBe(listed.length)
      for (const [at, { values, labels, cluster }] of items.entries()) {
        const { name: _, labels: said, version, code, error, ...view } = listed[at] as RegistryView
        const empty = { version: version || null, code: code || null, error: error || null }
        expect(values).toEqual({ ...view, ...empty })
        expect([labels, cluster]).toEqual([said, ''])
      }
    }
    expect(names((await rowsOf(world, 'admin', '?sort=health')).items)).toEqual(['harbor', 'new', 'quay'])
    expect(names((await rowsOf(world, 'admin', '?labels=tier%3Dgold')).items)).toEqual(['harbor'])
    expect(names((await rowsOf(world, 'admin', '?where=responseMs%3E1&sort=name')).items)).toEqual(['harbor', 'quay'])
    expect((await rowsOf(world, 'admin', '?cluster=prod')).total).toBe(0)
  })

  it('are a type of the list, counted as far as they are seen, and of no cluster', async () => {
    await using world = await aFleet()
    const typeFor = async (as: string, query = '') =>
      ((await get(world, `/api/v2/types${query}`, { as })).body as unknown as { items: TypeView[] }).items.find(
        ({ type }) => type === 'registries',
      )
    expect(await typeFor('all')).toMatchObject({ count: 3, sources: [{ scope: 'Fleet', isDeclared: false }] })
    expect((await typeFor('ann'))?.count).toBe(1)
    expect((await typeFor('ann'))?.clusters[0]?.aggregations).toEqual({ byHealth: { healthy: 1 } })
    expect(await typeFor('eve')).toBeUndefined()
    expect(await typeFor('all', '?cluster=a')).toBeUndefined()
    const { status, body } = await get(world, '/api/v2/types/Registry', { as: 'ann' })
    expect([status, body.type]).toEqual([200, 'registries'])
    for (const as of ['all', 'ann'])
      expect((await get(world, '/api/v2/clusters/a/types/registries', { as })).status, as).toBe(404)
  })

  it('are a file, for people and for programs', async () => {
    await using world = await aFleet()
    const csv = async (query: string) => {
      const url = `/api/v2/rows/registries?format=csv&columns=health&columns=responseMs&sort=name${query}`
      return (await world.server.app.inject({ url, headers: { host: 'hub.example', 'x-forwarded-user': 'ann' } })).body
    }
    expect(await csv('')).toBe('namespace,name,health,responseMs\r\n,quay,healthy,12\r\n')
    expect(await csv('&headings=labels')).toBe('Namespace,Name,Health,Response (ms)\r\n,quay,healthy,12\r\n')
  })

  it('change as probes and time do', async () => {
    await using world = await aFleet()
    const health = async () => (await rowsOf(world, 'ann')).items[0]?.values.health
    expect(await health()).toBe('healthy')
    await world.registries.record('quay', result({ at: start + 1000, health: 'degraded' }))
    expect(await health()).toBe('degraded')
    world.clock.at = start + minutes(3) + 1000
    expect(await health()).toBe('unknown')
  })

  it('whose store is lost are not counted as none', async () => {
    const registries = await MemoryRegistries.open()
    const lost: { since: number; reason: string }[] = []
    const reader = Object.assign(registries, { unavailable: () => lost[0] })
    await using world = await aWorld({ identity: proxy, policies }, { registries: reader as never })
    await registries.declare(facts('quay'))
    lost.push({ since: start, reason: 'away' })
    world.clock.at = start + 10_000
    expect((await rowsOf(world, 'all')).total).toBe(1)
    world.clock.at = start + 10_001
    expect((await rowsOf(world, 'all')).clusters[0]?.part).toMatchObject({
      ...{ outcome: 'unreachable', freshness: null },
      message: 'the store behind the hub does not answer',
    })
    const { body } = await get(world, '/api/v2/types/registries', { as: 'all' })
    expect(body.count).toBeNull()
  })
})

describe('registries as documented', () => {
  it('are name, spec and status in snake case, by name', async () => {
    await using world = await aFleet()
    const { body } = await get(world, '/api/v1/registries/status?include_response_time=true', { as: 'all' })
    fits(v1RegistriesStatus, body)
    const documents = body as unknown as { name: string; spec: object; status: object }[]
    expect(names(documents)).toEqual(['harbor', 'new', 'quay'])
    expect(documents[1]?.status).toEqual({})
    expect(documents[2]).toMatchObject({
      name: 'quay',
      spec: {
        ...{
          display_name: 'The quay',
          endpoint: 'https://quay.example',
          type: 'harbor',
          insecure: false,
          skip_tls: false,
        },
        labels: {},
        monitoring: { interval: 60, timeout: 10, check_catalog: true, max_catalog_entries: 100 },
      },
      status: {
        ...{ available: true, response_time: 12, version: 'registry/2.0', repository_count: 2 },
        ...{ features: { docker_v2_api: true }, repositories: ['a', 'b'], last_check: '2026-01-01T00:00:00Z' },
        ...{ health: 'healthy', phase: 'Connected' },
      },
    })
    expect(documents[2]?.status).not.toHaveProperty('error')
    expect(names((await get(world, '/api/v1/registries/status', { as: 'ann' })).body as never)).toEqual(['quay'])
  })

  it('tell why one is not available', async () => {
    await using world = await aFleet()
    const error = 'request failed: quay.example refuses connections'
    await world.registries.record(
      'quay',
      result({
        available: false,
        responseMs: null,
        health: 'unhealthy',
        code: 'unreachable',
        error,
        repositories: null,
      }),
    )
    const { body } = await get(world, '/api/v1/registries/status', { as: 'ann' })
    expect((body as unknown as { status: object }[])[0]?.status).toMatchObject({
      ...{ available: false, response_time: 0, error, phase: 'Error', health: 'unhealthy', repositories: null },
    })
  })
})
