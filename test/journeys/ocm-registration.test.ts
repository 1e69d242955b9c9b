import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appliedManifestWork, clusterClaim, managedCluster, managedClusterAddOn } from '#kinds'
import {
  accessForContext,
  createKubeClient,
  customResourceDefinitions,
  type KubeClient,
  type KubeObject,
  leases,
  loadKubeconfig,
  namespaces,
  type Resource,
  secrets,
  whole,
} from '#kube'
import { AGENT_NAMESPACE, noOcmAgent, type OcmAgent, startOcmAgent } from '../ocm-agent.ts'
import { clusterpulse, type Running } from '../process.ts'

const CLUSTER = 'west'
const clusters: Resource = {
  ...{ group: managedCluster.group, version: 'v1', plural: 'managedclusters', kind: 'ManagedCluster' },
  namespaced: false,
}
const requests: Resource = {
  ...{ group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' },
  kind: 'CertificateSigningRequest',
  namespaced: false,
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
}

interface Request extends KubeObject {
  readonly spec: { readonly username: string; readonly signerName: string }
  readonly status?: { readonly conditions?: readonly Condition[]; readonly certificate?: string }
}

/** OCM's own agent, unchanged, beside a hub of ours: what docs/guide/members.md says of it. */
describe.skipIf(noOcmAgent())(`the registration agent of Open Cluster Management (${noOcmAgent() ?? 'found'})`, () => {
  let directory: string
  let simulation: Running
  let hub: Running
  let kube: KubeClient
  let member: KubeClient
  let agent: OcmAgent
  const at = (name: string) => join(directory, name)

  /** What people type. */
  const kubectl = (...args: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      execFile('kubectl', ['--kubeconfig', join(at('data'), 'kubeconfig'), ...args], (error, out, err) =>
        error ? reject(new Error(`kubectl ${args.join(' ')}: ${err}`)) : resolve(out),
      )
    })
  const conditions = async (): Promise<Record<string, string>> => {
    const cluster = await kube.get(clusters, { name: CLUSTER })
    const { conditions: list = [] } = (cluster?.status ?? {}) as { conditions?: Condition[] }
    return Object.fromEntries(list.map(({ type, status }) => [type, status]))
  }
  const asked = async () => (await kube.listAll(requests)) as Request[]
  const renewal = async () =>
    (
      (await kube.get(leases, { namespace: CLUSTER, name: 'managed-cluster-lease' }))?.spec as
        | { renewTime?: string }
        | undefined
    )?.renewTime
  const certificate = async () =>
    (
      (await member.get(secrets, { namespace: AGENT_NAMESPACE, name: 'hub-kubeconfig-secret' }))?.data as
        | Record<string, string>
        | undefined
    )?.['tls.crt']

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ocm-'))
    simulation = clusterpulse([
      ...['simulate', '--clusters', '1', '--nodes', '3', '--pods', '9'],
      ...['--kubeconfig-out', at('members')],
    ])
    await simulation.says(/kubeconfig in/)
    hub = clusterpulse([
      ...['up', '--kubeconfig', at('members'), '--data-dir', at('data')],
      ...['--port', '0', '--control-plane-port', '0', '--ingester-port', '0'],
    ])
    await hub.says(/on (http:\S+)/)
    const clientOf = async (path: string) => createKubeClient(await accessForContext(await loadKubeconfig([path])))
    kube = await clientOf(join(at('data'), 'kubeconfig'))
    member = await clientOf(at('members'))
    for (const kind of [clusterClaim, appliedManifestWork, managedClusterAddOn])
      await member.create(customResourceDefinitions, kind.crd() as unknown as KubeObject)
    await member.create(whole(namespaces), { metadata: { name: AGENT_NAMESPACE } })
    const claims: Resource = {
      ...{ group: clusterClaim.group, version: clusterClaim.version, plural: 'clusterclaims', kind: 'ClusterClaim' },
      namespaced: false,
    }
    await member.create(claims, { metadata: { name: 'region.example.com' }, spec: { value: 'north' } })
    const bootstrap = clusterpulse(['bootstrap-kubeconfig', '--kubeconfig', join(at('data'), 'kubeconfig')])
    expect(await bootstrap.ended(), bootstrap.stderr()).toBe(0)
    agent = await startOcmAgent({
      cluster: CLUSTER,
      bootstrap: bootstrap.stdout(),
      member: readFileSync(at('members'), 'utf8'),
    })
  }, 120_000)
  afterAll(async () => {
    for (const one of [agent, kube, member, hub, simulation]) await one?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  it('asks to join, and may do nothing before a person says yes', { timeout: 120_000 }, async () => {
    await expect.poll(asked, { timeout: 90_000 }).toHaveLength(1)
    const [request] = await asked()
    expect(request?.spec.signerName).toBe('kubernetes.io/kube-apiserver-client')
    expect(request?.status?.certificate).toBeUndefined()
    expect(await kubectl('get', 'managedclusters', CLUSTER)).toMatch(/\nwest +false /)
    expect(await kubectl('get', 'csr')).toMatch(/ Pending\n/)
  })

  it('is a member once its request is approved and the cluster accepted', { timeout: 180_000 }, async () => {
    const [request] = await asked()
    await kubectl('certificate', 'approve', request?.metadata.name ?? '')
    await kubectl(
      'patch',
      'managedcluster',
      CLUSTER,
      '--type=merge',
      '-p',
      '{"spec":{"hubAcceptsClient":true,"leaseDurationSeconds":2}}',
    )
    await expect.poll(conditions, { timeout: 150_000 }).toMatchObject({
      HubAcceptedManagedCluster: 'True',
      ManagedClusterJoined: 'True',
      ManagedClusterConditionAvailable: 'True',
    })
    expect(await kubectl('get', 'managedclusters')).toMatch(/\nwest +true .* True +True +\S+\n/)
    await expect
      .poll(async () => (await kube.get(clusters, { name: CLUSTER }))?.status, { timeout: 60_000 })
      .toMatchObject({
        version: { kubernetes: expect.stringMatching(/^v1\./) },
        capacity: { cpu: expect.anything() },
        clusterClaims: expect.arrayContaining([{ name: 'region.example.com', value: 'north' }]),
      })
  })

  it('renews its lease', { timeout: 120_000 }, async () => {
    await expect.poll(renewal, { timeout: 60_000 }).toBeDefined()
    const before = await renewal()
    await expect.poll(renewal, { timeout: 60_000 }).not.toBe(before)
  })

  it('gets the next certificate by the one it has, without a person', { timeout: 120_000 }, async () => {
    const before = await certificate()
    // Gone from its Secret, the certificate is asked for anew, by the identity that the process still has.
    const key = { namespace: AGENT_NAMESPACE, name: 'hub-kubeconfig-secret' }
    await member.patch(secrets, key, { data: { 'tls.crt': null } }, { kind: 'merge' })
    await expect
      .poll(async () => (await asked()).filter(({ status }) => status?.certificate).length, { timeout: 90_000 })
      .toBeGreaterThan(1)
    await expect.poll(certificate, { timeout: 60_000 }).toBeTruthy()
    expect(await certificate()).not.toBe(before)
  })

  it('sees nothing of another member', async () => {
    const as = ['--as=system:open-cluster-management:west:a', '--as-group=system:open-cluster-management:west']
    expect(await kubectl('auth', 'can-i', 'list', 'manifestworks', '-n', CLUSTER, ...as).catch(String)).toBe('yes\n')
    expect(await kubectl('auth', 'can-i', 'list', 'manifestworks', '-n', 'default', ...as).catch(String)).toContain(
      'Error',
    )
    expect(await kubectl('auth', 'can-i', 'get', 'secrets', '-n', CLUSTER, ...as).catch(String)).toContain('Error')
  })
})
