import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createKubeClient, customResourceDefinitions, isKubeError, type KubeClient, type KubeObject } from '#kube'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { clusterConnection } from './cluster-connection.ts'
import { InvalidObjectError } from './kind.ts'

const base = { endpoint: 'https://api.west.example.com:6443', credentialsRef: { name: 'west' } }

const good: readonly (readonly [string, object])[] = [
  ['the shortest', base],
  [
    'every field',
    {
      ...base,
      displayName: 'West',
      labels: { env: 'prod' },
      monitoring: { interval: 60, timeout: 15 },
      collectionMode: 'push',
      ingesterAddress: 'hub:9443',
      collectorVersion: 'v1',
      insecureSkipTLSVerify: true,
      tlsServerName: 'api.internal',
      proxyURL: 'http://proxy:3128',
    },
  ],
  ['an interval that counts as the default', { ...base, monitoring: { interval: 0, timeout: -1 } }],
  ['an interval that counts as the minimum', { ...base, monitoring: { interval: 1 } }],
  ['an address without scheme', { ...base, endpoint: 'api.west.example.com:6443' }],
  ['an address of version 6 with a path', { ...base, endpoint: 'https://[fd00::1]:6443/k8s/clusters/c-1' }],
  ['push without a way to the cluster', { collectionMode: 'push', ingesterAddress: 'hub:9443' }],
  ['push with an address to show only', { collectionMode: 'push', endpoint: base.endpoint }],
  ['a Secret elsewhere', { ...base, credentialsRef: { name: 'west', namespace: 'vault' } }],
]

const bad: readonly (readonly [string, unknown, RegExp])[] = [
  ['no spec', undefined, /^spec is missing$/],
  ['no endpoint', { credentialsRef: base.credentialsRef }, /spec\.endpoint is missing/],
  ['no credentials', { endpoint: base.endpoint }, /spec\.credentialsRef is missing/],
  [
    'pull without a way to the cluster',
    { collectionMode: 'pull' },
    /spec\.endpoint is missing\nspec\.credentialsRef is missing/,
  ],
  [
    'push with an address of another sort',
    { collectionMode: 'push', endpoint: 'ftp://west' },
    /spec\.endpoint must be/,
  ],
  ['credentials without name', { ...base, credentialsRef: {} }, /spec\.credentialsRef\.name is missing/],
  [
    'an address of another sort',
    { ...base, endpoint: 'ftp://west' },
    /spec\.endpoint must be the address of an API server/,
  ],
  ['an empty address', { ...base, endpoint: '' }, /spec\.endpoint must be/],
  ['an address with a query', { ...base, endpoint: 'https://west?token=x' }, /spec\.endpoint must be/],
  ['an interval in words', { ...base, monitoring: { interval: '30s' } }, /spec\.monitoring\.interval must be integer/],
  ['half a second', { ...base, monitoring: { interval: 30.5 } }, /spec\.monitoring\.interval must be integer/],
  ['an unknown mode', { ...base, collectionMode: 'poll' }, /spec\.collectionMode must be one of "pull", "push"/],
  ['labels that are no text', { ...base, labels: { env: 1 } }, /spec\.labels\.env must be string/],
]

const anObject = (name: string, spec: unknown): KubeObject => ({
  apiVersion: clusterConnection.apiVersion,
  kind: clusterConnection.kind,
  metadata: { name, namespace: 'default' },
  ...(spec === undefined ? {} : { spec }),
})

describe('ClusterConnection', () => {
  it.each(good)('takes %s', (_, spec) => expect(clusterConnection.faults(anObject('west', spec))).toEqual([]))

  it.each(bad)('refuses %s, naming field and fault', (_, spec, fault) => {
    const faults = clusterConnection.faults(anObject('west', spec))
    expect(faults.map(({ path, message }) => `${path} ${message}`).join('\n')).toMatch(fault)
    expect(() => clusterConnection.parse(anObject('west', spec))).toThrow(InvalidObjectError)
  })

  it('fills the default in and changes nothing of what was given', () => {
    const object = anObject('west', base)
    expect(clusterConnection.parse(object).spec).toEqual({ ...base, collectionMode: 'pull' })
    expect(object.spec).toEqual(base)
  })

  it('names every fault at once', () => {
    const faults = clusterConnection.faults(anObject('west', { endpoint: 'ftp://x', collectionMode: 'poll' }))
    expect(faults.map(({ path }) => path).sort()).toEqual([
      'spec.collectionMode',
      'spec.credentialsRef',
      'spec.endpoint',
    ])
  })

  it('describes its columns as documented', () => {
    const crd = clusterConnection.crd().spec as {
      versions: { additionalPrinterColumns: { name: string; priority?: number }[] }[]
    }
    const columns = crd.versions[0]?.additionalPrinterColumns ?? []
    expect(columns.filter(({ priority }) => !priority).map(({ name }) => name)).toEqual([
      'Display Name',
      'Endpoint',
      'Status',
      'Health',
      'Age',
    ])
  })
})

const missing = noRealApiServer()
describe.skipIf(missing !== undefined && process.env.CI_REQUIRE_ALL !== '1')(
  `ClusterConnection on a real kube-apiserver${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let server: RealApiServer | undefined
    let kube: KubeClient
    const resource = {
      group: clusterConnection.group,
      version: clusterConnection.version,
      plural: clusterConnection.plural,
      kind: clusterConnection.kind,
      namespaced: true,
    }

    beforeAll(async () => {
      server = await startRealApiServer()
      if (!server) return
      kube = createKubeClient(server.access)
      await kube.create(customResourceDefinitions, clusterConnection.crd() as unknown as KubeObject)
      await vi.waitFor(async () => {
        expect(await conditionsOfCrd()).toEqual(expect.arrayContaining(['Established True', 'NamesAccepted True']))
        await kube.listAll(resource)
      }, 20_000)
    })
    afterAll(async () => {
      await kube?.[Symbol.asyncDispose]()
      await server?.stop()
    })

    async function conditionsOfCrd(): Promise<string[]> {
      const crd = await kube.get(customResourceDefinitions, { name: clusterConnection.crd().metadata.name })
      const { conditions = [] } = (crd?.status ?? {}) as { conditions?: { type: string; status: string }[] }
      return conditions.map(({ type, status }) => `${type} ${status}`)
    }

    it('is structural: the server has no complaint about the definition', async () => {
      expect(await conditionsOfCrd()).not.toContain('NonStructuralSchema True')
    })

    it.each(good.map(([what, spec], i) => [what, spec, `good-${i}`] as const))(
      'takes %s, as we do',
      async (_, spec, name) => {
        const created = (await kube.create(resource, anObject(name, spec))) as KubeObject
        expect(created.spec).toEqual(clusterConnection.parse(anObject(name, spec)).spec)
      },
    )

    it.each(bad.map(([what, spec], i) => [what, spec, `bad-${i}`] as const))(
      'refuses %s, as we do',
      async (_, spec, name) => {
        const end = await kube.create(resource, anObject(name, spec)).then(
          () => 'taken',
          (error: unknown) => error,
        )
        expect(isKubeError(end, 'invalid'), String(end)).toBe(true)
      },
    )

    it('keeps a status written to its subresource, conditions included', async () => {
      await kube.create(resource, anObject('with-status', base))
      const condition = {
        type: 'Ready',
        status: 'True',
        reason: 'Collected',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        observedGeneration: 1,
      }
      const status = {
        phase: 'Connected',
        health: 'healthy',
        nodes: 3,
        lastSyncTime: '2026-01-01T00:00:00Z',
        conditions: [condition],
      }
      const key = { name: 'with-status', namespace: 'default' }
      await kube.patch(resource, key, { status }, { kind: 'merge', subresource: 'status' })
      expect(((await kube.get(resource, key)) as KubeObject).status).toEqual(status)
    })
  },
)
