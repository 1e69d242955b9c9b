import { beforeAll, describe, expect, it } from 'vitest'
import { type Answer, configMap, eventually, freshNamespace, type Subject, uniqueName } from './subject.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const GROUP = 'rbac.authorization.k8s.io'
const REVIEWS = '/apis/authorization.k8s.io/v1'
const SELF = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

type Rule = Readonly<Record<string, readonly string[]>>

/** Who may do what, by roles and bindings, and in whose name. */
export function accessBehaviour(subject: () => Subject): void {
  const ask: Subject['ask'] = (...args) => subject().ask(...args)

  /** Gives somebody new a role in a namespace, or ('') in the cluster; returns once it counts. */
  async function somebody(namespace: string, rules: readonly Rule[], user = uniqueName('user')): Promise<string> {
    const name = uniqueName('role')
    const at = namespace ? `${RBAC}/namespaces/${namespace}` : RBAC
    const kind = namespace ? 'Role' : 'ClusterRole'
    const plural = kind.toLowerCase()
    const settled = { verbs: ['settle'], apiGroups: [''], resources: [name] }
    const role = await ask('POST', `${at}/${plural}s`, { body: { metadata: { name }, rules: [...rules, settled] } })
    expect(role.code).toBe(201)
    const binding = await ask('POST', `${at}/${plural}bindings`, {
      body: { metadata: { name }, roleRef: { kind, name }, subjects: [{ kind: 'User', name: user }] },
    })
    expect(binding.code).toBe(201)
    const resourceAttributes = { verb: 'settle', resource: name, namespace }
    await eventually(
      () => ask('POST', `${REVIEWS}/subjectaccessreviews`, { body: { spec: { user, resourceAttributes } } }),
      ({ body }) => body.status.allowed,
    )
    return user
  }

  const on = (resources: string, verbs: string, apiGroups = '', resourceNames?: string): Rule => ({
    apiGroups: [apiGroups],
    resources: resources.split(','),
    verbs: verbs.split(','),
    ...(resourceNames ? { resourceNames: [resourceNames] } : {}),
  })

  describe('what roles allow', () => {
    let namespace: string
    beforeAll(async () => {
      namespace = await freshNamespace(subject())
      await ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, { body: configMap('one', { a: 'b' }) })
      await ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, { body: configMap('two') })
    })
    const at = (path = '') => `/api/v1/namespaces/${namespace}${path}`

    it('counts in its namespace and nowhere else', async () => {
      const as = { user: await somebody(namespace, [on('configmaps', 'list')]) }
      expect((await ask('GET', at('/configmaps'), { as })).code).toBe(200)
      const elsewhere = await ask('GET', '/api/v1/configmaps', { as })
      expect([elsewhere.code, elsewhere.body.message]).toEqual([
        403,
        `configmaps is forbidden: User "${as.user}" cannot list resource "configmaps" in API group "" at the cluster scope`,
      ])
      const one = await ask('GET', at('/configmaps/one'), { as })
      expect([one.code, one.body.message]).toEqual([
        403,
        `configmaps "one" is forbidden: User "${as.user}" cannot get resource "configmaps" in API group "" in the namespace "${namespace}"`,
      ])
    })

    it('lets who may see one object list and watch it by its name, and no other', async () => {
      const as = { user: await somebody(namespace, [on('configmaps', 'get,list,watch', '', 'one')]) }
      const listed = (fieldSelector: string) => ask('GET', at('/configmaps'), { as, query: { fieldSelector } })
      expect((await listed('metadata.name=one')).body.items).toHaveLength(1)
      expect((await listed('metadata.name==one')).code).toBe(200)
      const escaped = ['metadata.namespace!=x\\,metadata.name=one', 'metadata.name!=x\\,metadata.name=one']
      for (const other of ['metadata.name=two', 'metadata.name!=one', 'metadata.namespace=one', '', ...escaped])
        expect((await listed(other)).code).toBe(403)
      const watch = await ask('GET', at('/configmaps'), {
        as,
        query: { watch: '1', fieldSelector: 'metadata.name=one', timeoutSeconds: '1' },
      })
      expect(watch.code).toBe(200)
    })

    it('takes a namespace to be in itself', async () => {
      const as = { user: await somebody(namespace, [on('namespaces', 'get')]) }
      expect((await ask('GET', at(), { as })).code).toBe(200)
      expect((await ask('GET', '/api/v1/namespaces/default', { as })).code).toBe(403)
      expect((await ask('GET', '/api/v1/namespaces', { as })).code).toBe(403)
    })

    it('keeps the parts of an object apart from the object', async () => {
      const as = { user: await somebody(namespace, [on('pods/status', 'get,patch')]) }
      expect((await ask('GET', at('/pods/none/status'), { as })).code).toBe(404)
      expect((await ask('GET', at('/pods/none'), { as })).code).toBe(403)
    })

    it('asks for the right to create also where a patch or a replacement creates', async () => {
      const rules = [on('configmaps', 'patch,update,get'), on('leases', 'update', 'coordination.k8s.io')]
      const as = { user: await somebody(namespace, rules) }
      const apply = (name: string) =>
        ask('PATCH', at(`/configmaps/${name}`), {
          as,
          body: configMap(name, { applied: 'yes' }),
          type: 'application/apply-patch+yaml',
          query: { fieldManager: 'suite', force: 'true' },
        })
      expect((await apply('one')).code).toBe(200)
      const made = await apply('three')
      expect([made.code, made.body.reason]).toEqual([403, 'Forbidden'])
      const lease = await ask('PUT', `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/new`, {
        as,
        body: { metadata: { name: 'new' }, spec: {} },
      })
      expect(lease.code).toBe(403)
      expect((await ask('GET', at('/configmaps/three'))).code).toBe(404)
    })

    it('tells deleting one from deleting all', async () => {
      const as = { user: await somebody(namespace, [on('secrets', 'delete')]) }
      expect((await ask('DELETE', at('/secrets'), { as })).code).toBe(403)
      expect((await ask('DELETE', at('/secrets/none'), { as })).code).toBe(404)
    })

    it('opens paths that are no resources by their names', async () => {
      const as = { user: await somebody('', [{ verbs: ['get'], nonResourceURLs: ['/readyz/*'] }]) }
      expect((await ask('GET', '/readyz/ping', { as })).code).toBe(200)
      const hidden = await ask('GET', '/metricsx', { as })
      expect([hidden.code, hidden.body.message]).toEqual([
        403,
        `forbidden: User "${as.user}" cannot get path "/metricsx"`,
      ])
    })

    it('lets everybody who is known discover the API and ask about themselves', async () => {
      const as = { user: uniqueName('user') }
      for (const path of ['/api', '/apis', '/apis/apps/v1', '/openapi/v3', '/version'])
        expect((await ask('GET', path, { as })).code).toBe(200)
      expect((await ask('POST', SELF, { as, body: {} })).body.status.userInfo).toMatchObject({
        username: as.user,
        groups: ['system:authenticated'],
      })
    })
  })

  describe('in the name of another', () => {
    const whoami = async (asked: Parameters<Subject['ask']>[2]): Promise<Answer> =>
      ask('POST', SELF, { body: {}, ...asked })

    it('is who was asked for, with the groups of a service account, and known or not', async () => {
      const info = async (user: string, groups?: string[]) =>
        (await whoami({ as: { user, ...(groups ? { groups } : {}) } })).body.status?.userInfo
      expect(await info('ann', ['dev', 'ops'])).toMatchObject({
        username: 'ann',
        groups: ['dev', 'ops', 'system:authenticated'],
      })
      expect(await info('system:serviceaccount:ci:robot')).toMatchObject({
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ci', 'system:authenticated'],
      })
      expect(await info('system:serviceaccount:ci:robot', ['dev'])).toMatchObject({
        groups: ['dev', 'system:authenticated'],
      })
      // Nobody who is unknown may ask who they are.
      const unknown = await whoami({ as: { user: 'system:anonymous' } })
      expect([unknown.code, unknown.body.message]).toEqual([403, expect.stringContaining('User "system:anonymous"')])
      const details = await whoami({
        as: { user: 'ann' },
        headers: { 'impersonate-uid': 'u-1', 'impersonate-extra-example.com%2fteam': 'red' },
      })
      expect(details.body.status.userInfo).toMatchObject({ uid: 'u-1', extra: { 'example.com/team': ['red'] } })
      expect((await whoami({ headers: { 'impersonate-group': 'dev' } })).code).toBe(400)
    })

    it('needs the right for each part of the name', async () => {
      // The caller is an administrator acting as somebody: who acts as that one in turn is not said. So it is asked as a review.
      const namespace = await freshNamespace(subject())
      const user = await somebody('', [
        on('users', 'impersonate', '', 'ann'),
        on('groups', 'impersonate', '', 'dev'),
        on('userextras/team', 'impersonate', 'authentication.k8s.io', 'red'),
      ])
      await somebody(namespace, [on('serviceaccounts', 'impersonate')], user)
      const may = async (group: string, resource: string, name: string, more: object = {}) => {
        const resourceAttributes = { verb: 'impersonate', group, resource, name, ...more }
        const spec = { user, resourceAttributes }
        return (await ask('POST', `${REVIEWS}/subjectaccessreviews`, { body: { spec } })).body.status.allowed
      }
      expect(await may('', 'users', 'ann')).toBe(true)
      expect(await may('', 'users', 'bob')).toBe(false)
      expect(await may('', 'groups', 'system:masters')).toBe(false)
      expect(await may('authentication.k8s.io', 'userextras', 'red', { subresource: 'team' })).toBe(true)
      expect(await may('authentication.k8s.io', 'userextras', 'red', { subresource: 'scopes' })).toBe(false)
      expect(await may('', 'serviceaccounts', 'robot', { namespace })).toBe(true)
      expect(await may('', 'serviceaccounts', 'robot', { namespace: 'default' })).toBe(false)
    })
  })

  describe('granting', () => {
    it('lets nobody grant what they do not hold, unless they may escalate or bind', async () => {
      const namespace = await freshNamespace(subject())
      const at = `${RBAC}/namespaces/${namespace}`
      const write = on('roles,rolebindings', 'create,update,get', GROUP)
      const as = { user: await somebody(namespace, [write, on('pods', 'get,list')]) }
      const role = (name: string, ...rules: Rule[]) => ({ metadata: { name }, rules })
      expect((await ask('POST', `${at}/roles`, { as, body: role('mine', on('pods', 'get')) })).code).toBe(201)
      const more = await ask('POST', `${at}/roles`, { as, body: role('more', on('pods', 'get,delete')) })
      expect([more.code, more.body.message]).toEqual([
        403,
        `roles.rbac.authorization.k8s.io "more" is forbidden: user "${as.user}" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}`,
      ])
      const grown = { ...role('mine', on('secrets', 'get')) }
      expect((await ask('PUT', `${at}/roles/mine`, { as, body: grown })).code).toBe(403)
      const binding = (name: string, kind: string, roleName: string) => ({
        metadata: { name },
        roleRef: { apiGroup: GROUP, kind, name: roleName },
        subjects: [{ kind: 'User', name: 'ann' }],
      })
      expect((await ask('POST', `${at}/rolebindings`, { as, body: binding('mine', 'Role', 'mine') })).code).toBe(201)
      const admin = binding('admin', 'ClusterRole', 'cluster-admin')
      expect((await ask('POST', `${at}/rolebindings`, { as, body: admin })).code).toBe(403)
      expect((await ask('POST', `${at}/rolebindings`, { as, body: binding('none', 'Role', 'none') })).code).toBe(404)
      await somebody(namespace, [on('clusterroles', 'bind', GROUP, 'cluster-admin')], as.user)
      expect((await ask('POST', `${at}/rolebindings`, { as, body: admin })).code).toBe(201)
    })

    it('refuses rules and subjects that mean nothing, and a binding that would change its role', async () => {
      const namespace = await freshNamespace(subject())
      const at = `${RBAC}/namespaces/${namespace}`
      const faults = async (path: string, body: object): Promise<string[]> =>
        ((await ask('POST', path, { body })).body.details?.causes ?? []).map(({ field }: { field: string }) => field)
      const metadata = { name: uniqueName('bad') }
      const rules = [
        { verbs: [], apiGroups: [], resources: ['pods'] },
        { verbs: ['get'], nonResourceURLs: ['/x'] },
      ]
      expect(await faults(`${at}/roles`, { metadata, rules })).toEqual([
        'rules[0].verbs',
        'rules[0].apiGroups',
        'rules[1].nonResourceURLs',
      ])
      const subjects = [{ kind: 'Robot', name: 'x' }, { kind: 'User' }, { kind: 'ServiceAccount', name: 'a:b' }]
      const roleRef = { kind: 'ClusterRole', name: 'view' }
      expect(await faults(`${RBAC}/clusterrolebindings`, { metadata, roleRef, subjects })).toEqual(
        expect.arrayContaining(['subjects[0].kind', 'subjects[1].name', 'subjects[2].name', 'subjects[2].namespace']),
      )
      expect(await faults(`${RBAC}/clusterrolebindings`, { metadata, roleRef: { kind: 'Role', name: 'x' } })).toEqual([
        'roleRef.kind',
      ])
      const made = await ask('POST', `${at}/rolebindings`, { body: { metadata, roleRef } })
      const other = { ...made.body, roleRef: { ...made.body.roleRef, name: 'edit' } }
      const changed = await ask('PUT', `${at}/rolebindings/${metadata.name}`, { body: other })
      expect([changed.code, changed.body.details?.causes?.[0]?.field]).toEqual([422, 'roleRef'])
    })
  })

  describe('reviews', () => {
    it.each([
      ['subjectaccessreviews', { user: 'ann' }],
      ['subjectaccessreviews', { resourceAttributes: { verb: 'get', resource: 'pods' } }],
      ['subjectaccessreviews', { user: 'a', resourceAttributes: {}, nonResourceAttributes: {} }],
      ['selfsubjectaccessreviews', {}],
      ['namespaces/default/localsubjectaccessreviews', { user: 'a', resourceAttributes: { namespace: 'other' } }],
      ['namespaces/default/localsubjectaccessreviews', { user: 'a', nonResourceAttributes: { path: '/' } }],
    ])('refuse a question that cannot be meant: %s %j', async (path, spec) => {
      const body = path.startsWith('namespaces') ? { metadata: { namespace: 'default' }, spec } : { spec }
      const { code } = await ask('POST', `${REVIEWS}/${path}`, { body })
      expect(code).toBe(422)
    })

    it('answer for another, for a namespace, and for oneself', async () => {
      const namespace = await freshNamespace(subject())
      const user = await somebody(namespace, [on('pods', 'list')])
      const resourceAttributes = { verb: 'list', resource: 'pods', namespace }
      const local = await ask('POST', `${REVIEWS}/namespaces/${namespace}/localsubjectaccessreviews`, {
        body: { metadata: { namespace }, spec: { user, resourceAttributes } },
      })
      expect(local.body.status).toMatchObject({
        allowed: true,
        reason: expect.stringMatching(/^RBAC: allowed by RoleBinding ".*" of Role ".*" to User ".*"$/),
      })
      const own = (spec: object) => ask('POST', `${REVIEWS}/selfsubjectaccessreviews`, { as: { user }, body: { spec } })
      expect((await own({ resourceAttributes })).body.status.allowed).toBe(true)
      expect((await own({ resourceAttributes: { ...resourceAttributes, namespace: '' } })).body.status).toEqual({
        allowed: false,
      })
      const rules = await ask('POST', `${REVIEWS}/selfsubjectrulesreviews`, {
        as: { user },
        body: { spec: { namespace } },
      })
      expect(rules.body.status.resourceRules).toContainEqual({ verbs: ['list'], apiGroups: [''], resources: ['pods'] })
      const nowhere = await ask('POST', `${REVIEWS}/selfsubjectrulesreviews`, { as: { user }, body: { spec: {} } })
      expect(nowhere.code).toBe(400)
      // Who may ask about others is said by a role as well.
      const others = await ask('POST', `${REVIEWS}/subjectaccessreviews`, {
        as: { user },
        body: { spec: { user: 'ann', resourceAttributes } },
      })
      expect(others.code).toBe(403)
    })
  })
}
