import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { customResourceDefinitions, secrets } from '#kube'
import { StoreUnavailableError } from '#model'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { connectionResource } from './connection-resource.ts'
import { reading } from './testing/reading.ts'
import {
  aWorld,
  conditionOf,
  connect,
  NAMESPACE,
  statusOf,
  until,
  untilPhase,
  type World,
  writeSecret,
} from './testing/world.ts'

const key = (name: string) => ({ name, namespace: NAMESPACE })

describe('a ClusterConnection', () => {
  it('becomes a cluster with nodes, and says so in its status', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'west', member, { displayName: 'West', labels: { env: 'prod' }, monitoring: { interval: 30 } })
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    const status = await statusOf(world, 'west')
    expect(status).toMatchObject({ phase: 'Connected', health: 'healthy', nodes: 1, namespaces: 4 })
    expect(Date.parse(status.lastSyncTime ?? '')).toBeGreaterThan(Date.now() - 60_000)
    const conditions = Object.fromEntries((status.conditions ?? []).map(({ type, status: said }) => [type, said]))
    expect(conditions).toEqual({
      Ready: 'True',
      TLSVerified: 'True',
      Reachable: 'True',
      CredentialsValid: 'True',
      Complete: 'True',
    })
    expect(status.conditions?.every(({ observedGeneration }) => observedGeneration === 1)).toBe(true)
    expect(world.cluster('west')).toMatchObject({
      connection: {
        displayName: 'West',
        endpoint: member.url,
        labels: { env: 'prod' },
        mode: 'pull',
        intervalMs: 30_000,
        timeoutMs: 2000,
      },
      status: { health: 'healthy' },
    })
    expect([...(world.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n1'])
  })

  it('is seen when it is made later, read again and again, and forgotten when it is deleted', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await world.start()
    await connect(world, 'west', member)
    await untilPhase(world, 'west', 'Connected')
    member.addNode('n2')
    await until(() => expect(world.cluster('west')?.parts.node?.items.size).toBe(2))
    expect(world.clients.size).toBe(1)
    await world.hub.delete(connectionResource, key('west'))
    await until(() => expect(world.cluster('west')).toBeUndefined())
    expect(world.clients.size).toBe(0)
    const after = world.batches.length
    member.addNode('n3')
    await connect(world, 'east', member)
    await untilPhase(world, 'east', 'Connected')
    expect(world.batches.slice(after).every(({ cluster }) => cluster === 'east')).toBe(true)
  })

  it('numbers its rounds upwards, through a restart', async () => {
    await using world = await aWorld()
    await connect(world, 'west', await world.member())
    const first = await world.start()
    await until(() => expect(world.batches.length).toBeGreaterThan(2))
    await first.stop()
    const before = world.batches.length
    await world.start()
    await until(() => expect(world.batches.length).toBeGreaterThan(before + 1))
    const numbers = world.batches.map(({ sequence }) => sequence)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  })

  it('is forgotten at the next start when it was deleted while nobody looked', async () => {
    await using world = await aWorld()
    await connect(world, 'west', await world.member())
    const first = await world.start()
    await untilPhase(world, 'west', 'Connected')
    await first.stop()
    await world.hub.delete(connectionResource, key('west'))
    expect(world.cluster('west')).toBeDefined()
    await world.start()
    await until(() => expect(world.cluster('west')).toBeUndefined())
  })

  it('does not write its status again while nothing changes', async () => {
    await using world = await aWorld()
    await connect(world, 'west', await world.member())
    await world.start()
    await until(async () => expect((await statusOf(world, 'west')).health).toBe('healthy'))
    const versionOf = async () => (await world.hub.get(connectionResource, key('west')))?.metadata.resourceVersion
    const version = await versionOf()
    const rounds = world.batches.length
    await until(() => expect(world.batches.length).toBeGreaterThan(rounds + 3))
    expect(await versionOf()).toBe(version)
  })
})

describe('a cluster that cannot be read', () => {
  it('shows the error where people look, keeps what was known, and heals when the cause goes', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'west', member)
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    await writeSecret(world.hub, 'west-credentials', { token: 'expired', 'ca.crt': member.ca })
    await untilPhase(world, 'west', 'Error')
    const status = await statusOf(world, 'west')
    expect(status).toMatchObject({
      health: 'unhealthy',
      message: expect.stringMatching(/^connection test failed: .*401/) as string,
    })
    expect(await conditionOf(world, 'west', 'CredentialsValid')).toMatchObject({
      status: 'False',
      reason: 'KubeUnauthorized',
    })
    expect(await conditionOf(world, 'west', 'Reachable')).toMatchObject({ status: 'True' })
    expect(world.cluster('west')?.parts.node?.items.size).toBe(1)
    expect(world.cluster('west')?.status.health).toBe('unhealthy')
    await writeSecret(world.hub, 'west-credentials', { token: member.token, 'ca.crt': member.ca })
    await untilPhase(world, 'west', 'Connected')
    expect(await conditionOf(world, 'west', 'CredentialsValid')).toMatchObject({ status: 'True' })
  })

  it('says that nothing listens there, and touches no other cluster', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'gone', { ...member, url: 'https://127.0.0.1:1' })
    await connect(world, 'west', member)
    await world.start()
    await untilPhase(world, 'gone', 'Error')
    await untilPhase(world, 'west', 'Connected')
    expect((await statusOf(world, 'gone')).message).toMatch(
      /^connection test failed: .*nothing listens at https:\/\/127\.0\.0\.1:1/,
    )
    expect(await conditionOf(world, 'gone', 'Reachable')).toMatchObject({ status: 'False' })
    expect(await conditionOf(world, 'gone', 'CredentialsValid')).toMatchObject({ status: 'Unknown' })
  })

  it('over plain HTTP to this machine takes no field, and says so instead of naming a choice', async () => {
    await using world = await aWorld()
    const server = createHttpServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await connect(world, 'west', { ...(await world.member()), url })
    await world.start()
    const reasonOf = async () => (await conditionOf(world, 'west', 'TLSVerified'))?.reason
    await until(async () => expect(await reasonOf()).toBe('PlainOnThisMachine'))
    expect((await conditionOf(world, 'west', 'TLSVerified'))?.message).toMatch(/plain HTTP on this machine/)
    expect(world.cluster('west')?.connection?.insecureSkipTlsVerify).toBe(false)
    await world.hub.patch(connectionResource, key('west'), { spec: { insecureSkipTLSVerify: true } }, { kind: 'merge' })
    await until(async () => expect(await reasonOf()).toBe('SkippedByChoice'))
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  it('refuses a certificate of an unknown CA, until it is given or waived', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'west', member, {}, { token: member.token })
    await world.start()
    await untilPhase(world, 'west', 'Error')
    expect((await statusOf(world, 'west')).message).toMatch(/not signed by a known CA; give the cluster's ca\.crt/)
    await world.hub.patch(connectionResource, key('west'), { spec: { insecureSkipTLSVerify: true } }, { kind: 'merge' })
    await untilPhase(world, 'west', 'Connected')
    expect(await conditionOf(world, 'west', 'TLSVerified')).toMatchObject({
      status: 'False',
      reason: 'SkippedByChoice',
    })
    expect(world.cluster('west')?.connection?.insecureSkipTlsVerify).toBe(true)
  })

  it('is named when its Secret is missing, and read as soon as it is there', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'west', member)
    await world.hub.delete(secrets, key('west-credentials'))
    await world.start({ defaults: { intervalMs: 60_000, timeoutMs: 2000, operatorScanIntervalMs: 300_000 } })
    await untilPhase(world, 'west', 'Error')
    expect(await statusOf(world, 'west')).toMatchObject({
      message: 'failed to get cluster client: the Secret clusterpulse/west-credentials does not exist; create it',
    })
    expect(world.cluster('west')?.status).toMatchObject({ health: 'unhealthy' })
    await writeSecret(world.hub, 'west-credentials', { token: member.token, 'ca.crt': member.ca })
    await untilPhase(world, 'west', 'Connected')
  })

  it('is given up after its timeout when it accepts connections and says nothing', async () => {
    await using world = await aWorld()
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const member = await world.member()
    await connect(world, 'silent', { ...member, url: `http://127.0.0.1:${port}` })
    await connect(world, 'west', member)
    await world.start({ defaults: { intervalMs: 150, timeoutMs: 300, operatorScanIntervalMs: 300_000 } })
    await untilPhase(world, 'west', 'Connected')
    await untilPhase(world, 'silent', 'Error')
    expect((await statusOf(world, 'silent')).message).toMatch(/^connection test failed: /)
    expect(await conditionOf(world, 'silent', 'Ready')).toMatchObject({ reason: 'KubeTimeout' })
    silent.close()
  })

  it('is said to be connecting where the first look takes long; others have no such word written for them', async () => {
    await using world = await aWorld()
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const member = await world.member()
    await connect(world, 'silent', { ...member, url: `http://127.0.0.1:${port}` })
    await connect(world, 'west', member)
    const versions = new Set<string | undefined>()
    const watching = setInterval(() => void statusOf(world, 'west').then(({ phase }) => versions.add(phase)), 1)
    await world.start({ defaults: { intervalMs: 60_000, timeoutMs: 60_000, operatorScanIntervalMs: 300_000 } })
    await untilPhase(world, 'west', 'Connected')
    clearInterval(watching)
    expect(versions).not.toContain('Connecting')
    await untilPhase(world, 'silent', 'Connecting')
    silent.close()
  })

  it('is listed as not read yet at once, however many others wait for clusters that say nothing', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await using world = await aWorld({ concurrency: 1 })
    const spec = {
      endpoint: `https://127.0.0.1:${(silent.address() as AddressInfo).port}`,
      credentialsRef: { name: 'shared' },
      insecureSkipTLSVerify: true,
    }
    await writeSecret(world.hub, 'shared', { token: 'a-token' })
    for (let n = 0; n < 300; n++) {
      const metadata = { name: `c-${n}`, namespace: NAMESPACE }
      const object = { apiVersion: 'clusterpulse.io/v1alpha1', kind: 'ClusterConnection', metadata, spec }
      await world.hubServer.objects.create(object)
    }
    const declared = performance.now()
    await world.start()
    await until(() => expect(world.state.clusters().filter(({ connection }) => connection)).toHaveLength(300))
    // Each of them would be waited for, for two seconds.
    expect((performance.now() - declared) / slowness).toBeLessThan(30_000)
    const unread = world.state.clusters().filter(({ parts }) => Object.keys(parts).length === 0)
    expect(unread).toHaveLength(300)
    expect(unread.every(({ status }) => status.health === 'unknown')).toBe(true)
    silent.close()
  })

  it('is read at its new address as soon as the connection says so', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'west', { ...member, url: 'https://127.0.0.1:1' })
    await world.start({ defaults: { intervalMs: 60_000, timeoutMs: 2000, operatorScanIntervalMs: 300_000 } })
    await untilPhase(world, 'west', 'Error')
    await world.hub.patch(connectionResource, key('west'), { spec: { endpoint: member.url } }, { kind: 'merge' })
    await untilPhase(world, 'west', 'Connected')
    expect(world.cluster('west')?.connection?.endpoint).toBe(member.url)
  })

  it('names a part that may not be read, and shows the rest', async () => {
    await using world = await aWorld()
    const member = await world.member()
    const { collectors } = await import('#collect')
    const { KubeError } = await import('#kube')
    const refused = collectors.map((collector) =>
      collector.name === 'deployments'
        ? reading(collector, () => Promise.reject(new KubeError('forbidden', 'deployments: no role')))
        : collector,
    )
    await connect(world, 'west', member)
    await world.start({ collectors: refused })
    await untilPhase(world, 'west', 'Connected')
    expect(await conditionOf(world, 'west', 'Complete')).toMatchObject({
      status: 'False',
      message: 'deployment forbidden: deployments: no role',
    })
    expect(world.cluster('west')?.parts.node?.outcome).toBe('complete')
    expect(world.cluster('west')?.parts.deployment?.outcome).toBe('forbidden')
  })

  it('says what is wrong with an object that an older schema let through', async () => {
    await using world = await aWorld()
    const member = await world.member()
    const crds = key('clusterconnections.clusterpulse.io')
    const crd = await world.hub.get(customResourceDefinitions, { name: crds.name })
    const loose = structuredClone(crd) as unknown as { spec: { versions: { schema: object }[] } }
    loose.spec.versions[0]!.schema = {
      openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    }
    await world.hub.replace(customResourceDefinitions, loose as never)
    await connect(world, 'odd', member, { endpoint: 'ftp://west' })
    await connect(world, 'west', member)
    await world.start()
    await untilPhase(world, 'odd', 'Error')
    await untilPhase(world, 'west', 'Connected')
    expect((await statusOf(world, 'odd')).message).toMatch(/spec\.endpoint must be the address of an API server/)
    expect(world.cluster('odd')?.status.health).toBe('unhealthy')
  })
})

describe('a hub that cannot keep what was read', () => {
  const full = new StoreUnavailableError("the hub's log", 'no space left on the disk')
  const refusing = (world: World, what: () => 'connect' | 'accept' | 'nothing') => ({
    ingester: {
      connect: (...given: Parameters<World['ingester']['connect']>) =>
        what() === 'connect' ? Promise.reject(full) : world.ingester.connect(...given),
      remove: (cluster: Parameters<World['ingester']['remove']>[0]) => world.ingester.remove(cluster),
      nextSequence: (cluster: Parameters<World['ingester']['nextSequence']>[0]) => world.ingester.nextSequence(cluster),
      unread: (...given: Parameters<World['ingester']['unread']>) => world.ingester.unread(...given),
      accept: (...given: Parameters<World['ingester']['accept']>) =>
        what() === 'accept' ? Promise.reject(full) : world.ingester.accept(...given),
    },
  })

  it.each(['connect', 'accept'] as const)(
    'says so of each cluster (%s), blames none of them, and heals',
    async (step) => {
      await using world = await aWorld()
      let refused: 'connect' | 'accept' | 'nothing' = step
      await connect(world, 'west', await world.member())
      await world.start(refusing(world, () => refused))
      await untilPhase(world, 'west', 'Error')
      expect(await statusOf(world, 'west')).toMatchObject({
        health: 'unknown',
        message: expect.stringMatching(/^the (cluster was read, but the )?hub could not .*no space left/) as string,
      })
      expect(await conditionOf(world, 'west', 'Ready')).toMatchObject({ status: 'False', reason: 'StoreUnavailable' })
      expect((await conditionOf(world, 'west', 'Reachable'))?.status).not.toBe('False')
      refused = 'nothing'
      await untilPhase(world, 'west', 'Connected')
      await until(async () => expect((await statusOf(world, 'west')).health).toBe('healthy'))
    },
  )
})

describe('a round', () => {
  it('is thrown away when its connection is deleted meanwhile', async () => {
    await using world = await aWorld()
    const member = await world.member()
    let reached: () => void = () => undefined
    const collecting = new Promise<void>((resolve) => {
      reached = resolve
    })
    const { collectors } = await import('#collect')
    const slow = collectors.map((collector) =>
      collector.name === 'nodes'
        ? reading(collector, (_, signal) => {
            reached()
            return new Promise<never>((_, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
            )
          })
        : collector,
    )
    await connect(world, 'west', member)
    await world.start({ collectors: slow })
    await collecting
    expect(world.cluster('west')).toBeDefined()
    await world.hub.delete(connectionResource, key('west'))
    await until(() => expect(world.cluster('west')).toBeUndefined())
    expect(world.batches).toEqual([])
  })

  it('reads operators seldom, and again soon where it could not get through', async () => {
    await using world = await aWorld()
    let reads = 0
    let ends: 'unreachable' | 'fine' = 'unreachable'
    const { collectors } = await import('#collect')
    const { KubeError } = await import('#kube')
    const counted = collectors.map((collector) =>
      collector.name === 'operators'
        ? reading(collector, () => {
            reads++
            return ends === 'fine' ? Promise.resolve(undefined) : Promise.reject(new KubeError('timeout', 'slow'))
          })
        : collector,
    )
    await connect(world, 'west', await world.member())
    await world.start({ collectors: counted })
    await until(() => expect(reads).toBeGreaterThan(1))
    ends = 'fine'
    await until(() => expect(world.cluster('west')?.parts.operator?.outcome).toBe('complete'))
    const settled = reads
    const rounds = world.batches.length
    await until(() => expect(world.batches.length).toBeGreaterThan(rounds + 3))
    expect(reads).toBe(settled)
  })

  it('pulls a cluster that waits for an agent, and says so', async () => {
    await using world = await aWorld()
    await connect(world, 'west', await world.member(), { collectionMode: 'push', monitoring: { interval: 5 } })
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    expect(world.cluster('west')?.connection?.mode).toBe('pull')
    expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ status: 'False', reason: 'NoAgent' })
    expect(await conditionOf(world, 'west', 'SpecAdjusted')).toMatchObject({
      message: 'monitoring.interval 5 counts as 30',
    })
    await world.hub.patch(
      connectionResource,
      key('west'),
      { spec: { collectionMode: 'pull', monitoring: { interval: 30 } } },
      { kind: 'merge' },
    )
    await until(async () => expect(await conditionOf(world, 'west', 'CollectorConnected')).toBeUndefined())
    expect(await conditionOf(world, 'west', 'SpecAdjusted')).toBeUndefined()
  })
})

describe('a connection by kubeconfig', () => {
  const kubeconfig = (url: string, ca: string, token: string) => `apiVersion: v1
kind: Config
current-context: west
clusters: [{name: c, cluster: {server: "${url}", certificate-authority-data: ${Buffer.from(ca).toString('base64')}}}]
users: [{name: u, user: {token: ${token}}}]
contexts: [{name: west, context: {cluster: c, user: u}}]
`

  it('works from the text in its Secret, and shows the address that is asked', async () => {
    await using world = await aWorld()
    const member = await world.member()
    const data = { kubeconfig: kubeconfig(member.url, member.ca, member.token) }
    await connect(world, 'west', { ...member, url: 'https://elsewhere:6443' }, {}, data)
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    expect(world.cluster('west')?.connection?.endpoint).toBe(member.url)
  })

  it('is refused where the Secret would have the hub read its own files or run commands', async () => {
    await using world = await aWorld()
    const member = await world.member()
    const exec = '{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}}'
    const running = kubeconfig(member.url, member.ca, member.token).replace(/\{token: [^}]*\}/, exec)
    await connect(world, 'runs', member, {}, { kubeconfig: running })
    await connect(world, 'reads', member, {}, { kubeconfig: running.replace(exec, '{tokenFile: /etc/hostname}') })
    await connect(world, 'local', member, {}, { kubeconfigPath: '/etc/hostname', context: 'west' })
    await world.start()
    for (const name of ['runs', 'reads', 'local']) await untilPhase(world, name, 'Error')
    expect((await statusOf(world, 'runs')).message).toMatch(/uses exec, which a hub does not/)
    expect((await statusOf(world, 'reads')).message).toMatch(/uses tokenFile, which a hub does not/)
    expect((await statusOf(world, 'local')).message).toMatch(/names a file, which a hub does not read/)
  })

  it('follows the file on this machine as it changes, where that is allowed', async () => {
    await using world = await aWorld({ allowLocalKubeconfig: true })
    const directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
    const path = join(directory, 'config')
    const member = await world.member()
    await connect(world, 'west', member, {}, { kubeconfigPath: path, context: 'west' })
    await world.start()
    await untilPhase(world, 'west', 'Error')
    expect((await statusOf(world, 'west')).message).toContain(`the kubeconfig ${path} cannot be read (ENOENT)`)
    await writeFile(path, kubeconfig(member.url, member.ca, 'wrong'))
    await until(async () => expect((await statusOf(world, 'west')).message).toMatch(/401/))
    await writeFile(path, kubeconfig(member.url, member.ca, member.token))
    await untilPhase(world, 'west', 'Connected')
    await rm(directory, { recursive: true })
  })
})
