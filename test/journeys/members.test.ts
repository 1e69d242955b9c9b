import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { aRequest, signingRequest, subjectOfMember } from '../../src/platform/authority/test/requests.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { embeddedHub, kubectlOf, type MemberHub, memberHubs } from '../member-hub.ts'
import { eventually } from '../process.ts'

/** What the agent of c1 has, line by line as `kubectl auth can-i --list` prints it. */
const ITSELF = 'managedclusters.cluster.open-cluster-management.io [] [c1] [get list watch]'
const ANYWHERE = [
  'certificatesigningrequests.certificates.k8s.io [] [] [create get list watch]',
  'managedclusters.register.open-cluster-management.io/clientcertificates [] [] [renew]',
  'managedclusters.cluster.open-cluster-management.io [] [c1] [get list watch update]',
  'managedclusters.cluster.open-cluster-management.io/status [] [c1] [patch update]',
]
const IN_ITS_NAMESPACE = [
  'leases.coordination.k8s.io [] [] [get list watch update]',
  'managedclusteraddons.addon.open-cluster-management.io [] [] [get list watch]',
  'managedclusteraddons.addon.open-cluster-management.io/status [] [] [patch update]',
  'events [] [] [create patch update]',
  'events.events.k8s.io [] [] [create patch update]',
  'manifestworks.work.open-cluster-management.io [] [] [get list watch update patch]',
  'manifestworks.work.open-cluster-management.io/status [] [] [patch update]',
]

describe.each(memberHubs)('members of $title', ({ open, skip }) => {
  let folder = ''
  let hub: MemberHub
  let kubectl: ReturnType<typeof kubectlOf>

  beforeAll(async () => {
    if (skip !== undefined) return
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-members-'))
    hub = await open(folder)
    kubectl = kubectlOf(hub.kubeconfig)
  })
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  const agent = (cluster: string) => [
    `--as=system:open-cluster-management:${cluster}:a`,
    `--as-group=system:open-cluster-management:${cluster}`,
  ]
  const someone = ['--as=somebody', '--as-group=system:authenticated']
  const asked = (name: string, accepted: boolean) =>
    JSON.stringify({
      apiVersion: 'cluster.open-cluster-management.io/v1',
      kind: 'ManagedCluster',
      metadata: { name },
      spec: { hubAcceptsClient: accepted },
    })
  const canI = async (who: readonly string[], ...question: readonly string[]) =>
    (await kubectl(['auth', 'can-i', ...who, ...question]).catch((error: unknown) => String(error))).includes('yes')
  /** Lines of `can-i --list`, without how wide its columns are. */
  const list = async (who: readonly string[], namespace: string) =>
    (await kubectl(['auth', 'can-i', '--list', '-n', namespace, ...who]))
      .split('\n')
      .map((line) => line.replace(/\s+/g, ' ').trim())
      .filter(Boolean)

  it.skipIf(skip !== undefined)('who may make a ManagedCluster may not accept it', async () => {
    const rule = [
      '--verb=get,list,watch,create,update,patch',
      '--resource=managedclusters.cluster.open-cluster-management.io',
    ]
    await kubectl(['create', 'clusterrole', 'asks', ...rule])
    await kubectl(['create', 'clusterrolebinding', 'asks', '--clusterrole=asks', '--user=bootstrap'])
    await kubectl([
      'create',
      'clusterrole',
      'joins',
      '--verb=create',
      '--resource=managedclustersets.cluster.open-cluster-management.io/join',
    ])
    await kubectl(['create', 'clusterrolebinding', 'joins', '--clusterrole=joins', '--user=bootstrap'])
    const as = ['--as=bootstrap']
    // The API server learns of rights in its own time.
    await eventually(
      () => kubectl(['create', '-f', '-', ...as], asked('west', false)),
      (said) => said.includes('created'),
    )
    await expect(kubectl(['create', '-f', '-', ...as], asked('sly', true))).rejects.toThrow(/accept/)
    const accept = ['patch', 'managedcluster', 'west', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":true}}']
    await expect(kubectl([...accept, ...as])).rejects.toThrow(/accept/)
    await kubectl(accept)
    await kubectl(['wait', '--for=condition=HubAcceptedManagedCluster', '--timeout=60s', 'managedcluster/west'])
  })

  it.skipIf(skip !== undefined)(
    'one has the rights of the table and no other: before it is accepted, then in its own namespace and in another',
    async () => {
      await kubectl(['create', '-f', '-'], asked('c1', false))
      await kubectl(['create', '-f', '-'], asked('c2', true))
      const beyondEverybody = async (namespace: string) => {
        const everybody = await list(someone, namespace)
        return (await list(agent('c1'), namespace)).filter((line) => !everybody.includes(line)).sort()
      }
      await eventually(
        () => beyondEverybody('c1'),
        (lines) => lines.join() === ITSELF,
      )
      await kubectl(['patch', 'managedcluster', 'c1', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":true}}'])
      for (const name of ['c1', 'c2'])
        await kubectl(['wait', '--for=condition=HubAcceptedManagedCluster', '--timeout=60s', `managedcluster/${name}`])
      await expect.poll(() => beyondEverybody('c2')).toEqual([...ANYWHERE].sort())
      await expect.poll(() => beyondEverybody('c1')).toEqual([...ANYWHERE, ...IN_ITS_NAMESPACE].sort())
      expect(await canI(agent('c1'), 'update', 'leases.coordination.k8s.io', '-n', 'c1')).toBe(true)
      expect(await canI(agent('c1'), 'update', 'leases.coordination.k8s.io', '-n', 'c2')).toBe(false)
      expect(await canI(agent('c1'), 'create', 'manifestworks.work.open-cluster-management.io', '-n', 'c1')).toBe(false)
      expect(await canI(agent('c1'), 'get', 'secrets', '-n', 'c1')).toBe(false)
    },
  )

  it.skipIf(skip !== undefined)(
    "one that its own agent says is available is shown so, and renews its lease, as Open Cluster Management's does",
    async () => {
      const now = new Date().toISOString()
      const condition = (type: string, reason: string) => ({
        ...{ type, reason, status: 'True', message: '' },
        lastTransitionTime: now,
      })
      const tells = async (name: string) => {
        const stored = JSON.parse(await kubectl(['get', 'managedcluster', name, '-o', 'json'])) as {
          status: { conditions: object[] }
        }
        const conditions = [
          ...stored.status.conditions.filter((one) => !JSON.stringify(one).includes('Available')),
          condition('ManagedClusterJoined', 'ManagedClusterJoined'),
          condition('ManagedClusterConditionAvailable', 'ManagedClusterAvailable'),
        ]
        const path = `/apis/cluster.open-cluster-management.io/v1/managedclusters/${name}/status`
        // `kubectl patch --subresource` reads the status by itself, which OCM's table does not allow.
        const told = JSON.stringify({ ...stored, status: { ...stored.status, conditions } })
        await kubectl(['replace', '--raw', path, '-f', '-', ...agent('c1')], told)
      }
      // Its taint is written beside it: whoever was first, the other tries again.
      await eventually(
        () => tells('c1').then(() => true),
        (isTold) => isTold,
      )
      await expect(tells('c2')).rejects.toThrow(/forbidden/i)
      const table = await eventually(
        () => kubectl(['get', 'managedclusters']),
        (text) => /^c1 +true +True +True/m.test(text),
      )
      expect(table).toMatch(/^NAME +HUB ACCEPTED +MANAGED CLUSTER URLS +JOINED +AVAILABLE +AGE/)
      const lease = JSON.parse(await kubectl(['-n', 'c1', 'get', 'lease', 'managed-cluster-lease', '-o', 'json'])) as {
        spec: object
      }
      const renewed = { ...lease, spec: { ...lease.spec, renewTime: now.replace('Z', '000Z') } }
      await kubectl(['replace', '-f', '-', ...agent('c1')], JSON.stringify(renewed))
      await kubectl([
        'wait',
        '--for=condition=ManagedClusterConditionClockSynced',
        '--timeout=60s',
        'managedcluster/c1',
      ])
      const taints = (name: string) => kubectl(['get', 'managedcluster', name, '-o', 'jsonpath={.spec.taints[*].key}'])
      await eventually(
        () => taints('c1'),
        (keys) => keys === '',
      )
      expect(await taints('c2')).toContain('unreachable')
    },
  )

  it.skipIf(skip !== undefined)('one renews its own certificate without a person, and nobody else does', async () => {
    const { pem } = await aRequest(subjectOfMember('c1', 'a'))
    const labels = { 'open-cluster-management.io/cluster-name': 'c1' }
    const request = (name: string) =>
      JSON.stringify({
        ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
        ...{ ...signingRequest(pem, {}, labels), metadata: { name, labels } },
      })
    await kubectl(['create', '-f', '-'], request('by-somebody'))
    await kubectl(['create', '-f', '-', ...agent('c1')], request('by-itself'))
    await kubectl(['wait', '--for=condition=Approved', '--timeout=60s', 'csr/by-itself'])
    expect(await kubectl(['get', 'csr', 'by-itself', '-o', 'jsonpath={.status.conditions[0].reason}'])).toBe(
      'AutoApprovedByHubCSRApprovingController',
    )
    expect(await kubectl(['get', 'csr', 'by-somebody', '-o', 'jsonpath={.status.conditions}'])).toBe('')
  })

  it.skipIf(skip !== undefined)(
    'one that is denied sees itself and nothing else; deleted, it is gone, and its namespace stays',
    async () => {
      await kubectl(['patch', 'managedcluster', 'c1', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":false}}'])
      await kubectl(['wait', '--for=condition=HubAcceptedManagedCluster=False', '--timeout=60s', 'managedcluster/c1'])
      const everybody = await list(someone, 'c1')
      const more = async () => (await list(agent('c1'), 'c1')).filter((line) => !everybody.includes(line))
      await expect.poll(more).toEqual([ITSELF])
      await kubectl(['delete', 'managedcluster', 'c1', 'c2', '--timeout=60s'])
      await expect.poll(more).toEqual([])
      await kubectl(['get', 'namespace', 'c1', 'c2'])
    },
  )

  it.skipIf(skip !== undefined)('sets are there, count, and a binding finds them', async () => {
    const table = await eventually(
      () => kubectl(['get', 'managedclustersets', 'default', 'global']),
      (text) => text.includes('global'),
    )
    expect(table).toContain('default')
    const message = [
      'get',
      'managedclusterset',
      'global',
      '-o',
      'jsonpath={.status.conditions[?(@.type=="ClusterSetEmpty")].message}',
    ]
    await eventually(
      () => kubectl(message),
      (text) => text === '1 ManagedClusters selected',
    )
  })
})

describe.skipIf(memberHubs[0]?.skip !== undefined)('a member whose agent pushes', () => {
  it('is joined and available without a further step, and unknown within 15 s of its death', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clusterpulse-member-'))
    const hub = await embeddedHub(folder, ['--demo'])
    const kubectl = kubectlOf(hub.kubeconfig)
    try {
      const asks = {
        apiVersion: 'cluster.open-cluster-management.io/v1',
        kind: 'ManagedCluster',
        metadata: { name: 'edge-paris' },
      }
      await kubectl(['create', '-f', '-'], JSON.stringify({ ...asks, spec: { hubAcceptsClient: true } }))
      await kubectl([
        'wait',
        '--for=condition=ManagedClusterConditionAvailable',
        '--timeout=90s',
        'managedcluster/edge-paris',
      ])
      const { status } = JSON.parse(await kubectl(['get', 'managedcluster', 'edge-paris', '-o', 'json'])) as {
        status: { capacity: Record<string, string>; version: { kubernetes: string } }
      }
      expect(Number(status.capacity.cpu)).toBeGreaterThan(0)
      expect(status.version.kubernetes).toMatch(/^v\d/)
      const condition = '{.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].reason}'
      const reason = () => kubectl(['get', 'managedcluster', 'edge-paris', '-o', `jsonpath=${condition}`])
      const lostAfterMs = await leastOf(3, 15_000, async () => {
        // Frozen: its socket stays open, and nothing comes.
        process.kill(agentOf(hub.pid), 'SIGSTOP')
        const died = Date.now()
        await eventually(reason, (text) => text === 'ManagedClusterStreamLost', 60_000)
        const changed = await kubectl([
          'get',
          'managedcluster',
          'edge-paris',
          '-o',
          `jsonpath=${condition.replace('reason', 'lastTransitionTime')}`,
        ])
        process.kill(agentOf(hub.pid), 'SIGCONT')
        await eventually(reason, (text) => text === 'ManagedClusterAvailable', 90_000)
        // By the time written, which a loaded machine sees late.
        return Date.parse(changed) - died
      })
      expect(lostAfterMs).toBeLessThan(15_000)
    } finally {
      await hub[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  })
})

/** The process of the agent among those that the hub started. */
function agentOf(hub: number): number {
  const parents = new Map<number, { readonly parent: number; readonly command: string }>()
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      parents.set(Number(entry), {
        parent,
        command: readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' '),
      })
    } catch {
      // It ended meanwhile.
    }
  }
  for (const [pid, { parent, command }] of parents) if (parent === hub && / agent( |$)/.test(command)) return pid
  throw new Error('the hub started no agent')
}
