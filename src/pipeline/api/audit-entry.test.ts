import { describe, expect, it } from 'vitest'
import type { AuditEntry } from '#audit'
import { routes } from '#http'
import { aTrail, get, post } from './test/ask.ts'
import { allow, deny, only } from './test/policies.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, proxy, start, type World, type WorldConfig } from './test/world.ts'

const policies = [allow('ann', { clusters: ['west'], resources: [only('nodes', 'a')] }), deny('dora')]
const secret = 'a long password of the administrator'
const identity = { ...proxy, password: { username: 'root', secret } }

async function audited(config: WorldConfig = {}): Promise<{ world: World; entries: AuditEntry[] }> {
  const trail = aTrail()
  const world = await aWorld({ identity, policies, ...config }, { audit: trail })
  for (const name of ['west', 'east']) {
    await world.connect(name)
    await world.batch(name, [complete('node', [aNode('a'), aNode('b')])])
  }
  return { world, entries: trail.entries }
}

describe('the audit', () => {
  it('has one entry per request, with who, what, from where, and the policy that decided', async () => {
    const { world, entries } = await audited()
    await using _ = world
    const headers = { 'x-request-id': 'request-1' }
    await get(world, '/api/v2/clusters/west/nodes', { as: 'ann', groups: 'dev', headers })
    expect(entries).toEqual([
      {
        at: start,
        kind: 'access',
        requestId: 'request-1',
        username: 'ann',
        groups: ['dev'],
        method: 'trusted-proxy',
        address: '127.0.0.1',
        route: 'GET /api/v2/clusters/:name/nodes',
        resource: 'cluster west',
        status: 200,
        reason: '',
        policy: 'test/ann',
        policyHash: '0123456789abcdef',
      },
    ])
    await get(world, '/api/v2/clusters', { as: 'ann' })
    expect(entries[1]).toMatchObject({ kind: 'access', resource: 'fleet', policy: '' })
    expect(entries).toHaveLength(2)
  })

  it('calls it a denial where a cluster or a node is hidden, and not where there is none', async () => {
    const { world, entries } = await audited()
    await using _ = world
    await get(world, '/api/v2/clusters/east', { as: 'ann' })
    await get(world, '/api/v1/clusters/west', { as: 'dora' })
    await get(world, '/api/v2/clusters/west/nodes/b', { as: 'ann' })
    await get(world, '/api/v1/auth/explain?cluster=east', { as: 'ann' })
    await get(world, '/api/v2/clusters/nowhere', { as: 'ann' })
    await get(world, '/api/v2/clusters/west/nodes/c', { as: 'ann' })
    expect(
      entries.map(({ kind, resource, reason, policy, status }) => [kind, resource, reason, policy, status]),
    ).toEqual([
      ['denial', 'cluster east', 'the cluster is hidden', '', 404],
      ['denial', 'cluster west', 'the cluster is hidden', 'test/dora', 404],
      ['denial', 'node west/b', 'the node is hidden', 'test/ann', 404],
      ['denial', 'cluster east', 'the cluster is hidden', '', 404],
      ['access', 'cluster nowhere', expect.stringContaining('there is no cluster'), '', 404],
      ['access', 'node west/c', expect.stringContaining('has no node'), 'test/ann', 404],
    ])
  })

  it('has every request that was turned away, by whatever rule', async () => {
    const { world, entries } = await audited({ rateLimit: { perSecond: 1, burst: 1 } })
    await using _ = world
    await get(world, '/api/v2/clusters')
    await get(world, '/api/v2/access/policies', { as: 'ann' })
    await get(world, '/api/v2/clusters', { as: 'ann' })
    world.clock.at += 1000
    await post(world, '/api/v1/auth/logout', {}, { as: 'ann', headers: { origin: 'https://evil.example' } })
    expect(entries.map(({ kind, username, status }) => [kind, username, status])).toEqual([
      ['denial', '', 401],
      ['denial', 'ann', 403],
      ['denial', 'ann', 429],
      ['denial', 'ann', 403],
    ])
  })

  it('has sign-ins, failures and sign-outs, and never a password', async () => {
    const { world, entries } = await audited()
    await using _ = world
    await post(world, '/api/v1/auth/password', { username: 'root', password: 'a wrong password' })
    const { cookies } = await post(world, '/api/v1/auth/password', { username: 'root', password: secret })
    await post(world, '/api/v1/auth/logout', {}, { cookies })
    await get(world, '/api/v1/auth/callback?code=forged&state=forged')
    expect(entries.map(({ kind, username, method, status }) => [kind, username, method, status])).toEqual([
      ['sign_in_failed', 'root', 'password', 401],
      ['sign_in', 'root', 'password', 200],
      ['sign_out', 'root', 'password', 200],
      ['sign_in_failed', '', 'oidc', 404],
    ])
    expect(JSON.stringify(entries)).not.toMatch(/wrong password|long password/)
  })

  it('has what administrators do, and every request through the eyes of another with who looked', async () => {
    const { world, entries } = await audited()
    await using _ = world
    const { cookies: own } = await post(world, '/api/v1/auth/password', { username: 'root', password: secret })
    const view = await post(world, '/api/v2/access/view-as', { username: 'ann', groups: ['dev'] }, { cookies: own })
    const cookies = [...own, ...view.cookies]
    await get(world, '/api/v2/clusters', { cookies })
    await get(world, '/api/v2/clusters/east', { cookies })
    await post(world, '/api/v2/access/seen', { username: 'bob' }, { cookies })
    await post(world, '/api/v2/access/view-as/end', {}, { cookies })
    await post(world, '/api/v2/access/seen', { username: 'bob', groups: ['ops'] }, { cookies: own })
    await get(world, '/api/v1/auth/explain?cluster=west&as=carl', { cookies: own })
    await get(world, '/api/v2/access/policies', { cookies: own })
    expect(entries.slice(1).map(({ kind, username, actor, resource }) => [kind, username, actor, resource])).toEqual([
      ['view_as', 'root', undefined, 'the eyes of ann (dev)'],
      ['view_as', 'ann', 'root', 'fleet'],
      ['denial', 'ann', 'root', 'cluster east'],
      ['denial', 'ann', 'root', 'fleet'],
      ['view_as', 'ann', 'root', 'fleet'],
      ['administration', 'root', undefined, 'the eyes of bob (ops)'],
      ['administration', 'root', undefined, 'the eyes of carl'],
      ['administration', 'root', undefined, 'fleet'],
    ])
  })

  it('has a stream when it opens, once', async () => {
    const { world, entries } = await audited()
    await using _ = world
    const address = await world.server.start()
    const reader = await StreamReader.open(`${address}/api/v1/stream`, { 'x-forwarded-user': 'ann' })
    await reader.until((frames) => frames.length > 0)
    expect(entries).toMatchObject([{ kind: 'access', username: 'ann', route: 'GET /api/v1/stream', status: 200 }])
    const refused = await StreamReader.open(`${address}/api/v1/stream`)
    expect([refused.response.statusCode, entries[1]]).toMatchObject([401, { kind: 'denial', status: 401 }])
    reader.close()
    await world.server.stop()
    expect(entries).toHaveLength(2)
  })

  it('is silent about probes, the page and who one is', async () => {
    const { world, entries } = await audited()
    await using _ = world
    for (const { url } of routes.filter(({ access, url: one }) => access === 'public' && !one.includes('/auth/')))
      await get(world, url, { as: 'ann' })
    for (const url of ['/', '/clusters/west', '/nothing.js', '/api/v1/auth/status', '/api/v3'])
      await get(world, url, { as: 'ann' })
    expect(entries).toEqual([])
  })
})
