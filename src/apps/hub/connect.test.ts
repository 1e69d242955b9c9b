import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { managedClusterOf, managedClusters } from '#joining'
import { CERTIFICATE_LIFE_ANNOTATION, CERTIFICATES_ANNOTATION, ocmKinds } from '#kinds'
import { createKubeClient, customResourceDefinitions, type KubeObject, secrets } from '#kube'
import { decodeJoinText } from '#wire'
import { connections, embeddedApi, HUB } from '../../../test/owned-fleet.ts'
import { TestAuthority } from '../../pipeline/ingest/stream/test/certificates.ts'
import { connect } from './connect.ts'

async function anApi() {
  const folder = mkdtempSync(join(tmpdir(), 'connect-'))
  const api = await embeddedApi(folder)
  const kube = createKubeClient(api.access)
  onTestFinished(async () => {
    await kube[Symbol.asyncDispose]()
    await api.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, kube, kubeconfig: join(folder, 'hub.yaml') }
}

it('waits a moment for a hub that has just started to say where agents reach it', async () => {
  const { kube, kubeconfig } = await anApi()
  const joining = connect({
    cluster: 'edge',
    kubeconfig,
    output: 'command',
    revoke: false,
    as: 'bearer',
    environment: {},
  })
  await new Promise((resolve) => setTimeout(resolve, 600))
  const configMaps = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true } as const
  const data = { address: 'hub.example:9443', tls: 'true' }
  await kube.create(configMaps, {
    metadata: { name: 'clusterpulse-ingester', namespace: HUB },
    data,
  } satisfies KubeObject)
  expect((await joining).text).toContain('INGESTER_ADDRESS=hub.example:9443')
})

it('says of a name that nobody knows that there is nothing to revoke, and revokes what there is once', async () => {
  const { kubeconfig } = await anApi()
  const shared = { kubeconfig, output: 'command', as: 'bearer', environment: {} } as const
  const revoke = (cluster: string) => connect({ ...shared, cluster, revoke: true })
  await expect(revoke('edge')).rejects.toThrow(/knows no cluster edge, and no credential for one/)
  await connect({ ...shared, cluster: 'edge', address: 'hub.example:9443', revoke: false })
  expect((await revoke('edge')).notes.join()).toMatch(/every credential of the agent of edge is revoked/)
  await expect(revoke('edge')).rejects.toThrow(/no credential for an agent of edge: nothing is to be revoked/)
})

describe('a cluster that is to become a member', () => {
  const ingester = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true } as const
  const asMember = { lifeMs: 3_600_000, accept: false, rights: 'observe' }

  async function aHub(data: Readonly<Record<string, string>> = { address: 'hub.example:9443', tls: 'true' }) {
    const api = await anApi()
    for (const kind of ocmKinds) await api.kube.create(customResourceDefinitions, kind.crd() as unknown as KubeObject)
    await api.kube.create(ingester, { metadata: { name: 'clusterpulse-ingester', namespace: HUB }, data })
    const options = { cluster: 'edge', kubeconfig: api.kubeconfig, revoke: false, environment: {} } as const
    const asked = (as = asMember, over: Partial<Parameters<typeof connect>[0]> = {}) =>
      connect({ ...options, output: 'command', as, ...over })
    return { ...api, asked }
  }
  const tokenIn = (text: string) => decodeJoinText(/cpj1_[\w-]+/.exec(text)?.[0] ?? '')

  it('is refused a token under a name that no member may have', async () => {
    const { asked } = await aHub()
    for (const cluster of ['kube-system', 'default', 'openshift-monitoring', HUB])
      await expect(asked(asMember, { cluster })).rejects.toThrow(`the namespace ${cluster} is not for a member`)
    expect((await asked(asMember, { cluster: 'kubernetes-1' })).text).toContain('cpj1_')
  })

  it('gets one command with a token, and nothing is declared or accepted by it', async () => {
    const { kube, asked } = await aHub({
      address: 'a.example:1,b.example:2',
      tls: 'true',
      fingerprint: 'ab'.repeat(32),
    })
    const { text, notes } = await asked()
    expect(text).toMatch(/^ npx clusterpulse join cpj1_\S+\n$/)
    expect(tokenIn(text)).toMatchObject({ cluster: 'edge', addresses: ['a.example:1', 'b.example:2'] })
    expect(notes.at(-1)).toBe('when it asks, accept it: clusterpulse accept edge')
    expect(await kube.get(managedClusters, { name: 'edge' })).toBeUndefined()
    expect(await kube.listAll(connections, { namespace: HUB })).toEqual([])
  })

  it('gets a manifest with the same token on request', async () => {
    const { asked } = await aHub()
    const { text, notes } = await asked({ ...asMember, rights: 'namespaced:shop' }, { output: 'manifest' })
    expect(tokenIn(Buffer.from(/^ +token: (\S+)$/m.exec(text)?.[1] ?? '', 'base64').toString()).cluster).toBe('edge')
    expect(text).toMatch(/^# .* Rights there: namespaced:shop\./m)
    expect(notes.join()).toMatch(/kubectl apply --server-side/)
  })

  it('is accepted at once where that is asked for', async () => {
    const { kube, asked } = await aHub()
    const { notes } = await asked({ ...asMember, accept: true })
    expect(await kube.get(managedClusters, { name: 'edge' })).toMatchObject({ spec: { hubAcceptsClient: true } })
    expect(notes.join()).toMatch(/without a second look/)
    expect(notes.join()).not.toMatch(/clusterpulse accept/)
    const [token] = await kube.listAll(secrets, { namespace: HUB, labelSelector: 'clusterpulse.io/join-token' })
    const { record = '' } = (token?.data ?? {}) as { record?: string }
    expect(JSON.parse(Buffer.from(record, 'base64').toString())).toMatchObject({ isApproved: true })
  })

  it('is said to be one already where a machine is a member under that name, and else not', async () => {
    const { kube, asked } = await aHub()
    const warnings = async () => (await asked()).notes.filter((note) => note.startsWith('warning: '))
    const written = (certificates: string) =>
      kube.patch(
        managedClusters,
        { name: 'edge' },
        { metadata: { annotations: { [CERTIFICATES_ANNOTATION]: certificates } } },
        { kind: 'merge' },
      )
    await kube.create(managedClusters, managedClusterOf('edge', { hubAcceptsClient: true }))
    expect(await warnings()).toEqual([])
    await written('ab'.repeat(32))
    expect(await warnings()).toEqual([expect.stringMatching(/a machine is a member as edge already; .*revoke edge/)])
    // Of an authority that was ended since.
    const life = `2026-11-26T10:00:00Z/2036-11-26T10:00:00Z/${'ab'.repeat(8)}`
    const annotations = { [CERTIFICATE_LIFE_ANNOTATION]: life }
    await kube.patch(managedClusters, { name: 'edge' }, { metadata: { annotations } }, { kind: 'merge' })
    expect(await warnings()).toHaveLength(1)
    const { pem } = await TestAuthority.make('members')
    await kube.create(ingester, { metadata: { name: 'hub-authority', namespace: HUB }, data: { 'ca.crt': pem } })
    expect(await warnings()).toEqual([])
    await written('revoked-2026-11-26T10:00:00.000Z')
    expect(await warnings()).toEqual([])
  })

  it.each([
    ['rights that are none', {}, { ...asMember, rights: 'root' }, 'edge', /--rights: "root" is none of them/],
    ['a hub without TLS', { address: 'h:1' }, asMember, 'edge', /without TLS.*--bearer-token/],
    ['a hub that says no address', { tls: 'true' }, asMember, 'edge', /does not say where agents reach it/],
    ['a name that is no namespace', {}, asMember, 'a.b', /lower-case letters, digits and -.*--bearer-token/],
  ])('is refused with %s, in a sentence that says what helps', async (_, data, as, cluster, words) => {
    const { asked } = await aHub(Object.keys(data).length > 0 ? data : undefined)
    await expect(asked(as, { cluster })).rejects.toThrow(words)
  })

  it.each([
    [
      'made by up',
      { fingerprint: 'ab'.repeat(32) },
      /start it with --ingester-host 0\.0\.0\.0 --ingester-advertise HOST:PORT$/,
    ],
    [
      'on Kubernetes',
      { serverName: 'clusterpulse-ingester.clusterpulse.svc' },
      /set INGESTER_ADVERTISE=HOST:PORT in clusterpulse-settings/,
    ],
  ])('is told of an address that only its machine reaches how a hub %s tells another one', async (_, data, words) => {
    const { asked } = await aHub({ address: '127.0.0.1:9443', tls: 'true', ...data })
    const { notes } = await asked()
    const [note = ''] = notes.filter((text) => text.includes('which only this machine reaches'))
    expect(note).toMatch(words)
    expect(/ingester-advertise/.test(note)).toBe('fingerprint' in data)
  })

  it('is told by a hub that runs and was never told its address which setting says it', async () => {
    const { asked } = await aHub({ address: '', tls: 'true', serverName: 'x.y.svc' })
    await expect(asked()).rejects.toThrow(/set INGESTER_ADVERTISE of its manager, or give it with --address/)
  })

  it('is refused where the hub reads a cluster of that name itself, and where the hub has no members', async () => {
    const { kube, asked } = await aHub()
    const spec = { endpoint: 'https://x', credentialsRef: { name: 's' } }
    await kube.create(connections, { metadata: { name: 'edge', namespace: HUB }, spec })
    await expect(asked()).rejects.toThrow(/the hub reads a cluster edge itself/)
    const { kubeconfig } = await anApi()
    const options = { cluster: 'edge', kubeconfig, revoke: false, environment: {} } as const
    await expect(connect({ ...options, output: 'command', as: asMember })).rejects.toThrow(
      /has no members.*--bearer-token/,
    )
  })
})
