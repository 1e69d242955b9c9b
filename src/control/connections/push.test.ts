import { describe, expect, it } from 'vitest'
import type { ApiObject } from '#apiserver'
import { MemoryCatalog } from '#catalog'
import { collectors } from '#collect'
import { events } from '#kube'
import { compileMetricSource } from '#metricsource'
import { type AgentFacts, type Batch, parseClusterName, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { AgentCredentials } from './agent-credentials.ts'
import { AGENT_FINALIZER } from './agent-installer.ts'
import { type AgentInstall, agentKeys, agentResources } from './agent-objects.ts'
import { connectionResource } from './connection-resource.ts'
import type { ConnectionsOptions } from './controllers.ts'
import { SomeAgents } from './testing/agents.ts'
import { reading } from './testing/reading.ts'
import {
  aWorld,
  conditionOf,
  connect,
  type Member,
  NAMESPACE,
  statusOf,
  until,
  untilPhase,
  type World,
  writeSecret,
} from './testing/world.ts'

const key = (name: string) => ({ name, namespace: NAMESPACE })
const install: AgentInstall = { image: 'registry/agent', version: '1.2.3', tls: false, address: 'hub.example.com:9443' }

/** An agent counts as silent after 1.5 s, as away after 1 s. */
const DEFAULTS = { intervalMs: 500, timeoutMs: 2000, operatorScanIntervalMs: 300_000 }

/** For agents that send once: silent after 6 s, away after 4 s. */
const SLOWER = { defaults: { ...DEFAULTS, intervalMs: 2000 } }

/** A hub that receives agents, and what the test says of them. */
async function aPushWorld(over: Partial<ConnectionsOptions> = {}) {
  const world = await aWorld()
  const agents = new SomeAgents()
  const credentials = new AgentCredentials({ hub: world.hub, namespace: NAMESPACE, logger: silentLogger })
  await credentials.start()
  await world.start({ agents, credentials, agentInstall: install, defaults: DEFAULTS, ...over })
  return {
    world,
    agents,
    credentials,
    [Symbol.asyncDispose]: async () => {
      await world[Symbol.asyncDispose]()
      await credentials[Symbol.asyncDispose]()
    },
  }
}

const byAdmin = ({ url, ca, adminToken }: Member) => ({ url, ca, token: adminToken })
const collected = (world: World) =>
  until(async () => expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ status: 'True' }))

let sequence = 0
async function push(world: World, name: string, over: Partial<Batch> = {}): Promise<void> {
  const cluster = parseClusterName(name)
  const now = Date.now()
  const parts: Batch['parts'] = [{ type: 'node', collector: 'nodes', durationMs: 1, outcome: 'complete', items: [] }]
  const head = {
    cluster,
    origin: 'buffer-1',
    sequence: ++sequence,
    source: 'push' as const,
    collectedAt: now,
    durationMs: 1,
  }
  await world.ingester.accept({ batch: { ...head, parts, ...over } })
}

/** An agent that sends a batch every now and then, until it is gone. */
function anAgent(world: World, agents: SomeAgents, name = 'west', over: Partial<AgentFacts> = {}) {
  const stop = new AbortController()
  const run = async () => {
    await until(() => expect(world.ingester.knows(parseClusterName(name))).toBe(true))
    agents.connected(name, over)
    for (let first = true; !stop.signal.aborted; first = false) {
      await push(world, name)
      if (first) agents.delivers(name)
      await systemClock.sleep(60, stop.signal)
    }
  }
  const running = run()
  return {
    async gone(reason: string) {
      stop.abort()
      await running
      agents.gone(name, reason)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

const pulls = (world: World) => world.batches.length

describe('a cluster in push mode', () => {
  it('is pulled until its agent delivers, then by nobody else, and again when the agent stays away', async () => {
    await using push = await aPushWorld()
    const { world, agents } = push
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await untilPhase(world, 'west', 'Connected')
    expect(world.cluster('west')).toMatchObject({ source: 'pull', connection: { mode: 'push' } })

    const first = anAgent(world, agents)
    await collected(world)
    const after = pulls(world)
    expect(await statusOf(world, 'west')).toMatchObject({
      phase: 'Connected',
      collectorStatus: {
        connected: true,
        delivering: true,
        version: '1.2.3',
        bufferedBatches: 3,
        authentication: 'token',
      },
    })
    expect(await conditionOf(world, 'west', 'Ready')).toMatchObject({ status: 'True', reason: 'Delivered' })
    expect(await conditionOf(world, 'west', 'Complete')).toMatchObject({ status: 'True', reason: 'AllRead' })
    expect(await conditionOf(world, 'west', 'Reachable')).toBeUndefined()
    // More than one of its intervals passes.
    const sent = sequence
    await until(() => expect(sequence).toBeGreaterThan(sent + 20))
    expect(world.cluster('west')?.source).toBe('push')
    expect(pulls(world)).toBe(after)

    const goneAt = Date.now()
    await first.gone('the connection broke')
    await until(() => expect(world.cluster('west')?.source).toBe('pull'))
    expect(Date.now() - goneAt).toBeGreaterThanOrEqual(2 * DEFAULTS.intervalMs)
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({
        status: 'False',
        message: expect.stringContaining('the hub collects by itself meanwhile') as string,
      }),
    )
    expect(await statusOf(world, 'west')).toMatchObject({ collectorStatus: { connected: false, delivering: false } })
    await using _ = anAgent(world, agents)
    await collected(world)
    await until(() => expect(world.cluster('west')?.source).toBe('push'))
  })

  it('is not read twice: a pull on its way is given up at the first batch of the agent', async () => {
    let reached: () => void = () => undefined
    const isRead = new Promise<void>((resolve) => {
      reached = resolve
    })
    let aborted = false
    const slow = collectors.map((collector) =>
      collector.name !== 'nodes'
        ? collector
        : reading(collector, (_, signal) => {
            reached()
            return new Promise<never>((_, reject) =>
              signal.addEventListener(
                'abort',
                () => {
                  aborted = true
                  reject(signal.reason as Error)
                },
                { once: true },
              ),
            )
          }),
    )
    await using push = await aPushWorld({ collectors: slow })
    const { world, agents } = push
    await connect(world, 'west', byAdmin(await world.member()), { collectionMode: 'push' })
    await isRead
    await using _ = anAgent(world, agents)
    await collected(world)
    expect(aborted).toBe(true)
    expect(world.batches).toEqual([])
  })

  it('leaves a hub that comes back the time to see its agents again before it pulls', async () => {
    await using world = await aWorld()
    await connect(world, 'west', byAdmin(await world.member()), { collectionMode: 'push' })
    const agents = new SomeAgents()
    const first = await world.start({ agents, defaults: DEFAULTS })
    await untilPhase(world, 'west', 'Connected')
    const agent = anAgent(world, agents)
    await collected(world)
    await world.ingester.agent(parseClusterName('west'), agents.facts('west') as AgentFacts)
    await until(() => expect(world.cluster('west')).toMatchObject({ source: 'push', agent: { version: '1.2.3' } }))
    await first.stop()
    await agent.gone('its authority is trusted no more')
    await world.ingester.agent(parseClusterName('west'), agents.facts('west') as AgentFacts)
    await until(() => expect(world.cluster('west')?.agent).toMatchObject({ connected: false }))
    const before = pulls(world)
    const again = new SomeAgents()
    await world.start({ agents: again, defaults: DEFAULTS })
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({
        reason: 'AgentAway',
        // The hub that was there before knew why.
        message:
          'the agent has not connected to this hub since it started, and was away before: its authority is trusted no more',
      }),
    )
    await using _ = anAgent(world, again)
    await collected(world)
    expect(pulls(world)).toBe(before)
  })

  it('says what the agent says of a cluster it cannot read', async () => {
    await using push_ = await aPushWorld()
    const { world, agents } = push_
    await connect(world, 'west', byAdmin(await world.member()), { collectionMode: 'push' })
    const agent = anAgent(world, agents)
    await collected(world)
    await agent[Symbol.asyncDispose]()
    await push(world, 'west', {
      parts: [],
      failure: { code: 'kube_timeout', message: 'the API beside the agent is slow' },
    })
    await until(async () =>
      expect(await statusOf(world, 'west')).toMatchObject({
        phase: 'Connected',
        health: 'unhealthy',
        message: 'the API beside the agent is slow',
      }),
    )
    expect(await conditionOf(world, 'west', 'Ready')).toMatchObject({ status: 'False', reason: 'NotReadByAgent' })
    expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ status: 'True' })
  })

  it('says what of a cluster the agent may not read', async () => {
    await using push_ = await aPushWorld()
    const { world, agents } = push_
    await connect(world, 'west', byAdmin(await world.member()), { collectionMode: 'push' })
    const agent = anAgent(world, agents)
    await collected(world)
    await agent[Symbol.asyncDispose]()
    const of = { collector: 'pods', durationMs: 1, code: 'kube_forbidden', message: 'pods is forbidden' } as const
    await push(world, 'west', { parts: [{ type: 'podSummary', outcome: 'forbidden', ...of }] })
    await until(async () =>
      expect(await conditionOf(world, 'west', 'Complete')).toMatchObject({
        status: 'False',
        message: 'podSummary forbidden: pods is forbidden',
      }),
    )
  })

  it('names both reasons when neither its agent nor the hub can read it, and keeps the time of the last read', async () => {
    await using push_ = await aPushWorld()
    const { world, agents } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    const agent = anAgent(world, agents)
    await collected(world)
    await member.close()
    await agent.gone('the network is cut')
    await world.ingester.flushed()
    const readAt = world.cluster('west')?.status.lastSyncAt
    await untilPhase(world, 'west', 'Error')
    const { message, health } = await statusOf(world, 'west')
    expect(message).toMatch(/nothing listens.*; the agent is away: the network is cut$/)
    expect(health).toBe('unhealthy')
    await until(() => expect(world.cluster('west')?.status).toMatchObject({ health: 'unhealthy', lastSyncAt: readAt }))
  })

  it('without a way for the hub is never asked, waits for its agent, and is called lost when that stays away', async () => {
    await using push_ = await aPushWorld()
    const { world, agents } = push_
    await world.hub.create(connectionResource, { metadata: key('west'), spec: { collectionMode: 'push' } })
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({
        status: 'False',
        reason: 'NoAgent',
        message: expect.stringContaining('clusterpulse connect') as string,
      }),
    )
    expect(await statusOf(world, 'west')).toMatchObject({
      phase: 'Connecting',
      health: 'unknown',
      message: expect.stringContaining('no agent has connected') as string,
    })
    expect(world.cluster('west')?.connection).toMatchObject({ mode: 'push', endpoint: '' })
    const agent = anAgent(world, agents)
    await untilPhase(world, 'west', 'Connected')
    expect(world.batches).toEqual([])
    await agent.gone('the network is cut')
    await untilPhase(world, 'west', 'Error')
    expect((await statusOf(world, 'west')).message).toBe(
      'the agent is away: the network is cut; the hub has no way to this cluster itself',
    )
    // Nothing was asked, so there is no round either.
    expect(world.batches).toEqual([])
    const back = anAgent(world, agents)
    await untilPhase(world, 'west', 'Connected')
    await back[Symbol.asyncDispose]()
    // Nothing is left on a member nobody could reach: the connection goes at once.
    await world.hub.delete(connectionResource, key('west'))
    await until(() => expect(world.cluster('west')).toBeUndefined())
    expect(agents.ended).toEqual(['west not_connected'])
  })

  /** A cluster the hub has no way to, whose agent delivered and went, and that this is said of everywhere. */
  async function aLostCluster(push_: Awaited<ReturnType<typeof aPushWorld>>) {
    const { world, agents } = push_
    await world.hub.create(connectionResource, { metadata: key('west'), spec: { collectionMode: 'push' } })
    const agent = anAgent(world, agents)
    await untilPhase(world, 'west', 'Connected')
    await agent.gone('the network is cut')
    const goneAt = Date.now()
    await untilPhase(world, 'west', 'Error')
    const message = 'the agent is away: the network is cut; the hub has no way to this cluster itself'
    expect(await statusOf(world, 'west')).toMatchObject({ health: 'unhealthy', message })
    expect(world.cluster('west')?.status).toMatchObject({
      health: 'unhealthy',
      message,
      reasons: [{ code: 'agent_away', message }],
    })
    return { world, agents, goneAt }
  }
  const isShown = async (world: World) => {
    await until(async () => {
      expect(world.cluster('west')?.status).toMatchObject({ health: 'degraded', message: 'The cluster has no nodes' })
      const { phase, health, message } = await statusOf(world, 'west')
      expect({ phase, health, message }).toEqual({
        phase: 'Connected',
        health: 'degraded',
        message: 'The cluster has no nodes',
      })
    })
  }

  it.each(['buffer-1', 'another buffer'])(
    'shows the first batch of an agent that returns (%s), though it was collected before the hub said that nobody reads',
    async (origin) => {
      await using push_ = await aPushWorld(SLOWER)
      const { world, agents, goneAt } = await aLostCluster(push_)
      agents.connected('west')
      await push(world, 'west', { origin, collectedAt: goneAt })
      agents.delivers('west')
      await isShown(world)
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ reason: 'Delivering' })
      expect(world.cluster('west')?.status).toMatchObject({ checkedAt: goneAt, lastSyncAt: goneAt })
      expect(world.cluster('west')?.status).not.toHaveProperty('before')
    },
  )

  it('says again what was last read when the agent is back and has nothing new to send yet', async () => {
    // What is lost after ten seconds is then younger than three intervals.
    await using push_ = await aPushWorld({ defaults: { ...DEFAULTS, intervalMs: 10_000 } })
    const { world, agents } = await aLostCluster(push_)
    const { checkedAt } = world.cluster('west')?.status.before ?? {}
    agents.connected('west')
    await isShown(world)
    expect(world.cluster('west')?.status.checkedAt).toBe(checkedAt)
    expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ reason: 'AwaitingFirstBatch' })
  })

  it('is not called lost by a hub that saw less than what came meanwhile', async () => {
    await using push_ = await aPushWorld()
    const { world } = push_
    await world.hub.create(connectionResource, { metadata: key('west'), spec: { collectionMode: 'push' } })
    await until(() => expect(world.ingester.knows(parseClusterName('west'))).toBe(true))
    await push(world, 'west')
    await world.ingester.flushed()
    const seen = world.cluster('west')!
    await push(world, 'west')
    await world.ingester.unread(seen.name, seen, { code: 'agent_away', message: 'the agent is away' })
    await world.ingester.flushed()
    expect(world.cluster('west')?.status.health).toBe('degraded')
  })

  it('shows the first batch of an agent that returns where the hub tried in vain meanwhile', async () => {
    await using push_ = await aPushWorld(SLOWER)
    const { world, agents } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    const agent = anAgent(world, agents)
    await collected(world)
    await member.close()
    await agent.gone('the network is cut')
    const goneAt = Date.now()
    await untilPhase(world, 'west', 'Error')
    agents.connected('west')
    await push(world, 'west', { collectedAt: goneAt })
    agents.delivers('west')
    await isShown(world)
  })

  it('moves the heartbeat in its status no more than once a minute', async () => {
    await using push_ = await aPushWorld()
    const { world, agents } = push_
    await connect(world, 'west', byAdmin(await world.member()), { collectionMode: 'push' })
    const since = Date.now()
    await using _ = anAgent(world, agents, 'west', { since, heartbeatAt: since })
    await collected(world)
    const shown = async () => (await statusOf(world, 'west')).collectorStatus
    const before = await shown()
    agents.connected('west', { since, heartbeatAt: since + 59_000, bufferedBatches: 9 })
    const sent = sequence
    await until(() => expect(sequence).toBeGreaterThan(sent + 12)) // it was looked at in between
    expect(await shown()).toEqual(before)
    agents.connected('west', { since, heartbeatAt: since + 60_000, bufferedBatches: 7 })
    await until(async () => expect(await shown()).toMatchObject({ bufferedBatches: 7, since: before?.since }))
  })
})

describe('MetricSources of a cluster in push mode', () => {
  const definitionOf = (name: string, kind: string) =>
    compileMetricSource({
      metadata: { name, namespace: NAMESPACE },
      spec: {
        source: { apiVersion: 'v1', kind },
        fields: [{ name: 'name', path: '.metadata.name' }],
        collection: { watch: true },
      },
    }).source?.definition ?? {}
  const read = (world: World) => world.batches.filter(({ partial }) => partial)
  const role = ({ server }: Member) =>
    JSON.stringify(
      server.objects.get(
        { group: 'rbac.authorization.k8s.io', version: 'v1', plural: 'clusterroles' },
        agentKeys.clusterrole,
      )?.rules,
    )

  it('are read by the hub only until its agent delivers, which may read them before it is asked to', async () => {
    const catalog = new MemoryCatalog()
    await catalog.put(definitionOf('maps', 'ConfigMap'))
    await using push_ = await aPushWorld({ catalog, random: () => 0 })
    const { world, agents } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(() => expect(world.cluster('west')?.tables.get(`${NAMESPACE}/maps`)?.outcome).toBe('complete'))
    await until(() => expect(role(member)).toContain('"configmaps"'))
    await using _ = anAgent(world, agents)
    await collected(world)
    const before = read(world).length
    // A watch of the hub would tell this, and a source that comes into force would be read at once.
    await member.server.objects.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'one', namespace: 'default' },
    } as ApiObject)
    await catalog.put(definitionOf('claims', 'PersistentVolumeClaim'))
    await until(() => expect(role(member)).toContain('"persistentvolumeclaims"'))
    const sent = sequence
    await until(() => expect(sequence).toBeGreaterThan(sent + 10))
    expect(read(world)).toHaveLength(before)
  })
})

describe("an agent's deployment", () => {
  const deployment = ({ server }: Member) =>
    server.objects.get({ group: 'apps', version: 'v1', plural: 'deployments' }, agentKeys.deployment)
  const text = (member: Member) => JSON.stringify(deployment(member) ?? null)
  const finalizers = async (world: World) =>
    (await world.hub.get(connectionResource, key('west')))?.metadata.finalizers ?? []

  it('comes with the mode push, follows the connection, and goes with the mode pull', async () => {
    await using push_ = await aPushWorld()
    const { world, credentials } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({
        reason: 'AwaitingAgent',
        message: expect.stringContaining('registry/agent:1.2.3') as string,
      }),
    )
    expect(text(member)).toContain('hub.example.com:9443')
    expect(await finalizers(world)).toEqual([AGENT_FINALIZER])
    const secret = member.server.objects.get({ group: '', version: 'v1', plural: 'secrets' }, agentKeys.secret)
    const { token: encoded = '' } = (secret?.data ?? {}) as { token?: string }
    const token = Buffer.from(encoded, 'base64').toString()
    expect(token).not.toBe(member.adminToken)
    expect(credentials.verify({ token, address: '' })).toMatchObject({ peer: { cluster: 'west' } })

    await world.hub.patch(connectionResource, key('west'), { spec: { collectorVersion: 'v9' } }, { kind: 'merge' })
    await until(() => expect(text(member)).toContain('registry/agent:v9'))
    await world.hub.patch(connectionResource, key('west'), { spec: { collectionMode: 'pull' } }, { kind: 'merge' })
    await until(() => expect(deployment(member)).toBeUndefined())
    await until(async () => expect(await finalizers(world)).toEqual([]))
    await until(async () => expect(await conditionOf(world, 'west', 'CollectorConnected')).toBeUndefined())
    expect((await statusOf(world, 'west')).collectorStatus).toBeUndefined()
    expect(credentials.verify({ token, address: '' })).toHaveProperty('refused')
  })

  it('says in the condition why its pod cannot start, and that its buffer ends with its pod, until neither holds', async () => {
    const agentInstall = { ...install, bufferVolume: { size: '2Gi' } }
    await using push_ = await aPushWorld({ agentInstall })
    const { world } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(() => expect(deployment(member)).toBeDefined())
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' }
    await member.server.objects.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'collector-1',
        namespace: 'clusterpulse-system',
        labels: { 'app.kubernetes.io/name': 'clusterpulse-collector' },
      },
      spec: { containers: [{ name: 'collector', image: 'i' }] },
      status: { phase: 'Pending', containerStatuses: [{ name: 'collector', state: { waiting } }] },
    } as unknown as ApiObject)
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({
        status: 'False',
        reason: 'AgentNotStarting',
        message: expect.stringMatching(
          /\(registry\/agent:1\.2\.3\) is deployed and cannot start: pod collector-1: ImagePullBackOff: no such image; set AGENT_IMAGE.*collects by itself meanwhile/,
        ) as string,
      }),
    )
    // This member has claims, and nothing that would make their volumes.
    expect(await conditionOf(world, 'west', 'BufferNotDurable')).toMatchObject({
      status: 'True',
      reason: 'NoDefaultStorageClass',
    })
    await member.server.objects.delete(
      { group: '', version: 'v1', plural: 'pods' },
      {
        name: 'collector-1',
        namespace: 'clusterpulse-system',
      },
    )
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ reason: 'AwaitingAgent' }),
    )
    await world.hub.patch(connectionResource, key('west'), { spec: { collectionMode: 'pull' } }, { kind: 'merge' })
    await until(async () => expect(await conditionOf(world, 'west', 'BufferNotDurable')).toBeUndefined())
  })

  it('does not come where a collector of the original is installed, until that one is deleted: the condition says so', async () => {
    await using push_ = await aPushWorld({ agentInstall: { ...install, keepsOriginals: true } })
    const { world } = push_
    const member = await world.member()
    const collector = { name: 'collector', image: 'registry.example/clusterpulse/collector:v0.9' }
    const labels = { 'app.kubernetes.io/name': 'clusterpulse-collector' }
    await member.server.objects.create({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'clusterpulse-system' },
    } as unknown as ApiObject)
    await member.server.objects.create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'clusterpulse-collector', namespace: 'clusterpulse-system' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [collector] } },
      },
    } as unknown as ApiObject)
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    const condition = () => conditionOf(world, 'west', 'CollectorConnected')
    await until(async () =>
      expect(await condition()).toMatchObject({
        reason: 'OriginalCollector',
        message: expect.stringMatching(
          /no agent has connected; a collector of the original .* delete the Deployment clusterpulse-system\/clusterpulse-collector on the member; the hub collects by itself meanwhile$/,
        ) as string,
      }),
    )
    expect(text(member)).toContain(collector.image)
    expect(await finalizers(world)).toEqual([])
    // While it delivers it stays as well.
    const agent = anAgent(world, push_.agents, 'west', { protocol: 'original', method: 'connection-token' })
    await until(async () => expect(await condition()).toMatchObject({ reason: 'Delivering' }))
    await push_.world.hub.patch(
      connectionResource,
      key('west'),
      { spec: { collectorVersion: 'v9' } },
      { kind: 'merge' },
    )
    await systemClock.sleep(300)
    expect(text(member)).toContain(collector.image)
    await member.server.objects.delete({ group: 'apps', version: 'v1', plural: 'deployments' }, agentKeys.deployment)
    await agent.gone('its pod went')
    await until(() => expect(text(member)).toContain('registry/agent:v9'))
  })

  it('is repaired and updated while the agent delivers', async () => {
    await using push_ = await aPushWorld()
    const { world, agents } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(() => expect(deployment(member)).toBeDefined())
    await using _ = anAgent(world, agents)
    await collected(world)
    await world.hub.patch(connectionResource, key('west'), { spec: { collectorVersion: 'v9' } }, { kind: 'merge' })
    await until(() => expect(text(member)).toContain('registry/agent:v9'))
    expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({ status: 'True' })
  })

  it('goes before its connection does', async () => {
    await using push_ = await aPushWorld()
    const { world } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(() => expect(deployment(member)).toBeDefined())
    await until(async () => expect(await finalizers(world)).toEqual([AGENT_FINALIZER]))
    await world.hub.delete(connectionResource, key('west'))
    await until(async () => expect(await world.hub.get(connectionResource, key('west'))).toBeUndefined())
    expect(deployment(member)).toBeUndefined()
    expect(world.cluster('west')).toBeUndefined()
    expect(await world.hub.get(agentResources.secret, key('west-agent'))).toBeUndefined()
  })

  it('speaks no more for a connection that is turned to another cluster, whose own agent does', async () => {
    await using push_ = await aPushWorld()
    const { world, credentials } = push_
    const [before, after] = [await world.member(), await world.member()]
    await connect(world, 'west', byAdmin(before), { collectionMode: 'push' })
    await until(() => expect(deployment(before)).toBeDefined())
    const tokenOn = (member: Member) => {
      const secret = member.server.objects.get({ group: '', version: 'v1', plural: 'secrets' }, agentKeys.secret)
      const { token = '' } = (secret?.data ?? {}) as { token?: string }
      return Buffer.from(token, 'base64').toString()
    }
    await writeSecret(world.hub, 'west-credentials', { token: after.adminToken, 'ca.crt': after.ca })
    await world.hub.patch(connectionResource, key('west'), { spec: { endpoint: after.url } }, { kind: 'merge' })
    await until(() => expect(deployment(after)).toBeDefined())
    expect(credentials.verify({ token: tokenOn(after), address: '' })).toHaveProperty('peer')
    expect(credentials.verify({ token: tokenOn(before), address: '' })).toEqual({ refused: 'unknown' })
  })

  it('goes although the Secret with the access to its member is deleted together with the connection', async () => {
    await using push_ = await aPushWorld()
    const { world } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(() => expect(deployment(member)).toBeDefined())
    await world.hub.delete(agentResources.secret, key('west-credentials'))
    await world.hub.delete(connectionResource, key('west'))
    await until(async () => expect(await world.hub.get(connectionResource, key('west'))).toBeUndefined())
    expect(deployment(member)).toBeUndefined()
  })

  it('is left behind after a while where the member does not answer, and the connection says what', async () => {
    await using push_ = await aPushWorld({ removalPatienceMs: 1 })
    const { world } = push_
    const member = await world.member()
    await connect(world, 'west', byAdmin(member), { collectionMode: 'push' })
    await until(async () => expect(await finalizers(world)).toEqual([AGENT_FINALIZER]))
    await member.close()
    await world.hub.delete(connectionResource, key('west'))
    await until(async () => expect(await world.hub.get(connectionResource, key('west'))).toBeUndefined())
    const [warning] = (await world.hub.listAll(events, { namespace: NAMESPACE })).filter(
      ({ reason }) => reason === 'AgentLeftBehind',
    )
    expect(warning).toMatchObject({
      type: 'Warning',
      message: expect.stringMatching(
        /nothing listens.*left on the member: Deployment clusterpulse-system\/clusterpulse-collector/,
      ) as string,
    })
  })

  it('waits for a member that is away for a moment, while the cluster is forgotten at once', async () => {
    await using push_ = await aPushWorld()
    const { world } = push_
    await connect(world, 'west', byAdmin(await world.member()), { collectionMode: 'push' })
    await until(async () => expect(await finalizers(world)).toEqual([AGENT_FINALIZER]))
    await world.hub.patch(
      connectionResource,
      key('west'),
      { spec: { endpoint: 'https://127.0.0.1:1' } },
      { kind: 'merge' },
    )
    await untilPhase(world, 'west', 'Error')
    await world.hub.delete(connectionResource, key('west'))
    await until(() => expect(world.cluster('west')).toBeUndefined())
    expect(await finalizers(world)).toEqual([AGENT_FINALIZER])
  })

  it.each([
    [
      'the hub may not',
      {},
      [
        'DeployFailed',
        /namespace: .*may not patch namespaces; grant it, or run "clusterpulse connect west --bearer-token -o manifest"/,
      ],
    ],
    [
      'nobody says where the hub is',
      { agentInstall: { ...install, address: '' } },
      ['NoIngesterAddress', /spec\.ingesterAddress is empty/],
    ],
  ] as const)('says why there is none where %s, and pulls', async (_, over, [reason, message]) => {
    await using push_ = await aPushWorld(over)
    const { world } = push_
    const member = await world.member()
    await connect(world, 'west', member, { collectionMode: 'push' })
    await until(async () =>
      expect(await conditionOf(world, 'west', 'CollectorConnected')).toMatchObject({
        status: 'False',
        reason,
        message: expect.stringMatching(message) as string,
      }),
    )
    await untilPhase(world, 'west', 'Connected')
    expect(world.cluster('west')?.source).toBe('pull')
    expect(deployment(member)).toBeUndefined()
  })
})
