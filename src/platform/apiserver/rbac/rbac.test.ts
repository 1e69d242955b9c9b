import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aServer, clientOf, listening } from '../test/server.ts'
import type { ApiObject } from '../types.ts'
import { Authorizer } from './authorizer.ts'
import { RBAC } from './objects.ts'
import { type Attempt, ruleAllows, uncovered } from './rule.ts'
import { seedDefaultRoles } from './seed.ts'
import { NAMESPACES, RandomRbac, type Somebody } from './test/random-world.ts'

const seeds = fc.integer()
const named = (plural: string) => ({ group: RBAC, version: 'v1', plural })

const userOf = ({ user, groups }: Somebody) => ({ name: user, groups })
function attemptOf(random: RandomRbac, world = random.world('none')): Attempt {
  const { resourceAttributes, nonResourceAttributes } = random.question(world)
  return nonResourceAttributes ?? (resourceAttributes as Attempt)
}

const bindTo = (name: string, user: string): ApiObject => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: `${name}-${user}` },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
  subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
})

describe('the check of what is granted', () => {
  it('lets nothing through that the granter could not do', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = new RandomRbac(seed)
        const held = [...random.rules(true), ...random.rules(true)]
        const wanted = [...random.rules(true), ...held.slice(0, 1)]
        const missing = uncovered(held, wanted)
        const world = random.world('none')
        for (let asked = 0; asked < 20; asked++) {
          const attempt = attemptOf(random, world)
          const granted = wanted.some((rule) => ruleAllows(rule, attempt))
          if (!granted || held.some((rule) => ruleAllows(rule, attempt))) continue
          // What the granter cannot do is in what is named as missing.
          expect(missing.some((rule) => ruleAllows(rule, attempt))).toBe(true)
        }
      }),
    )
  })

  it('finds nothing missing in what somebody holds', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const rules = new RandomRbac(seed).rules(true)
        expect(uncovered(rules, rules)).toEqual([])
        expect(
          uncovered(
            [
              { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
              { verbs: ['*'], nonResourceURLs: ['*'] },
            ],
            rules,
          ),
        ).toEqual([])
      }),
    )
  })
})

describe('decisions', () => {
  it('follow every write, as if all bindings were read anew', async () => {
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        const server = await aServer()
        for (const name of NAMESPACES)
          await server.objects.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
        const random = new RandomRbac(seed)
        const worlds = [random.world('r'), random.world('r')]
        const all = worlds.flatMap((world) => [
          ...world.clusterRoles,
          ...world.roles,
          ...world.clusterRoleBindings,
          ...world.roleBindings,
        ])
        for (const object of all) {
          await server.objects.put(object)
          if (random.chance(0.2)) {
            const gone = random.one(all)
            await server.objects.delete(named(`${gone.kind.toLowerCase()}s`), gone.metadata)
          }
        }
        const anew = new Authorizer(server.store)
        for (let asked = 0; asked < 50; asked++) {
          const user = userOf(random.somebody())
          const attempt = attemptOf(random, random.one(worlds))
          expect(server.authorizer.decide(user, attempt).allowed).toBe(anew.decide(user, attempt).allowed)
        }
      }),
      { numRuns: 10 },
    )
  })

  it('end with the binding, the role, or the rule, for open connections too', async () => {
    const server = await aServer({ defaultRoles: true })
    const { client } = await listening(server, 'viewer-token')
    const list = async () => (await client.ask('GET', '/api/v1/configmaps')).code
    expect(await list()).toBe(403)
    await server.objects.create(bindTo('view', 'viewer'))
    await expect.poll(list).toBe(200) // once "view" has collected its rules
    expect((await client.ask('GET', '/api/v1/secrets')).code).toBe(403)
    await server.objects.delete(named('clusterrolebindings'), { name: 'view-viewer' })
    expect(await list()).toBe(403)
  })

  it("takes each part of another's name by its own right", async () => {
    const server = await aServer({ defaultRoles: true })
    const { client } = await listening(server, 'viewer-token')
    const whoami = (headers: Record<string, string>) =>
      client.ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {}, headers })
    const may = (name: string, resources: string[], apiGroups: string[], resourceNames: string[]) =>
      server.objects.create({
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRole',
        metadata: { name },
        rules: [{ verbs: ['impersonate'], apiGroups, resources, resourceNames }],
      })
    expect((await whoami({ 'impersonate-user': 'ann' })).body.message).toBe(
      'users "ann" is forbidden: User "viewer" cannot impersonate resource "users" in API group "" at the cluster scope',
    )
    await may('ann', ['users'], [''], ['ann'])
    await server.objects.create(bindTo('ann', 'viewer'))
    expect((await whoami({ 'impersonate-user': 'ann' })).body.status.userInfo.username).toBe('ann')
    for (const more of [
      { 'impersonate-group': 'system:masters' },
      { 'impersonate-uid': '1' },
      { 'impersonate-extra-scopes': 'x' },
    ]) {
      const answer = await whoami({ 'impersonate-user': 'ann', ...more })
      expect([answer.code, answer.warnings.join()]).toEqual([403, expect.stringContaining('cannot impersonate')])
    }
    expect((await whoami({ 'impersonate-user': 'bob' })).code).toBe(403)
    expect((await whoami({ 'impersonate-user': 'system:serviceaccount:default:ann' })).code).toBe(403)
    for (const headers of [{ 'impersonate-user': '' }, { 'impersonate-group': 'dev' }, { 'impersonate-other': 'x' }])
      expect((await whoami(headers)).code).toBe(400)
    await may('groups', ['groups', 'uids', 'userextras/scopes'], ['', 'authentication.k8s.io'], ['dev', '1', 'x'])
    await server.objects.create(bindTo('groups', 'viewer'))
    const whole = { 'impersonate-group': 'dev', 'impersonate-uid': '1', 'impersonate-extra-scopes': 'x' }
    expect((await whoami({ 'impersonate-user': 'ann', ...whole })).body.status.userInfo).toEqual({
      username: 'ann',
      uid: '1',
      groups: ['dev', 'system:authenticated'],
      extra: { scopes: ['x'] },
    })
  })
})

describe('the roles every cluster has', () => {
  it('get back what they lost and keep what was added, unless they are to be left alone', async () => {
    const server = await aServer({ defaultRoles: true })
    const role = (name: string) => server.objects.get(named('clusterroles'), { name }) as ApiObject
    const change = async (name: string, annotation: string) => {
      const { metadata, ...rest } = role(name)
      const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': annotation }
      await server.objects.update({ ...rest, metadata: { ...metadata, annotations }, rules: [extra] })
    }
    const extra = { verbs: ['get'], apiGroups: ['mine'], resources: ['things'] }
    await change('system:basic-user', 'true')
    await change('system:discovery', 'false')
    await server.objects.delete(named('clusterrolebindings'), { name: 'cluster-admin' })
    await seedDefaultRoles(server.objects)
    expect(role('system:discovery').rules).toEqual([extra])
    const mended = role('system:basic-user').rules as object[]
    expect(mended[0]).toEqual(extra)
    expect(mended).toContainEqual({
      verbs: ['create'],
      apiGroups: ['authentication.k8s.io'],
      resources: ['selfsubjectreviews'],
    })
    expect(server.objects.get(named('clusterrolebindings'), { name: 'cluster-admin' })).toBeDefined()
    const before = server.objects.resourceVersion
    await seedDefaultRoles(server.objects)
    expect(server.objects.resourceVersion).toBe(before)
  })

  it('collect what is labelled for them, through one another, and let go of it', async () => {
    const server = await aServer({ defaultRoles: true })
    const held = (name: string) => (server.objects.get(named('clusterroles'), { name })?.rules ?? []) as object[]
    const rule = { verbs: ['get'], apiGroups: ['clusterpulse.io'], resources: ['clusterconnections'] }
    await server.objects.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'mine', labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } },
      rules: [rule],
    })
    await expect
      .poll(() =>
        ['view', 'edit', 'admin'].every((name) =>
          held(name).some((own) => JSON.stringify(own) === JSON.stringify(rule)),
        ),
      )
      .toBe(true)
    await server.objects.delete(named('clusterroles'), { name: 'mine' })
    await expect.poll(() => held('admin').some((own) => JSON.stringify(own) === JSON.stringify(rule))).toBe(false)
  })
})

describe('a watch of somebody whose rights are taken', () => {
  it('ends before it tells anything more, and goes on where other rights moved', async () => {
    const server = await aServer()
    await seedDefaultRoles(server.objects)
    await server.objects.create(bindTo('view', 'viewer'))
    const { listener } = await listening(server)
    const viewer = clientOf(listener, 'viewer-token')
    await using watching = await viewer.watch('/api/v1/namespaces/default/configmaps', { resourceVersion: '0' })
    const make = (name: string) =>
      server.objects.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } })
    await make('before')
    expect((await watching.next())?.object.metadata.name).toBe('before')
    await server.objects.create(bindTo('edit', 'somebody-else'))
    await make('meanwhile')
    expect((await watching.next())?.object.metadata.name).toBe('meanwhile')
    await server.objects.delete(named('clusterrolebindings'), { name: 'view-viewer' })
    await make('after')
    await make('later')
    expect(await watching.next()).toMatchObject({ type: 'ERROR', object: { reason: 'Forbidden', code: 403 } })
    expect(await watching.next()).toBeUndefined()
  })
})
