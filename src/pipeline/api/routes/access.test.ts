import fc from 'fast-check'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import {
  type AccessOfView,
  accessOf,
  authExplain,
  authPermissions,
  authPolicies,
  type ExplanationView,
  listPolicies,
  type PoliciesView,
  type PreviewView,
  previewPolicies,
  type RouteContract,
} from '#http'
import { get, post } from '../test/ask.ts'
import { allow, but, deny, only } from '../test/policies.ts'
import { aNode, aWorld, complete, proxy, start, type World } from '../test/world.ts'

const aNamespace = (name: string) => ({ name, phase: 'Active', createdAt: start, labels: { team: name } })

/** ann sees part of west, bob and the group ops all, carl no measurements, and dora nothing. */
const policies = [
  allow('ann', {
    clusters: ['west'],
    resources: [only('nodes', 'a'), but('namespaces', 'kube-*')],
    users: ['ann', 'eve'],
  }),
  allow('bob', { users: ['bob'], groups: ['ops'] }),
  allow('carl', { metrics: false }),
  deny('dora', { priority: 200 }),
  allow('everyone', { users: [], groups: ['staff'], clusters: '^east$', until: start + 60_000 }),
  allow('old', { users: ['ann'], until: start - 1000 }),
]

async function aFleet(): Promise<World> {
  const world = await aWorld({ identity: proxy, policies })
  for (const name of ['west', 'east']) {
    await world.connect(name)
    await world.batch(name, [
      complete('node', [aNode('a', { labels: { zone: '1' } }), aNode('b')]),
      complete('namespace', [aNamespace('shop'), aNamespace('kube-system')]),
    ])
  }
  return world
}

const fits = ({ schema }: RouteContract, body: unknown) =>
  expect([...Compile(schema.response).Errors(body)]).toEqual([])

describe('permissions', () => {
  const ask = async (world: World, as: string) => {
    const { body } = await get(world, '/api/v1/auth/permissions', { as })
    fits(authPermissions, body)
    return body as { clusters: Record<string, object>; summary: object; accessible_cluster_names: string[] }
  }

  it('are those that policies give, with their level, what is filtered, and who decided', async () => {
    await using world = await aFleet()
    const { clusters, accessible_cluster_names, summary } = await ask(world, 'ann')
    expect(accessible_cluster_names).toEqual(['west'])
    expect(summary).toEqual({ total_clusters: 1, accessible_clusters: 1 })
    expect(clusters.west).toMatchObject({
      permissions: ['view', 'view_metrics'],
      access_level: 'limited',
      visibility: { nodes: 'filtered', namespaces: 'filtered', operators: 'all' },
      filters: { nodes: { names: { allowed: ['a'], denied: [] } } },
      decided_by: { policy: 'test/ann', rule: 0, selected_by: 'name' },
    })
  })

  it('are full where nothing is kept back, limited without measurements, and none for strangers', async () => {
    await using world = await aFleet()
    expect((await ask(world, 'bob')).clusters.east).toMatchObject({ access_level: 'full', filters: {} })
    expect((await ask(world, 'carl')).clusters.east).toMatchObject({ access_level: 'limited', permissions: ['view'] })
    for (const as of ['dora', 'nobody']) expect((await ask(world, as)).clusters).toEqual({})
    expect((await ask(world, 'admin')).clusters.west).toMatchObject({ access_level: 'full', decided_by: null })
  })
})

describe('own policies', () => {
  it('come in the order in which they count, with their state, and name nobody else', async () => {
    await using world = await aFleet()
    const { body } = await get(world, '/api/v1/auth/policies', { as: 'ann', groups: 'staff,dev' })
    fits(authPolicies, body)
    expect(body).toMatchObject({ total_policies: 3, user: { username: 'ann', groups: ['staff', 'dev'] } })
    expect(body.evaluation_order).toEqual(['ann', 'everyone', 'old'])
    const own = body.policies as { source: string; state: string; policy: { users: string[]; groups: string[] } }[]
    expect(own.map(({ source, state }) => [source, state])).toEqual([
      ['user', 'Active'],
      ['group:staff', 'Active'],
      ['user', 'Expired'],
    ])
    expect(own.map(({ policy }) => policy.users)).toEqual([['ann'], [], ['ann']])
    expect(JSON.stringify(body)).not.toMatch(/"(eve|bob|ops)"/)
  })

  it('of a service account are found by its full name', async () => {
    await using world = await aFleet()
    const account = 'system:serviceaccount:ci:bot'
    await world.policies.put(
      { ...allow('bot', { users: [] }), service_accounts: [account, 'system:serviceaccount:ci:other'] },
      {},
    )
    const { body } = await get(world, '/api/v1/auth/policies', { as: account })
    expect(body).toMatchObject({ policies: [{ source: 'serviceaccount', policy: { service_accounts: [account] } }] })
  })
})

describe('explain', () => {
  const ask = (world: World, query: string, as: string, groups?: string) =>
    get(world, `/api/v1/auth/explain?${query}`, { as, ...(groups !== undefined && { groups }) })

  it('tells the caller which policy decided and what it hides', async () => {
    await using world = await aFleet()
    const { status, body } = await ask(world, 'cluster=west&type=nodes&name=b', 'ann')
    expect(status).toBe(200)
    fits(authExplain, body)
    const explanation = body as ExplanationView
    expect(explanation).toMatchObject({
      principal: { username: 'ann', administrator: false },
      result: 'partial',
      decidedBy: { policy: 'test/ann', rule: 0 },
      item: { shown: false },
    })
    expect(explanation.skipped.map(({ policy }) => policy)).toEqual(['test/old'])
    expect((await ask(world, 'cluster=west&type=nodes&name=a', 'ann')).body).toMatchObject({ item: { shown: true } })
  })

  it('of a hidden cluster is what it is of one that does not exist', async () => {
    await using world = await aFleet()
    for (const query of ['', '&type=nodes&name=a', '&action=view_metrics']) {
      const hidden = await ask(world, `cluster=east${query}`, 'ann')
      const unknown = await ask(world, `cluster=none${query}`, 'ann')
      expect(hidden.status).toBe(404)
      const told = JSON.stringify({ ...hidden.body, requestId: '' }).replaceAll('east', 'none')
      expect(told).toBe(JSON.stringify({ ...unknown.body, requestId: '' }))
    }
  })

  it('of a hidden item is what it is of one that does not exist', async () => {
    await using world = await aFleet()
    await world.policies.put(
      allow('gus', { resources: [{ type: 'nodes', visibility: 'filtered', labels: { zone: '2' } }] }),
      {},
    )
    const told = async (name: string) => {
      const { body } = await ask(world, `cluster=west&type=nodes&name=${name}`, 'gus')
      return JSON.stringify(body).replaceAll(`"${name}"`, '"x"')
    }
    expect(await told('a')).toBe(await told('nobody'))
    expect(await told('b')).toBe(await told('nobody'))
  })

  it('about others is for administrators, who see it with all that is known of the item', async () => {
    await using world = await aFleet()
    for (const query of ['cluster=west&as=bob', 'cluster=west&groups=ops', 'cluster=none&as=bob'])
      expect((await ask(world, query, 'ann')).body, query).toMatchObject({ code: 'administrators_only' })
    const { body } = await ask(world, 'cluster=west&as=dora', 'admin')
    expect(body).toMatchObject({ result: 'deny', decidedBy: { policy: 'test/dora' }, principal: { username: 'dora' } })
    const member = await ask(world, 'cluster=east&groups=ops', 'admin')
    expect(member.body).toMatchObject({ result: 'allow', decidedBy: { policy: 'test/bob' } })
    expect((await ask(world, 'cluster=none&as=bob', 'admin')).body).toMatchObject({ code: 'cluster_not_found' })
    expect((await ask(world, 'cluster=west', 'admin')).body).toMatchObject({ principal: { administrator: true } })
  })
})

describe('for administrators', () => {
  it('nothing is told to anybody else', async () => {
    await using world = await aFleet()
    expect((await get(world, '/api/v2/access/policies', { as: 'bob', groups: 'ops' })).body.code).toBe(
      'administrators_only',
    )
    for (const url of ['seen', 'view-as', 'preview']) {
      const { status, body } = await post(
        world,
        `/api/v2/access/${url}`,
        { username: 'ann', manifest: '' },
        { as: 'bob' },
      )
      expect([status, body.code], url).toEqual([403, 'administrators_only'])
    }
  })

  it('all policies come in order, with state and the clusters they select now', async () => {
    await using world = await aFleet()
    const { body } = await get(world, '/api/v2/access/policies', { as: 'admin' })
    fits(listPolicies, body)
    const { items, semantics } = body as PoliciesView
    expect(semantics).toBe('strict')
    expect(items.map(({ key, state, clusters }) => [key, state, clusters])).toEqual([
      ['test/dora', 'Active', ['east', 'west']],
      ['test/ann', 'Active', ['west']],
      ['test/bob', 'Active', ['east', 'west']],
      ['test/carl', 'Active', ['east', 'west']],
      ['test/everyone', 'Active', ['east']],
      ['test/old', 'Expired', ['east', 'west']],
    ])
    expect(items[1]).toMatchObject({
      users: ['ann', 'eve'],
      rules: [
        {
          selector: { names: ['west'], pattern: '' },
          permissions: ['view', 'view_metrics'],
          filters: { nodes: { visibility: 'filtered' } },
        },
      ],
    })
  })

  it('what a chosen person sees is counted beside what there is', async () => {
    await using world = await aFleet()
    const { body } = await post(world, '/api/v2/access/seen', { username: 'ann', groups: ['staff'] }, { as: 'admin' })
    fits(accessOf, body)
    const { items } = body as AccessOfView
    expect(items.map(({ cluster, level, counts }) => [cluster, level, counts.nodes, counts.namespaces])).toEqual([
      ['east', 'full', { shown: 2, of: 2 }, { shown: 2, of: 2 }],
      ['west', 'limited', { shown: 1, of: 2 }, { shown: 1, of: 2 }],
    ])
    const stranger = await post(world, '/api/v2/access/seen', { username: 'dora' }, { as: 'admin' })
    expect((stranger.body as AccessOfView).items).toMatchObject([
      { level: 'none', counts: { nodes: { shown: 0, of: 2 } } },
      { level: 'none', counts: { nodes: { shown: 0, of: 2 } } },
    ])
  })
})

const manifest = (name: string, spec: object) => ({
  apiVersion: 'clusterpulse.io/v1alpha1',
  kind: 'MonitorAccessPolicy',
  metadata: { name, namespace: 'test' },
  spec,
})
const allowing = (users: readonly string[], rule: object, more: object = {}) => ({
  identity: { subjects: { users }, ...more },
  access: { effect: 'Allow' },
  scope: { clusters: { rules: [rule] } },
})

describe('a preview', () => {
  const preview = async (world: World, body: object) => {
    const answer = await post(world, '/api/v2/access/preview', body, { as: 'admin' })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    fits(previewPolicies, answer.body)
    return answer.body as PreviewView
  }

  it('says who would see more or less, and stores nothing', async () => {
    await using world = await aFleet()
    const wider = manifest(
      'ann',
      allowing(['ann'], { selector: { matchNames: ['west', 'east'] }, permissions: { view: true, viewMetrics: true } }),
    )
    const { changes, findings, truncated, subjects } = await preview(world, { manifest: stringify(wider) })
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    expect([subjects, truncated]).toEqual([7, false]) // ann, eve, bob, carl, dora, and members of ops and of staff
    expect(changes.map(({ subject, cluster, before, after }) => [subject.username, cluster, before, after])).toEqual([
      ['ann', 'east', 'none', 'full'],
      ['ann', 'west', 'limited', 'full'],
      ['eve', 'west', 'limited', 'none'],
    ])
    expect(changes[0]).toMatchObject({ counts: { nodes: { before: 0, after: 2 } }, decidedBy: { policy: 'test/ann' } })
    expect((await get(world, '/api/v2/clusters', { as: 'ann' })).body).toMatchObject({ total: 1 })
  })

  it('of taking a policy away, and for somebody whom no policy names', async () => {
    await using world = await aFleet()
    const subjects = [{ username: 'zoe', groups: ['staff'] }]
    const { changes } = await preview(world, { manifest: '', remove: ['test/everyone', 'test/unknown'], subjects })
    expect(changes.map(({ subject, cluster, after }) => [subject, cluster, after])).toEqual([
      [{ username: 'zoe', groups: ['staff'] }, 'east', 'none'],
      [{ username: '', groups: ['staff'] }, 'east', 'none'],
    ])
  })

  it('of what is in force already changes nothing', async () => {
    await using world = await aFleet()
    const { changes, unchanged } = await preview(world, { manifest: '# nothing\n---\n' })
    expect([changes, unchanged]).toEqual([[], 14])
  })

  it('names what is wrong in each document, and leaves faulty ones out', async () => {
    await using world = await aFleet()
    const text = [
      stringify(manifest('bad', allowing(['ann'], { selector: { matchPattern: '[' } }))),
      stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } }),
      stringify({ ...manifest('', allowing([], {})), metadata: {} }),
      'a: [1, 2',
      stringify(manifest('none', { identity: 7 })),
    ].join('\n---\n')
    const { findings, changes } = await preview(world, { manifest: text })
    expect(changes).toEqual([])
    const found = new Set(findings.map(({ policy, code, severity }) => `${policy} ${severity} ${code}`))
    expect(found).toContain('document 2 warning not_a_policy')
    expect(found).toContain('document 3 error name_missing')
    expect(found).toContain('document 4 error manifest_unreadable')
    for (const policy of ['test/bad', 'test/none'])
      expect(
        findings.some((finding) => finding.policy === policy && finding.severity === 'error'),
        policy,
      ).toBe(true)
  })

  it('ends at a bound of subjects, and says so', async () => {
    await using world = await aFleet()
    const users = Array.from({ length: 600 }, (_, at) => `user-${at}`)
    const { subjects, truncated, changes } = await preview(world, {
      manifest: JSON.stringify(manifest('many', allowing(users, { selector: { matchNames: ['west'] } }))),
    })
    expect([subjects, truncated, changes.length > 400]).toEqual([500, true, true])
  })

  it.each([
    ['no body', undefined, 'bad_request'],
    ['a list', '[]', 'invalid_parameter'],
    ['half a body', '{"manifest":', 'bad_request'],
    ['a number for a text', '{"manifest":7}', 'invalid_parameter'],
    ['a text for a list', '{"manifest":"","remove":"test/ann"}', 'invalid_parameter'],
    ['a subject without a name', '{"manifest":"","subjects":[{}]}', 'invalid_parameter'],
    ['too much', `{"manifest":"${'x'.repeat(5_000_000)}"}`, 'body_too_large'],
  ])('refuses %s', async (_, payload, code) => {
    await using world = await aFleet()
    const response = await world.server.app.inject({
      method: 'POST',
      url: '/api/v2/access/preview',
      headers: { 'x-forwarded-user': 'admin', 'x-clusterpulse-request': '1', 'content-type': 'application/json' },
      ...(payload !== undefined && { payload }),
    })
    expect(response.json()).toMatchObject({ code })
  })
})

describe('whatever is sent', () => {
  it('is answered or refused, and never met by surprise', async () => {
    await using world = await aWorld({ identity: proxy, policies, rateLimit: { perSecond: 1e6, burst: 1e6 } })
    await world.connect('west')
    const subject = fc.record({ username: fc.string(), email: fc.string(), groups: fc.array(fc.string()) })
    const body = fc.oneof(
      fc.jsonValue(),
      subject,
      fc.record({
        manifest: fc.string(),
        remove: fc.array(fc.string()),
        subjects: fc.array(subject, { maxLength: 5 }),
      }),
    )
    const url = fc.constantFrom('seen', 'view-as', 'preview')
    await fc.assert(
      fc.asyncProperty(url, body, async (where, sent) => {
        const response = await world.server.app.inject({
          method: 'POST',
          url: `/api/v2/access/${where}`,
          headers: { 'x-forwarded-user': 'admin', 'x-clusterpulse-request': '1', 'content-type': 'application/json' },
          payload: JSON.stringify(sent),
        })
        expect(response.statusCode, response.body).toBeLessThan(500)
      }),
      { numRuns: 150 },
    )
    const query = fc.dictionary(
      fc.constantFrom('cluster', 'action', 'type', 'name', 'namespace', 'as', 'groups'),
      fc.oneof(fc.string(), fc.constantFrom('west', 'nodes', 'view', '*', '__proto__', 'constructor')),
    )
    await fc.assert(
      fc.asyncProperty(query, fc.constantFrom('ann', 'admin'), async (asked, as) => {
        const { status, body: told } = await get(world, `/api/v1/auth/explain?${new URLSearchParams(asked)}`, { as })
        expect(status, JSON.stringify(told)).toBeLessThan(500)
      }),
      { numRuns: 150 },
    )
  })
})
