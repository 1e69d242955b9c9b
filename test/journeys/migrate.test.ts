import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { compilePolicy } from '#access'
import { storeAsOriginal } from '../../src/pipeline/access/testing/original-writer.ts'
import { policy } from '../../src/pipeline/access/testing/words.ts'
import { OriginalHub } from '../../src/pipeline/agent/testing/original-hub.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { OriginalCollector } from '../original-collector.ts'
import { originalRound } from '../original-manager.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const missing = noRealApiServer() ?? redisMissing
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing
const alice = () =>
  policy(
    'Allow',
    [{ selector: { matchPattern: '^(central|east)$' }, permissions: { view: true, viewMetrics: true } }],
    {
      name: 'alice',
      users: ['alice'],
    },
  )
const ORIGINAL_IMAGE = 'registry.example/clusterpulse/collector:v0.9'
const [PULLED, PUSHED] = ['central', 'east'] as const
const [GUIDE = ''] = readFileSync('docs/guide/migrate.md', 'utf8').split('\n## Environment')

/** What a section of the guide shows to be typed, in its order. */
function blocksOf(title: string): readonly string[] {
  const [, text = ''] = new RegExp(`\\n##+ ${title}\\n([\\s\\S]*?)(?=\\n##+ |$)`).exec(GUIDE) ?? []
  return [...text.matchAll(/\n\n((?: {4,}.*(?:\n|$))+)/g)].map(([, block = '']) => {
    const margin = /^ */.exec(block)?.[0] ?? ''
    return block.replaceAll(new RegExp(`^${margin}`, 'gm'), '')
  })
}

const titles = [...GUIDE.matchAll(/^##+ (.*)$/gm)].map(([, title = '']) => title)
const [readFaults = '', applyCrds = ''] = blocksOf('Before you begin')
const [installBeside = ''] = blocksOf('Where our processes run')
const [originalApi = '', endApi = '', replaceManager = ''] = blocksOf('Order: API first')
const [ownApi = ''] = blocksOf('Order: manager first')
const [replaceCollector = ''] = blocksOf('Order: members first')
const [leadIngester = '', leaveToHub = ''] = blocksOf('Members')
const [endSeals = ''] = blocksOf('Going back')

/** A program that goes on after it was typed: with which settings. */
const GOES_ON = /^(.*)clusterpulse (api|manager)$/m
function settingsOf(block: string): Record<string, string> {
  const [, settings = ''] = GOES_ON.exec(block) ?? []
  const words = settings.trim().split(' ')
  return Object.fromEntries(words.map((one) => one.split('=')))
}
const both = { STATE_SOURCE: 'original', RBAC_SEMANTICS: 'original' }

/** docs/guide/migrate.md, step by step: a Redis of an original manager, real members, collectors of the original. */
describe.skipIf(why !== undefined)(`migrating${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder: string
  let real: RealApiServer
  let redis: TestRedis
  let hand: Redis
  let ingesterPort: number
  let tokens: ReadonlyMap<string, string>
  const running: Running[] = []
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const role = clusterpulse(args, { env })
    running.push(role)
    return role
  }
  const kubectl = async (args: readonly string[], input?: string) => {
    const run = program(
      'kubectl',
      ['--kubeconfig', join(folder, 'hub.yaml'), ...args],
      input === undefined ? {} : { input },
    )
    expect(await run.ended(), run.stderr()).toBe(0)
    return run.stdout()
  }
  const shared = () => ({
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(redis.port),
    KUBECONFIG: join(folder, 'hub.yaml'),
  })
  const typed = new Set<string>()
  /** Types a block into a shell in the folder of the guide, without what goes on. @returns what it printed */
  const type = async (block: string): Promise<string> => {
    typed.add(block)
    const shell = program('bash', ['-euo', 'pipefail', '-c', block.replace(GOES_ON, '')], {
      cwd: folder,
      env: {
        ...shared(),
        PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
        KUBECONFIG: `${join(folder, 'hub.yaml')}:${join(folder, 'members.yaml')}`,
      },
    })
    expect(await shell.ended(), `${block}\n${shell.stdout()}\n${shell.stderr()}`).toBe(0)
    return shell.stdout()
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-migrate-'))
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    real = server
    redis = await startRedis()
    hand = new Redis(redis.port)
    ingesterPort = await freePort()
    await writeFile(join(folder, 'hub.yaml'), real.kubeconfig)
    const fleet = start([
      'simulate',
      '--clusters',
      '2',
      '--nodes',
      '3',
      '--pods',
      '15',
      '--kubeconfig-out',
      join(folder, 'members.yaml'),
    ])
    await fleet.says(/kubeconfig in/)
    // Members with names of their own, as an installation has them.
    const members = parse(await readFile(join(folder, 'members.yaml'), 'utf8'))
    for (const [at, name] of [PULLED, PUSHED].entries()) {
      const context = { cluster: name, user: name }
      Object.assign(members.contexts[at], { name, context })
      for (const one of [members.clusters[at], members.users[at]]) one.name = name
    }
    await writeFile(join(folder, 'members.yaml'), stringify({ ...members, 'current-context': '' }))
    tokens = new Map(
      members.users.map(({ name, user }: { name: string; user: { token: string } }) => [name, user.token]),
    )
    await mkdir(join(folder, 'bin'))
    const bin = join(import.meta.dirname, '../../bin/clusterpulse.js')
    const ownName = async (name: string, line: string) =>
      writeFile(join(folder, 'bin', name), `#!/bin/sh\n${line} "$@"\n`, { mode: 0o755 })
    await ownName('clusterpulse', `exec node ${bin}`)
    await ownName('npx', 'exec')
    await ownName('redis-cli', `PATH="${process.env.PATH}" exec redis-cli -p ${redis.port}`)
    await symlink(resolve('.'), join(folder, 'clusterpulse'))
    // What stands in the hub cluster of an original installation: one member in pull mode, one in push mode.
    const crds = clusterpulse(['crds'])
    expect(await crds.ended()).toBe(0)
    await kubectl(['apply', '-f', '-'], crds.stdout())
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
    await kubectl(['create', 'namespace', 'clusterpulse'])
    const inHub = (...args: readonly string[]) => kubectl(['-n', 'clusterpulse', ...args])
    await inHub('create', 'secret', 'generic', 'pulse-redis', '--from-literal=redis-password=s3cret')
    await inHub('create', 'service', 'clusterip', 'pulse-ingester', '--tcp=9443')
    const own = { selector: { app: 'pulse', component: 'cluster-controller' } }
    await inHub('patch', 'service', 'pulse-ingester', '-p', JSON.stringify({ spec: own }))
    for (const name of ['pulse-api', 'pulse-cluster-controller'])
      await inHub('create', 'deployment', name, `--image=registry.example/${name}:v0.9`)
    for (const { name, cluster } of members.clusters) {
      const ca = join(folder, 'ca.crt')
      await writeFile(ca, Buffer.from(cluster['certificate-authority-data'], 'base64'))
      const held = [`--from-literal=token=${tokens.get(name)}`, `--from-file=ca.crt=${ca}`]
      await inHub('create', 'secret', 'generic', name, ...held)
      const way = { collectionMode: 'push', ingesterAddress: `127.0.0.1:${ingesterPort}` }
      await kubectl(
        ['apply', '-f', '-'],
        JSON.stringify({
          apiVersion: 'clusterpulse.io/v1alpha1',
          kind: 'ClusterConnection',
          metadata: { name, namespace: 'clusterpulse' },
          spec: {
            displayName: name,
            endpoint: cluster.server,
            credentialsRef: { name },
            ...(name === PUSHED && way),
          },
        }),
      )
    }
    await kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({
        apiVersion: 'clusterpulse.io/v1alpha1',
        kind: 'MetricSource',
        metadata: { name: 'pods', namespace: 'clusterpulse' },
        spec: {
          source: { apiVersion: 'v1', kind: 'Pod' },
          fields: [{ name: 'phase', path: '.status.phase' }],
          aggregations: [{ name: 'total', function: 'count' }],
          rbac: { resourceTypeName: 'every-pod' },
        },
      }),
    )
    const allow = alice()
    await kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({ apiVersion: 'clusterpulse.io/v1alpha1', kind: 'MonitorAccessPolicy', ...allow }),
    )
    await storeAsOriginal(hand, compilePolicy(allow, { now: Date.now() }).document as never)
    await originally()
  })
  afterAll(async () => {
    for (const role of running) await role[Symbol.asyncDispose]()
    hand?.disconnect()
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** A round of the original manager, which sees four nodes where there are three: so its word is known from ours. */
  const originally = async () => {
    for (const name of tokens.keys())
      await originalRound(hand, {
        name,
        mode: name === PUSHED ? 'push' : 'pull',
        nodes: ['a', 'b', 'c', 'd'].map((one) => ({ name: one })),
        namespaces: ['x'],
      })
  }

  async function anApi(env: Readonly<Record<string, string>> = {}) {
    const api = start(['api', '--host', '127.0.0.1', '--port', '0'], {
      ...shared(),
      TRUSTED_PROXIES: '127.0.0.1',
      ...env,
    })
    const url = (await api.says(/http:\/\/[\d.:]+/))[0]
    const get = async (path: string) => {
      const answer = await fetch(url + path, { headers: { 'X-Forwarded-User': 'alice' } })
      // biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes, compared below
      return { status: answer.status, body: (await answer.json()) as any }
    }
    const nodes = async () => {
      const { status, body } = await get('/api/v1/clusters')
      return status === 200 ? body.map((one: { metrics: { nodes?: number } }) => one.metrics.nodes) : [body.code]
    }
    return { api, get, nodes }
  }
  /** The original's manager ends, ours begins: step 3 of "API first", step 1 of "manager first". */
  const aManager = async () => {
    await type(replaceManager)
    expect(await replicasOf('pulse-cluster-controller')).toBe('0')
    return start(['manager', '--health-probe-bind-address', '127.0.0.1:0', '--metrics-bind-address', '127.0.0.1:0'], {
      ...shared(),
      ...settingsOf(replaceManager),
      DATA_DIR: join(folder, 'manager'),
      INGESTER_PORT: String(ingesterPort),
      INGESTER_HOST: '127.0.0.1',
      INGESTER_ADVERTISE: `127.0.0.1:${ingesterPort}`,
    })
  }
  const replicasOf = (name: string) =>
    kubectl(['-n', 'clusterpulse', 'get', 'deployment', name, '-o', 'jsonpath={.spec.replicas}'])

  const anAgent = (env: Readonly<Record<string, string>>) =>
    start(['agent'], {
      HEALTH_ADDRESS: '127.0.0.1:0',
      CLUSTER_NAME: PUSHED,
      KUBECONFIG: join(folder, 'members.yaml'),
      KUBECONTEXT: PUSHED,
      COLLECTOR_TOKEN: tokens.get(PUSHED) ?? '',
      COLLECT_INTERVAL: '2s',
      ...env,
      // The network and the disk of the member are those of this machine.
      INGESTER_ADDRESS: `127.0.0.1:${ingesterPort}`,
      BUFFER_DIR: join(folder, env.BUFFER_DIR ?? 'agent'),
    })
  /** The process of the Deployment that the guide puts in place of a collector. */
  const theAgent = async () => {
    const { spec } = JSON.parse(await onMember(PUSHED, ['get', 'deployment', 'clusterpulse-agent', '-o', 'json']))
    const { serviceAccountName, containers } = spec.template.spec
    expect([containers[0].args, serviceAccountName]).toEqual([['agent'], 'clusterpulse-collector'])
    const env: [string, string][] = []
    for (const { name, value, valueFrom } of containers[0].env) {
      const { name: secret, key } = valueFrom?.secretKeyRef ?? {}
      const read = `go-template={{index .data "${key}" | base64decode}}`
      env.push([name, value ?? (await onMember(PUSHED, ['get', 'secret', secret, '-o', read]))])
    }
    return anAgent(Object.fromEntries(env))
  }
  const onMember = async (cluster: string, args: readonly string[], input?: string) => {
    const member = ['--kubeconfig', join(folder, 'members.yaml'), '--context', cluster, '-n', 'clusterpulse-system']
    const run = program('kubectl', [...member, ...args], input === undefined ? {} : { input })
    expect(await run.ended(), run.stderr()).toBe(0)
    return run.stdout()
  }
  /** What a manager of the original makes on a member in push mode, as far as it decides anything. */
  const deployOriginal = async (cluster: string) => {
    const labels = { 'app.kubernetes.io/name': 'clusterpulse-collector' }
    const containers = [{ name: 'collector', image: ORIGINAL_IMAGE }]
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'clusterpulse-system' } }
    const secret = {
      ...{ apiVersion: 'v1', kind: 'Secret' },
      metadata: { name: 'clusterpulse-collector-token', namespace: 'clusterpulse-system' },
      stringData: { token: tokens.get(cluster) },
    }
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'clusterpulse-collector', namespace: 'clusterpulse-system' },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    }
    for (const object of [namespace, secret, deployment])
      await onMember(cluster, ['apply', '-f', '-'], JSON.stringify(object))
  }
  const deployedImage = (cluster: string) =>
    onMember(cluster, [
      'get',
      'deployment',
      'clusterpulse-collector',
      '--ignore-not-found',
      '-o',
      'jsonpath={.spec.template.spec.containers[0].image}',
    ])
  /** The lists of a cluster as the original's API reads them, and the document that tells of them. */
  const listsIn = async (cluster: string) => {
    const read = async (key: string) => JSON.parse((await hand.get(`cluster:${cluster}:${key}`)) ?? 'null')
    const names = ['pods', 'deployments', 'services', 'statefulsets', 'daemonsets']
    const counts = await Promise.all(names.map(async (name) => [`${name}_count`, (await read(name))?.length ?? 0]))
    return { counts: Object.fromEntries(counts), told: await read('resource_metadata'), pods: await read('pods') }
  }
  /** A collector of the original that stays once it was let in: where it leaves, the hub reads the cluster itself. */
  const twoNodes = { nodeMetrics: ['p', 'q'].map((name) => ({ name, status: 'Ready', podsTotal: 1, podsRunning: 1 })) }
  /** Once it was let in. */
  const aCollector = (cluster: string) =>
    eventually(
      async () => {
        const address = `127.0.0.1:${ingesterPort}`
        const collector = new OriginalCollector({ address, cluster, token: tokens.get(cluster) ?? '' })
        try {
          collector.push('one', twoNodes)
          if ((await collector.acked(1))[0]?.success) return collector
        } catch (error) {
          await collector[Symbol.asyncDispose]()
          throw error
        }
        await collector[Symbol.asyncDispose]()
        throw new Error('the batch was refused')
      },
      () => true,
      60_000,
    )

  /** Its word is shown: collectors send in each interval, and a read that the manager had begun before may end after the first batch. */
  const isRead = async (collector: OriginalCollector, { nodes }: Awaited<ReturnType<typeof anApi>>) => {
    const pushing = setInterval(() => collector.push(`at-${Date.now()}`, twoNodes), 1_000)
    await eventually(nodes, (all) => all.join() === '3,2', 60_000).finally(() => clearInterval(pushing))
  }

  it('begins with what the objects say, and changes nothing but their definitions', async () => {
    const objects = ['-n', 'clusterpulse', 'get', 'policy,clusterconnections,metricsources', '-o', 'yaml']
    const before = await kubectl(objects)
    const told = await type(readFaults)
    // What alice sees by either semantics, cluster by cluster, and what is collected on the member.
    for (const name of [PULLED, PUSHED])
      expect(told.match(new RegExp(`\\b${name}\\b`, 'g'))?.length).toBeGreaterThanOrEqual(2)
    // Pods come and go meanwhile: what is counted is what is shown.
    const shown = told.match(/^[\w-]+ +[\w-]+ +(?:Running|Pending|Succeeded|Failed)$/gm) ?? []
    expect(shown.length).toBeGreaterThan(10)
    expect(told).toMatch(new RegExp(`^total +${shown.length}$`, 'm'))
    await type(applyCrds)
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
    expect(await kubectl(objects)).toBe(before)
  })

  it('runs beside the original by the manifests that the guide shows', async () => {
    const hub = join(folder, 'hub')
    const applied = (await type(installBeside)).split('\n')
    const password = ['get', 'secret', 'clusterpulse-redis', '-o', 'go-template={{.data.password | base64decode}}']
    expect(await kubectl(['-n', 'clusterpulse', ...password])).toBe('s3cret')
    const has = (object: string) => applied.some((line) => line.startsWith(`${object} `))
    const ours = [
      'deployment.apps/clusterpulse-manager',
      'deployment.apps/clusterpulse-api',
      'service/clusterpulse-ingester',
    ]
    expect(ours.filter((object) => !has(object))).toEqual([])
    // Its namespace has no rules that pods of the original would break, and its Redis is the only one.
    expect(['namespace/clusterpulse', 'deployment.apps/redis', 'service/redis'].filter(has)).toEqual([])
    const made = program('kubectl', ['kustomize', hub])
    expect(await made.ended(), made.stderr()).toBe(0)
    const objects = made
      .stdout()
      .split(/^---$/m)
      .map((text) => parse(text))
    const named = (kind: string, name: string) =>
      objects.find((object) => object.kind === kind && object.metadata.name === name)
    expect(named('Deployment', 'clusterpulse-manager').spec.replicas).toBe(0)
    // The original's Redis has other labels than ours.
    expect(named('NetworkPolicy', 'clusterpulse-api').spec.egress).toContainEqual({ ports: [{ port: 6379 }] })
    const settings = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.includes('settings'))
    expect(settings.data).toMatchObject({ REDIS_HOST: 'pulse-redis-master', ...both })
  })

  it('API first, then the manager in place, members last, and back', async () => {
    // 1. Our API in front of the original's Redis; the original's goes.
    typed.add(originalApi)
    const early = await anApi(settingsOf(originalApi))
    await type(endApi)
    expect(await replicasOf('pulse-api')).toBe('0')
    await eventually(early.nodes, (nodes) => nodes.join() === '4,4', 60_000)
    const ours = await anApi()
    await eventually(ours.nodes, ([code]) => code === 'state_missing', 60_000)

    // 2. Our manager takes over in place. Nobody who asks is refused meanwhile. On the member is what the original deployed.
    await deployOriginal(PUSHED)
    const answers: unknown[] = []
    const watching = setInterval(
      () => void early.get('/api/v1/clusters').then(({ status, body }) => answers.push([status, body.length])),
      100,
    )
    const manager = await aManager()
    try {
      await eventually(ours.nodes, (nodes) => nodes.join() === '3,3', 60_000)
      await eventually(early.nodes, (nodes) => nodes.join() === '3,3', 60_000)
      clearInterval(watching)
      expect(answers.length).toBeGreaterThan(5)
      expect(new Set(answers.map((one) => JSON.stringify(one)))).toEqual(new Set(['[200,2]']))
      expect((await ours.get('/api/v1/session')).body.provisional).toBeNull()
      expect((await early.get('/api/v1/session')).body.provisional).toContain('complete')

      // 3. A collector of the original is let in by the token of its connection, and is the one who reads.
      await using collector = await aCollector(PUSHED)
      await isRead(collector, ours)
    } finally {
      clearInterval(watching)
    }

    // 4. Back: the original manager writes as before, the API reads its word.
    await manager.kill('SIGTERM')
    await originally()
    const names = async () =>
      (await early.get(`/api/v1/clusters/${PUSHED}/nodes`)).body.map(({ name }: { name: string }) => name)
    // Names of nodes never leave its set, and documents of ours live on until they run out: both are there for a while.
    await eventually(names, (all) => ['a', 'b', 'c', 'd'].every((name) => all.includes(name)), 60_000)
    // What vouched for the policies vouches for other ones: nothing is shown until it is gone.
    const allow = alice()
    const changed = { ...allow, spec: { ...allow.spec, identity: { ...allow.spec.identity, priority: 7 } } }
    await storeAsOriginal(hand, compilePolicy(changed, { now: Date.now() }).document as never)
    await eventually(early.nodes, ([code]) => code === 'policies_unavailable', 60_000)
    await type(endSeals)
    await eventually(early.nodes, (nodes) => nodes.length === 2, 60_000)
  })

  it('members first, then the manager, the API last', async () => {
    await hand.flushall()
    await storeAsOriginal(hand, compilePolicy(alice(), { now: Date.now() }).document as never)
    await originally()
    // The original's API, as far as it goes here: a reader of the documented keys.
    const early = await anApi(both)
    await eventually(early.nodes, (nodes) => nodes.join() === '4,4', 60_000)

    // 1. An agent of ours in place of a collector, under a hub of the original: it speaks that hub's wire.
    const hub = await OriginalHub.open(ingesterPort)
    await deployOriginal(PUSHED)
    await type(replaceCollector)
    const replicas = ['get', 'deployment', 'clusterpulse-collector', '-o', 'jsonpath={.spec.replicas}']
    expect(await onMember(PUSHED, replicas)).toBe('0')
    const agent = await theAgent()
    await eventually(
      async () => hub.rounds,
      (rounds) => rounds >= 2,
      60_000,
    )

    // 2. The manager: it writes the documented keys, so whoever reads them goes on; and the agent speaks our wire by itself.
    await hub[Symbol.asyncDispose]()
    const manager = await aManager()
    await eventually(early.nodes, (nodes) => nodes.join() === '3,3', 90_000)

    // 3. The API, without STATE_SOURCE.
    typed.add(ownApi)
    const ours = await anApi(settingsOf(ownApi))
    await eventually(ours.nodes, (nodes) => nodes.join() === '3,3', 60_000)
    const agentOf = async () => (await ours.get(`/api/v2/clusters/${PUSHED}`)).body.agent
    await eventually(agentOf, (one) => one?.connected === true && one?.protocol !== 'original', 90_000)

    // 4. Left to the hub, which deploys its own agent where both Deployments are gone.
    expect(await deployedImage(PUSHED)).toBe(ORIGINAL_IMAGE)
    await agent.kill('SIGTERM')
    await type(leaveToHub)
    await eventually(
      () => deployedImage(PUSHED),
      (image) => image.startsWith('clusterpulse/clusterpulse:'),
      60_000,
    )
    await manager.kill('SIGTERM')
  })

  it('the manager first, then the API, members last', async () => {
    await hand.flushall()
    await storeAsOriginal(hand, compilePolicy(alice(), { now: Date.now() }).document as never)
    await originally()
    const early = await anApi(both)
    await eventually(early.nodes, (nodes) => nodes.join() === '4,4', 60_000)

    // 1. The manager, in place: whoever reads the documented keys goes on, and collectors of the original are let in.
    await deployOriginal(PUSHED)
    const manager = await aManager()
    await eventually(
      async () => (await early.nodes())[0],
      (nodes) => nodes === 3,
      60_000,
    )
    const collector = await aCollector(PUSHED)
    await isRead(collector, early)

    // 2. The API, without STATE_SOURCE.
    const ours = await anApi(settingsOf(ownApi))
    await eventually(ours.nodes, (nodes) => nodes.join() === '3,2', 60_000)

    // 3. An agent of ours in place of the collector, which stays until it is deleted.
    expect(await deployedImage(PUSHED)).toBe(ORIGINAL_IMAGE)
    await collector[Symbol.asyncDispose]()
    await type(leaveToHub)
    await eventually(
      () => deployedImage(PUSHED),
      (image) => image.startsWith('clusterpulse/clusterpulse:'),
      60_000,
    )
    const agent = anAgent({ BUFFER_DIR: 'agent-last' })
    await eventually(
      async () => (await ours.get(`/api/v2/clusters/${PUSHED}`)).body.agent,
      (one) => one?.connected === true && one.protocol === 1,
      60_000,
    )
    await eventually(ours.nodes, (nodes) => nodes.join() === '3,3', 60_000)

    // 4. Lists of pods and so on: of the cluster that the hub reads, and of that of the agent.
    for (const cluster of tokens.keys()) {
      const { counts, told, pods } = await eventually(
        () => listsIn(cluster),
        (lists) => lists.told?.pods_count > 0 && lists.told.deployments_count > 0 && lists.told.services_count > 0,
        60_000,
      )
      expect(told).toMatchObject({ ...counts, truncated: false })
      expect(pods[0]).toEqual({
        name: expect.any(String),
        namespace: expect.any(String),
        status: expect.stringMatching(/^(Running|Pending)$/),
        ...(pods[0].node && { node: expect.any(String) }),
      })
    }
    await agent.kill('SIGTERM')
    await manager.kill('SIGTERM')
  })

  it('leads collectors to our manager by the Service they know', async () => {
    await type(leadIngester)
    const read = (kind: string, name: string, path: string) =>
      kubectl(['-n', 'clusterpulse', 'get', kind, name, '-o', `jsonpath={${path}}`])
    const selector = JSON.parse(await read('service', 'pulse-ingester', '.spec.selector'))
    expect(selector).toEqual({ 'app.kubernetes.io/name': 'clusterpulse-manager' })
    const labels = await read('deployment', 'clusterpulse-manager', '.spec.template.metadata.labels')
    expect(JSON.parse(labels)).toMatchObject(selector)
  })

  it('types every command that the guide shows', () =>
    expect(titles.flatMap(blocksOf).filter((block) => !typed.has(block))).toEqual([]))
})
