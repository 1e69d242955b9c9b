import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
import { kubectlOf, type MemberHub, memberHubsOfAllVersions } from '../member-hub.ts'
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

const hubs = memberHubsOfAllVersions.map((one) => ({ ...one, skip: noOcmAgent() ?? one.skip }))

for (const hub of hubs) {
  const title = `the registration agent of Open Cluster Management at ${hub.title}`
  // Of the version before, it is the same once more.
  describe(title, { tags: hub.isOfFormer ? ['again'] : [] }, () => registers(hub))
}

/** OCM's own agent, unchanged, beside a hub of ours: what docs/guide/members.md says of it. */
function registers({ open, skip }: (typeof hubs)[number]): void {
  if (skip !== undefined) return void it.skip(skip)

  let directory: string
  let simulation: Running
  let hub: MemberHub
  let kube: KubeClient
  let member: KubeClient
  let agent: OcmAgent | undefined
  const at = (name: string) => join(directory, name)

  /** What people type. */
  const kubectl = (...args: readonly string[]): Promise<string> => kubectlOf(hub.kubeconfig)(args)
  const bootstrap = async (...args: readonly string[]): Promise<string> => {
    const command = clusterpulse(['bootstrap-kubeconfig', '--kubeconfig', hub.kubeconfig, ...args])
    expect(await command.ended(), command.stderr()).toBe(0)
    return command.stdout()
  }
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
    hub = await open(directory, ['--kubeconfig', at('members')])
    const clientOf = async (path: string) => createKubeClient(await accessForContext(await loadKubeconfig([path])))
    kube = await clientOf(hub.kubeconfig)
    member = await clientOf(at('members'))
    for (const kind of [clusterClaim, appliedManifestWork, managedClusterAddOn])
      await member.create(customResourceDefinitions, kind.crd() as unknown as KubeObject)
    await member.create(whole(namespaces), { metadata: { name: AGENT_NAMESPACE } })
    const claims: Resource = {
      ...{ group: clusterClaim.group, version: clusterClaim.version, plural: 'clusterclaims', kind: 'ClusterClaim' },
      namespaced: false,
    }
    await member.create(claims, { metadata: { name: 'region.example.com' }, spec: { value: 'north' } })
  })
  afterAll(async () => {
    for (const one of [agent, kube, member, hub, simulation]) await one?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  it('begins with a kubeconfig that lets it ask, and nothing else', async () => {
    const text = await bootstrap()
    writeFileSync(at('bootstrap'), text, { mode: 0o600 })
    const canI = async (...question: readonly string[]) =>
      (await kubectlOf(at('bootstrap'))(['auth', 'can-i', ...question]).catch(String)).includes('yes')
    const csr = 'certificatesigningrequests.certificates.k8s.io'
    const ofClusters = `managedclusters.${managedCluster.group}`
    const may = [
      ['create', csr],
      ['create', ofClusters],
      ['get', ofClusters],
      ['get', 'configmaps', '-n', 'kube-public'],
    ]
    const mayNot = [
      ['update', csr, '--subresource=approval'],
      ['delete', csr],
      ['delete', ofClusters],
      ['update', ofClusters, '--subresource=status'],
      ['patch', ofClusters],
      ['update', 'managedclusters.register.open-cluster-management.io', '--subresource=accept'],
      ['renew', 'managedclusters.register.open-cluster-management.io', '--subresource=clientcertificates'],
      ['get', 'secrets', '-A'],
      ['list', 'configmaps', '-A'],
      ['create', 'serviceaccounts', '--subresource=token', '-n', 'open-cluster-management'],
      ['create', 'clusterrolebindings.rbac.authorization.k8s.io'],
    ]
    const answers = await Promise.all([...may, ...mayNot].map((question) => canI(...question)))
    expect(answers).toEqual([...may.map(() => true), ...mayNot.map(() => false)])
  })

  it('begins at the address that is given, by rights that are narrow again when somebody widened them', async () => {
    const role = 'open-cluster-management:bootstrap'
    const all = JSON.stringify({ rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] })
    await kubectl('patch', 'clusterrole', role, '--type=merge', '-p', all)
    const text = await bootstrap('--server', 'https://hub.example:8443', '--ttl', '20m')
    expect(text).toContain('"server": "https://hub.example:8443"')
    const { users } = JSON.parse(text) as { users: [{ user: { token: string } }] }
    const claims = users[0].user.token.split('.')[1] ?? ''
    const { exp, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, number>
    expect((exp ?? 0) - (iat ?? 0)).toBe(1_200)
    expect(await kubectl('get', 'clusterrole', role, '-o', 'jsonpath={.rules[*].resources}')).not.toContain('*')
  })

  it('asks to join, and may do nothing before a person says yes', async () => {
    agent = await startOcmAgent({
      cluster: CLUSTER,
      bootstrap: readFileSync(at('bootstrap'), 'utf8'),
      member: readFileSync(at('members'), 'utf8'),
    })
    // One whose answer came late asks once more.
    await expect.poll(asked, { timeout: 90_000 }).not.toEqual([])
    for (const request of await asked()) {
      expect(request.spec.signerName).toBe('kubernetes.io/kube-apiserver-client')
      expect(request.status?.certificate).toBeUndefined()
    }
    expect(await kubectl('get', 'managedclusters', CLUSTER)).toMatch(/\nwest +false /)
    expect(await kubectl('get', 'csr')).toMatch(/ Pending\n/)
  })

  it('is a member once its request is approved and the cluster accepted', async () => {
    await kubectl('certificate', 'approve', ...(await asked()).map(({ metadata }) => metadata.name))
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
      .poll(async () => (await kube.get(clusters, { name: CLUSTER }))?.status)
      .toMatchObject({
        version: { kubernetes: expect.stringMatching(/^v1\./) },
        capacity: { cpu: expect.anything() },
        clusterClaims: expect.arrayContaining([{ name: 'region.example.com', value: 'north' }]),
      })
  })

  it('renews its lease', async () => {
    await expect.poll(renewal).toBeDefined()
    const before = await renewal()
    await expect.poll(renewal).not.toBe(before)
    // It ends itself where it cannot read a kind that it watches for ten minutes.
    expect(agent?.log()).not.toMatch(/failed to list .*could not find the requested resource/i)
  })

  it('gets the next certificate by the one it has, without a person', async () => {
    const before = await certificate()
    // Gone from its Secret, the certificate is asked for anew, by the identity that the process still has.
    const key = { namespace: AGENT_NAMESPACE, name: 'hub-kubeconfig-secret' }
    await member.patch(secrets, key, { data: { 'tls.crt': null } }, { kind: 'merge' })
    await expect
      .poll(async () => (await asked()).filter(({ status }) => status?.certificate).length, { timeout: 90_000 })
      .toBeGreaterThan(1)
    const names = (await asked()).map(({ spec }) => spec.username)
    expect(names).toContainEqual(expect.stringMatching(/^system:open-cluster-management:west:/))
    await expect.poll(certificate).toBeTruthy()
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

  it('changes nothing of a ManagedCluster that is there but its addresses, with either identity', async () => {
    const stored = JSON.parse(await kubectl('get', 'managedcluster', CLUSTER, '-o', 'json')) as KubeObject
    const { resourceVersion: _, ...metadata } = stored.metadata
    const { spec } = stored as unknown as { spec: object }
    const address = { url: 'https://other.example:6443' }
    const replaced = (object: object, ...as: readonly string[]) =>
      kubectlOf(as.length > 0 ? hub.kubeconfig : at('bootstrap'))(
        ['replace', '-f', '-', ...as],
        JSON.stringify({ ...stored, metadata, ...object }),
      ).catch(String)
    const asMember = ['--as=system:open-cluster-management:west:a', '--as-group=system:open-cluster-management:west']
    for (const as of [[], asMember]) {
      const labelled = { metadata: { ...metadata, labels: { ...metadata.labels, stage: 'prod' } } }
      expect(await replaced(labelled, ...as)).toMatch(/metadata\.labels: .*spec\.managedClusterClientConfigs/)
      expect(await replaced({ spec: { ...spec, taints: [{ key: 'a', effect: 'NoSelect' }] } }, ...as)).toContain(
        'spec.taints',
      )
      expect(await replaced({ spec: { ...spec, leaseDurationSeconds: 9_000 } }, ...as)).toContain(
        'spec.leaseDurationSeconds',
      )
      expect(
        await replaced({ spec: { ...spec, managedClusterClientConfigs: [address] } }, ...as, '--dry-run=server'),
      ).toContain('replaced')
    }
    const path = 'jsonpath={.spec.leaseDurationSeconds} {.metadata.labels.stage}'
    expect(await kubectl('get', 'managedcluster', CLUSTER, '-o', path)).toBe('2 ')
  })

  it('asks anew where it lost its certificate, and adds its address to the cluster that is there', async () => {
    await agent?.[Symbol.asyncDispose]()
    await member.delete(secrets, { namespace: AGENT_NAMESPACE, name: 'hub-kubeconfig-secret' })
    const known = new Set((await asked()).map(({ metadata }) => metadata.name))
    const others = async () => (await asked()).filter(({ metadata }) => !known.has(metadata.name))
    agent = await startOcmAgent({
      cluster: CLUSTER,
      bootstrap: readFileSync(at('bootstrap'), 'utf8'),
      member: readFileSync(at('members'), 'utf8'),
      address: 'https://west.example:6443',
    })
    await expect.poll(others, { timeout: 90_000 }).not.toEqual([])
    const urls = () =>
      kubectl('get', 'managedcluster', CLUSTER, '-o', 'jsonpath={.spec.managedClusterClientConfigs[*].url}')
    await expect.poll(urls).toBe('https://west.example:6443')
    await kubectl('certificate', 'approve', ...(await others()).map(({ metadata }) => metadata.name))
    await expect.poll(certificate).toBeTruthy()
    const before = await renewal()
    await expect.poll(renewal).not.toBe(before)
  })

  it('is a member under a role that collects what others hold', async () => {
    const label = 'example.com/of-the-agents-people'
    await kubectl('create', 'clusterrole', 'agents-people', `--aggregation-rule=${label}=true`)
    await kubectl('create', 'clusterrolebinding', 'agents-people', '--clusterrole=agents-people', '--user=paula')
    const isSeen = async () =>
      (await kubectl('auth', 'can-i', 'get', 'managedclusters', '--as=paula').catch(String)).includes('yes')
    expect(await isSeen()).toBe(false)
    await kubectl(
      'create',
      'clusterrole',
      'sees-members',
      '--verb=get',
      `--resource=managedclusters.${managedCluster.group}`,
    )
    await kubectl('label', 'clusterrole', 'sees-members', `${label}=true`)
    await expect.poll(isSeen).toBe(true)
    await kubectl('delete', 'clusterrole', 'sees-members')
    await expect.poll(isSeen).toBe(false)
  })

  it('leaves a namespace that ends when its cluster and it are deleted', async () => {
    await agent?.[Symbol.asyncDispose]()
    agent = undefined
    await kubectl('delete', 'managedcluster', CLUSTER, '--timeout=60s')
    expect(await kube.get(leases, { namespace: CLUSTER, name: 'managed-cluster-lease' })).toBeDefined()
    await kubectl('delete', 'namespace', CLUSTER, '--timeout=60s')
    expect(await kube.get(whole(namespaces), { name: CLUSTER })).toBeUndefined()
    expect(await kube.get(leases, { namespace: CLUSTER, name: 'managed-cluster-lease' })).toBeUndefined()
  })
}
