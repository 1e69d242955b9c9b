import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type AdmissionRule, managedCluster, managedClusterSetBinding, ocmAdmission, ocmKinds } from '#kinds'
import { aRequest, signingRequest, subjectOfMember } from '../authority/test/requests.ts'
import type { WriteObserver } from './admission.ts'
import type { ApiServer, ApiServerOptions } from './server.ts'
import { aDirectory, aServer, listening } from './test/server.ts'
import type { ApiObject } from './types.ts'

const CLUSTERS = '/apis/cluster.open-cluster-management.io/v1/managedclusters'
const SET = 'cluster.open-cluster-management.io/clusterset'
const RBAC = 'rbac.authorization.k8s.io'

const aCluster = (spec: object = {}, metadata: object = {}) => ({
  apiVersion: managedCluster.apiVersion,
  kind: 'ManagedCluster',
  metadata: { name: 'west', ...metadata },
  spec,
})

async function aHub(
  admission: readonly AdmissionRule[] = ocmAdmission,
  options: Partial<ApiServerOptions> = {},
): Promise<ApiServer> {
  const server = await aServer({
    ...options,
    admission,
    defaultRoles: true,
    converters: ocmKinds.flatMap((kind) => kind.converters),
  })
  for (const kind of ocmKinds) await server.objects.put(kind.crd({ converts: true }) as unknown as ApiObject)
  return server
}

/** Lets the viewer do more than look. */
async function allow(server: ApiServer, name: string, ...rules: readonly object[]): Promise<void> {
  await server.objects.create({ apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name }, rules })
  await server.objects.create({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: 'viewer' }],
  })
}

const may = (group: string, resource: string, ...verbs: readonly string[]) => ({
  apiGroups: [group],
  resources: [resource],
  verbs,
})
const CG = managedCluster.group
const RG = 'register.open-cluster-management.io'

describe('admission', () => {
  it('completes what is written before its schema is checked, whichever way it is written', async () => {
    const server = await aHub()
    const { client } = await listening(server)
    const made = await client.ask('POST', CLUSTERS, { body: aCluster() })
    expect(made).toMatchObject({
      code: 201,
      body: { metadata: { labels: { [SET]: 'default' } }, spec: { hubAcceptsClient: false, leaseDurationSeconds: 60 } },
    })
    const patched = await client.ask('PATCH', `${CLUSTERS}/west`, {
      type: 'application/merge-patch+json',
      body: { metadata: { labels: { [SET]: null } }, spec: { taints: [{ key: 'a', effect: 'NoSelect' }] } },
    })
    expect(patched.body.metadata.labels).toEqual({ [SET]: 'default' })
    expect(Date.parse(patched.body.spec.taints[0].timeAdded)).toBeGreaterThan(0)
    const applied = await client.ask('PATCH', `${CLUSTERS}/east`, {
      type: 'application/apply-patch+yaml',
      query: { fieldManager: 'me' },
      body: aCluster({}, { name: 'east' }),
    })
    expect(applied).toMatchObject({ code: 201, body: { metadata: { labels: { [SET]: 'default' } } } })
    // Written again as it is, nothing changes: not the time of the taint, not the version.
    const again = await client.ask('PUT', `${CLUSTERS}/west`, { body: patched.body })
    expect(again.body.metadata.resourceVersion).toBe(patched.body.metadata.resourceVersion)
  })

  it('refuses with a Status that names the rule and the field, and stores nothing', async () => {
    const server = await aHub()
    const { client } = await listening(server)
    const body = aCluster({ managedClusterClientConfigs: [{ url: 'http://west' }] })
    const refused = await client.ask('POST', CLUSTERS, { body })
    expect(refused).toMatchObject({
      code: 422,
      body: {
        reason: 'Invalid',
        message: expect.stringMatching(/admission rule "managedclusters\.admission\.clusterpulse\.io" denied .*https/),
        details: { name: 'west', causes: [{ field: 'spec.managedClusterClientConfigs[0].url' }] },
      },
    })
    expect((await client.ask('GET', `${CLUSTERS}/west`)).code).toBe(404)
  })

  it('asks what the caller may do, beside the write itself', async () => {
    const server = await aHub()
    const { client: admin, listener } = await listening(server)
    const { clientOf } = await import('./test/server.ts')
    const viewer = clientOf(listener, 'viewer-token')
    await allow(server, 'clusters', may(CG, 'managedclusters', 'create', 'get', 'update', 'delete'))
    const noSet = await viewer.ask('POST', CLUSTERS, { body: aCluster() })
    expect(noSet).toMatchObject({ code: 403, body: { reason: 'Forbidden' } })
    expect(noSet.body.message).toContain('user "viewer" cannot create managedclustersets/join.')
    await allow(server, 'join', may(CG, 'managedclustersets/join', 'create'))
    expect((await viewer.ask('POST', CLUSTERS, { body: aCluster({ hubAcceptsClient: true }) })).code).toBe(403)
    const { body } = await viewer.ask('POST', CLUSTERS, { body: aCluster() })
    const accepting = { ...body, spec: { ...body.spec, hubAcceptsClient: true } }
    const refused = await viewer.ask('PUT', `${CLUSTERS}/west`, { body: accepting })
    expect(refused).toMatchObject({
      code: 403,
      body: { message: expect.stringContaining('needed to accept the cluster') },
    })
    await allow(server, 'accept', may(RG, 'managedclusters/accept', 'update'))
    const accepted = await viewer.ask('PUT', `${CLUSTERS}/west`, { body: accepting })
    expect(accepted).toMatchObject({ code: 200, body: { spec: { hubAcceptsClient: true } } })
    expect((await admin.ask('PUT', `${CLUSTERS}/west`, { body: { ...accepted.body, spec: {} } })).code).toBe(200)
  })

  it('decides for a dry run as for a write', async () => {
    const server = await aHub()
    const { client } = await listening(server)
    const bad = { metadata: { name: 'a', namespace: 'default' }, spec: { clusterSet: 'b' } }
    const path = `/apis/${CG}/v1beta2/namespaces/default/managedclustersetbindings`
    const query = { dryRun: 'All' }
    expect((await client.ask('POST', path, { query, body: bad })).code).toBe(422)
    const good = { ...bad, spec: { clusterSet: 'a' } }
    expect((await client.ask('POST', path, { query, body: good })).code).toBe(201)
    expect(server.objects.list({ ...managedClusterSetBinding })).toEqual([])
  })

  it('is asked about deletions, one by one, and about subresources that a rule names', async () => {
    const seen: string[] = []
    const rule: AdmissionRule = {
      name: 'watching.test.clusterpulse.io',
      group: '',
      versions: ['v1'],
      resources: ['configmaps', 'namespaces/status'],
      operations: ['CREATE', 'UPDATE', 'DELETE'],
      namespaced: true,
      faults: ({ operation, name, subresource, before, user }) => {
        seen.push([operation, name, subresource, user.name].filter(Boolean).join(' '))
        return before?.metadata.labels?.kept ? [{ path: 'metadata.labels', message: 'says that it is kept' }] : []
      },
    }
    const server = await aHub([rule])
    const { client } = await listening(server)
    const maps = '/api/v1/namespaces/default/configmaps'
    await client.ask('POST', maps, { body: { metadata: { name: 'a' } } })
    await client.ask('POST', maps, { body: { metadata: { name: 'b', labels: { kept: 'yes' } } } })
    expect((await client.ask('DELETE', `${maps}/a`)).code).toBe(200)
    expect((await client.ask('DELETE', `${maps}/b`)).code).toBe(422)
    expect((await client.ask('DELETE', maps)).code).toBe(422)
    const { body } = await client.ask('GET', '/api/v1/namespaces/default')
    await client.ask('PUT', '/api/v1/namespaces/default/status', {
      body: { ...body, status: { phase: 'Active', x: 1 } },
    })
    await client.ask('PUT', '/api/v1/namespaces/default', {
      body: { ...body, metadata: { ...body.metadata, labels: {} } },
    })
    expect(seen.slice(0, 5)).toEqual([
      'CREATE a admin',
      'CREATE b admin',
      'DELETE a admin',
      'DELETE b admin',
      'DELETE b admin',
    ])
    expect(new Set(seen.slice(5))).toEqual(new Set(seen.slice(5).filter((one) => one.endsWith('status admin'))))
  })

  it('does not ask about what the server writes itself', async () => {
    const server = await aHub()
    await server.objects.create(aCluster({ hubAcceptsClient: true }) as ApiObject)
    expect(server.objects.get({ ...managedCluster }, { name: 'west' })?.metadata.labels).toBeUndefined()
  })
})

describe('kinds with several versions', () => {
  const ADDONS = '/apis/addon.open-cluster-management.io'
  const older = {
    apiVersion: 'addon.open-cluster-management.io/v1alpha1',
    kind: 'ManagedClusterAddOn',
    metadata: { name: 'hello', namespace: 'default' },
    spec: { installNamespace: 'here' },
  }
  const at = (version: string, rest = '') => `${ADDONS}/${version}/namespaces/default/managedclusteraddons${rest}`

  it('are one object, read and written in either version', async () => {
    const server = await aHub()
    const { client } = await listening(server)
    const made = await client.ask('POST', at('v1alpha1'), { body: older })
    expect(made).toMatchObject({
      code: 201,
      body: { apiVersion: older.apiVersion, spec: { installNamespace: 'here' } },
    })
    const newer = await client.ask('GET', at('v1beta1', '/hello'))
    expect(newer.body).toMatchObject({
      apiVersion: 'addon.open-cluster-management.io/v1beta1',
      metadata: { annotations: { 'addon.open-cluster-management.io/v1alpha1-install-namespace': 'here' } },
    })
    expect(newer.body.spec).toEqual({})
    const registrations = [{ type: 'kubeClient', kubeClient: { driver: 'csr' } }]
    const told = await client.ask('PUT', at('v1beta1', '/hello/status'), {
      body: { ...newer.body, status: { registrations } },
    })
    expect(told.code).toBe(200)
    const { body } = await client.ask('GET', at('v1alpha1', '/hello'))
    expect(body.status).toEqual({
      kubeClientDriver: 'csr',
      registrations: [{ signerName: 'kubernetes.io/kube-apiserver-client' }],
    })
    // A writer of the older version changes what it knows and loses nothing of the newer one.
    const patched = await client.ask('PATCH', at('v1alpha1', '/hello'), {
      type: 'application/merge-patch+json',
      body: { spec: { configs: [{ resource: 'things', name: 'one' }] } },
    })
    expect(patched.body.metadata.generation).toBe(2)
    const read = await client.ask('GET', at('v1beta1', '/hello'))
    expect(read.body).toMatchObject({
      spec: { configs: [{ group: '', resource: 'things', name: 'one' }] },
      status: { registrations },
    })
  })

  it('are told of in the version that is watched and listed', async () => {
    const server = await aHub()
    const { client } = await listening(server)
    await using watching = await client.watch(at('v1alpha1'))
    await client.ask('POST', at('v1beta1'), { body: { metadata: { name: 'hello' }, spec: {} } })
    expect(await watching.take(1)).toMatchObject([{ type: 'ADDED', object: { apiVersion: older.apiVersion } }])
    const { body } = await client.ask('GET', at('v1beta1'))
    expect(body).toMatchObject({
      apiVersion: 'addon.open-cluster-management.io/v1beta1',
      items: [{ apiVersion: 'addon.open-cluster-management.io/v1beta1' }],
    })
  })

  it('are announced newest first, each with its fields', async () => {
    const server = await aHub()
    const { client } = await listening(server)
    const { body } = await client.ask('GET', '/apis/addon.open-cluster-management.io')
    expect(body).toMatchObject({
      versions: [{ version: 'v1beta1' }, { version: 'v1alpha1' }],
      preferredVersion: { version: 'v1beta1' },
    })
    const strict = { query: { fieldValidation: 'Strict' } }
    const newer = { metadata: { name: 'a' }, spec: { installNamespace: 'here' } }
    expect((await client.ask('POST', at('v1beta1'), { ...strict, body: newer })).code).toBe(400)
    expect((await client.ask('POST', at('v1alpha1'), { ...strict, body: newer })).code).toBe(201)
  })

  it('counts what is stored in the moment of a write, also where many come at once', async () => {
    const denied: string[] = []
    const observer: WriteObserver = {
      ...{ groups: new Set(), wrote: () => Promise.resolve(), refused: () => undefined },
      denied: (rule) => denied.push(rule),
    }
    // On disk writes are gathered: what is decided is not there yet when the next one is.
    const server = await aHub(ocmAdmission, { storage: { kind: 'journal', dir: aDirectory() }, observer })
    const { client } = await listening(server)
    const WEST = 'system:open-cluster-management:west'
    await server.objects.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'member' },
      rules: [may('certificates.k8s.io', 'certificatesigningrequests', 'create')],
    })
    await server.objects.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'member' },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'member' },
      subjects: [{ apiGroup: RBAC, kind: 'Group', name: WEST }],
    })
    const { pem } = await aRequest(subjectOfMember('west', 'b'))
    const { username: _, groups: __, ...spec } = signingRequest(pem).spec ?? {}
    const ask = (cluster: string) =>
      client.ask('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
        body: {
          ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', spec },
          metadata: { generateName: 'west-', labels: { 'open-cluster-management.io/cluster-name': cluster } },
        },
        headers: { 'impersonate-user': `${WEST}:a`, 'impersonate-group': WEST },
      })
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask('west')))
    expect(answers.filter(({ code }) => code === 201)).toHaveLength(10)
    expect(answers.find(({ code }) => code !== 201)).toMatchObject({
      code: 422,
      body: {
        message: expect.stringContaining('10 requests of west wait for a decision; approve one or deny them first'),
      },
    })
    expect(await ask('east')).toMatchObject({
      body: { message: expect.stringContaining('a member west may ask for its own cluster alone') },
    })
    expect(denied).toEqual(Array(31).fill('certificatesigningrequests.admission.clusterpulse.io'))
  })
})

describe('who hears of writes', () => {
  /** A hub that keeps its objects on disk, with west and east, and what its observer is told. */
  async function anObservedHub(rules: readonly AdmissionRule[] = ocmAdmission) {
    const dir = join(aDirectory(), 'objects')
    const told: (readonly [operation: string, name: string, failure?: number])[] = []
    let kept = Promise.resolve()
    const observer: WriteObserver = {
      groups: new Set([CG]),
      async wrote({ operation, name }, failure) {
        told.push(failure ? [operation, name, failure.httpCode] : [operation, name])
        await kept
      },
      refused: () => undefined,
    }
    const server = await aHub(rules, { storage: { kind: 'journal', dir }, observer })
    const { client } = await listening(server)
    for (const name of ['west', 'east']) await client.ask('POST', CLUSTERS, { body: aCluster({}, { name }) })
    expect(told.splice(0)).toEqual([
      ['CREATE', 'west'],
      ['CREATE', 'east'],
    ])
    const keptFrom = (promise: Promise<void>) => {
      kept = promise
    }
    const change = (name: string) =>
      client.ask('PATCH', `${CLUSTERS}/${name}`, {
        type: 'application/merge-patch+json',
        body: { spec: { hubAcceptsClient: true } },
      })
    return { dir, client, told, change, keptFrom }
  }

  it('hears that a write was let through and could not be stored, and how it was answered', async () => {
    const { dir, client, told, change } = await anObservedHub()
    renameSync(dir, `${dir}.away`)
    expect((await change('west')).code).toBe(503)
    expect((await client.ask('DELETE', `${CLUSTERS}/east`)).code).toBe(503)
    expect(told).toEqual([
      ['UPDATE', 'west', 503],
      ['DELETE', 'east', 503],
    ])
  })

  it('hears of those that one refusal undid', async () => {
    const stays: AdmissionRule = {
      ...{ name: 'west.stays', group: CG, versions: ['v1'], resources: ['managedclusters'], operations: ['DELETE'] },
      namespaced: false,
      faults: ({ name }) => (name === 'west' ? [{ path: 'metadata.name', message: 'it stays' }] : []),
    }
    const { client, told } = await anObservedHub([stays])
    expect((await client.ask('DELETE', CLUSTERS)).code).toBe(422)
    expect(told).toEqual(
      expect.arrayContaining([
        ['DELETE', 'east', 422],
        ['DELETE', 'west', 422],
      ]),
    ) // `west` was refused itself
    expect(told).toHaveLength(2)
    expect((await client.ask('GET', `${CLUSTERS}/east`)).body.metadata.deletionTimestamp).toBeUndefined()
  })

  it('hears what a rule refused, and nothing of what is only tried', async () => {
    const { client, told } = await anObservedHub()
    const body = aCluster({ managedClusterClientConfigs: [{ url: 'http://west' }] }, { name: 'north' })
    expect((await client.ask('POST', `${CLUSTERS}?dryRun=All`, { body })).code).toBe(422)
    expect(told).toEqual([])
    expect((await client.ask('POST', CLUSTERS, { body })).code).toBe(422)
    expect(told).toEqual([['CREATE', 'north', 422]])
  })

  it('is waited for before the caller is answered', async () => {
    const { told, change, keptFrom } = await anObservedHub()
    let release: () => void = () => undefined
    const kept = new Promise<void>((resolve) => {
      release = resolve
    })
    keptFrom(kept)
    const order: string[] = []
    const changed = change('west').then(({ code }) => order.push(`answered ${code}`))
    await expect.poll(() => told).toEqual([['UPDATE', 'west']])
    keptFrom(Promise.resolve())
    // One that comes after it does not wait for it.
    await change('east').then(() => order.push('east'))
    release()
    await changed
    expect(order).toEqual(['east', 'answered 200'])
  })
})
