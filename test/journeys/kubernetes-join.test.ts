import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterView, FleetPageView } from '#http'
import { type KubernetesHub, kubectlOf, kubernetesHub, noKubernetesHub } from '../member-hub.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const why = noKubernetesHub()
const MANAGER = 'system:serviceaccount:clusterpulse:clusterpulse-manager'
const API = 'system:serviceaccount:clusterpulse:clusterpulse-api'
const yes = (value: boolean) => value

const title = `joining a hub on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`
describe.skipIf(why !== undefined)(title, () => {
  describe('a manager of several processes', () => joining({ MANAGER_PROCESSES: '2' }))
  // Several know members as one does.
  describe('one manager', { tags: ['again'] }, () => joining({}))
})

/** Roles of their own, as pods would run them, on a real kube-apiserver; machines join with the commands people have. */
function joining(env: Readonly<Record<string, string>>): void {
  let folder: string
  let members: Running
  let hub: KubernetesHub
  let kubectl: ReturnType<typeof kubectlOf>
  const running: Running[] = []
  const member = () => join(folder, 'members')

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'join-k8s-'))
    const size = ['--clusters', '1', '--nodes', '3', '--pods', '20']
    members = clusterpulse(['simulate', ...size, '--kubeconfig-out', member()])
    await members.says(/kubeconfig in/)
    hub = await kubernetesHub(folder, { receivesAgents: true, env })
    kubectl = kubectlOf(hub.kubeconfig)
  })
  afterAll(async () => {
    for (const one of [...running, hub, members]) await one?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  const run = async (...args: string[]) => {
    const command = clusterpulse([...args, '--kubeconfig', hub.kubeconfig])
    return { code: await command.ended(), out: command.stdout(), err: command.stderr() }
  }
  const tokenFor = async (cluster: string): Promise<string> => {
    const { code, out, err } = await run('connect', cluster)
    expect(code, err).toBe(0)
    return /npx clusterpulse join (\S+)/.exec(out)?.[1] ?? ''
  }
  const machine = (name: string, ...args: string[]): Running => {
    const agent = clusterpulse(['join', ...args, '--kubeconfig', member(), '--buffer-dir', join(folder, name)], {
      env: { HEALTH_ADDRESS: '127.0.0.1:0' },
    })
    running.push(agent)
    return agent
  }
  const says = (agent: Running, words: RegExp) =>
    eventually(
      async () => agent.stderr(),
      (said) => words.test(said),
      60_000,
    )
  const view = async (cluster: string): Promise<ClusterView | undefined> => {
    const answer = await fetch(`${hub.page}/api/v2/clusters/${cluster}`)
    return answer.ok ? ((await answer.json()) as ClusterView) : undefined
  }
  const isPushed = async (cluster: string): Promise<boolean> => {
    const seen = await view(cluster)
    return seen?.agent?.connected === true && seen.source === 'push' && seen.nodes !== null
  }
  const joined = async (cluster: string): Promise<Running> => {
    const agent = machine(cluster, await tokenFor(cluster))
    await says(agent, /waiting: /)
    const { code, err } = await run('accept', cluster)
    expect(code, err).toBe(0)
    await eventually(() => isPushed(cluster), yes, 90_000)
    return agent
  }

  it('needs both: the request approved by kubectl, and the cluster accepted', async () => {
    const agent = machine('edge', await tokenFor('edge'))
    const [, request = ''] =
      /certificate approve (edge-\w+)/.exec(await says(agent, /certificate approve edge-\w+/)) ?? []
    await kubectl(['certificate', 'approve', request])
    await says(agent, /the certificate is approved; ManagedCluster edge must be accepted/)
    expect(await view('edge')).toBeUndefined()
    await kubectl(['patch', 'managedcluster', 'edge', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":true}}'])
    await eventually(() => isPushed('edge'), yes, 90_000)
    expect(agent.stderr()).toContain('edge is a member of the hub')
    await kubectl(['wait', '--for=condition=ManagedClusterConditionAvailable', '--timeout=60s', 'managedcluster/edge'])

    // The hub signed it, and nobody else: its CA is published, and opens the stream alone.
    const csr = JSON.parse(await kubectl(['get', 'csr', request, '-o', 'json']))
    expect(csr.spec).toMatchObject({ signerName: 'open-cluster-management.io/grpc', username: MANAGER })
    const authority = await kubectl([
      '-n',
      'clusterpulse',
      'get',
      'cm',
      'hub-authority',
      '-o',
      'jsonpath={.data.ca\\.crt}',
    ])
    const certificate = new X509Certificate(Buffer.from(csr.status.certificate, 'base64'))
    expect(certificate.checkIssued(new X509Certificate(authority))).toBe(true)
  })

  it('takes one token once, and the trail says who tried it twice', async () => {
    const token = await tokenFor('north')
    const first = machine('north', token)
    await says(first, /waiting: /)
    const thief = machine('thief', token)
    expect(await thief.ended()).toBe(1)
    expect(thief.stderr()).toMatch(/the join token was used already/)
    await eventually(
      () => hub.trail(),
      (entries) =>
        entries.some(
          ({ route, reason, resource, kind }) =>
            route === 'join_refused' &&
            /used already/.test(reason) &&
            resource === 'managedcluster north' &&
            kind === 'denial',
        ),
    )
    // As an operator reads it, of the stream that both roles write.
    const shown = clusterpulse(['audit', 'show', '--member', 'north'], { env: hub.auditEnv })
    expect(await shown.ended(), shown.stderr()).toBe(0)
    expect(shown.stdout()).toMatch(/join_asked +managedcluster north +200 +north-\w+ /)
    expect(shown.stdout()).toMatch(/join_refused +managedcluster north +403 .*used already/)
    expect((await run('accept', 'north')).code).toBe(0)
    await eventually(() => isPushed('north'), yes, 90_000)
  })

  it('knows its members again after kill -9 of the manager: the CA stands in a Secret', {
    tags: ['long'],
  }, async () => {
    const of = async () =>
      (await kubectl(['-n', 'clusterpulse', 'get', 'cm', 'hub-authority', '-o', 'jsonpath={.data}'])) ?? ''
    const before = await of()
    const listed = async () => {
      const { clusters, items } = (await (await fetch(`${hub.page}/api/v2/rows/members`)).json()) as FleetPageView
      const { outcome, code, freshness } = clusters[0]?.part ?? {}
      return { outcome, code, observedAt: freshness?.observedAt ?? 0, names: items.map(({ name }) => name) }
    }
    expect(await listed()).toMatchObject({ outcome: 'complete', code: '' })
    await hub.killManager()
    const killedAt = Date.now()
    // Who is lost now is noticed by nobody: what is shown is of then, and says so.
    const old = await eventually(listed, ({ outcome }) => outcome !== 'complete', 90_000)
    expect(old).toMatchObject({ outcome: 'unreachable', code: 'members_not_judged' })
    expect(old.names).toContain('edge')
    expect(old.observedAt).toBeLessThanOrEqual(killedAt)
    expect(killedAt - old.observedAt).toBeLessThan(15_000)
    hub.startManager()
    await eventually(listed, ({ outcome }) => outcome === 'complete', 90_000)
    await eventually(async () => (await view('edge'))?.agent?.connected === false || isPushed('edge'), yes, 90_000)
    await eventually(() => isPushed('edge'), yes, 90_000)
    expect(await of()).toBe(before)
    await joined('west')
  })

  it('ends the stream of one that is revoked within seconds', async () => {
    await eventually(() => isPushed('north'), yes, 90_000)
    const { code, err } = await run('revoke', 'north')
    expect(code, err).toBe(0)
    const at = Date.now()
    // The limit is that of a machine that has much else to do.
    await eventually(async () => (await view('north'))?.agent?.connected !== true, yes, 20_000)
    console.info(`the stream of a revoked member ended within ${Date.now() - at} ms`)
    const wanted = ['join_asked', 'certificate_signed', 'join_granted', 'member_accepted', 'member_revoked']
    await expect.poll(async () => (await hub.trail()).map(({ route }) => route)).toEqual(expect.arrayContaining(wanted))
    const signed = (await hub.trail()).find(
      ({ route, resource }) => route === 'certificate_signed' && resource.endsWith(' north'),
    )
    expect(signed?.requestId).toMatch(/^north-\w+/)
  })

  it('lets the manager sign agents of its stream, and no clients of the API', async () => {
    const isAllowed = async (user: string, resourceAttributes: object) => {
      const review = {
        ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' },
        spec: { user, resourceAttributes },
      }
      return (
        (await kubectl(['create', '-f', '-', '-o', 'jsonpath={.status.allowed}'], JSON.stringify(review))) === 'true'
      )
    }
    const may = (verb: string, group: string, resource: string, name = '', subresource = '') =>
      isAllowed(MANAGER, { verb, group, resource, name, subresource })
    const certificates = 'certificates.k8s.io'
    const clusters = 'cluster.open-cluster-management.io'
    const webhooks = 'admissionregistration.k8s.io'
    expect(await may('sign', certificates, 'signers', 'open-cluster-management.io/grpc')).toBe(true)
    expect(await may('sign', certificates, 'signers', 'kubernetes.io/kube-apiserver-client')).toBe(false)
    expect(await may('approve', certificates, 'signers', 'kubernetes.io/kubelet-serving')).toBe(false)
    expect(await may('delete', clusters, 'managedclusters', 'edge')).toBe(false)
    expect(await may('get', '', 'secrets')).toBe(false)
    expect(await may('create', webhooks, 'validatingwebhookconfigurations')).toBe(false)
    expect(await may('patch', webhooks, 'validatingwebhookconfigurations', 'of-others')).toBe(false)
    // Whose certificates count is seen by all who tell of members.
    const authorities = { 'hub-authority': 'clusterpulse', 'extension-apiserver-authentication': 'kube-system' }
    for (const [name, namespace] of Object.entries(authorities))
      for (const user of [MANAGER, API])
        expect(await isAllowed(user, { verb: 'get', group: '', resource: 'configmaps', name, namespace })).toBe(true)
  })
}
