import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { ApiObject } from '#apiserver'
import { MemoryCatalog } from '#catalog'
import { type CompiledSource, compileMetricSource } from '#metricsource'
import type { Batch } from '#model'
import { connectionResource } from './connection-resource.ts'
import { sourceTrial } from './source-trial.ts'
import { SomeAgents } from './testing/agents.ts'
import { aWorld, connect, type Member, NAMESPACE, until, untilPhase, type World } from './testing/world.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]()
})

function aSource(over: { readonly collection?: object; readonly label?: string } = {}): CompiledSource {
  const { source, findings } = compileMetricSource({
    metadata: { name: 'maps', namespace: NAMESPACE },
    spec: {
      source: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        ...(over.label && { labelSelector: { matchLabels: { app: over.label } } }),
      },
      fields: [{ name: 'size', path: '.data.size', type: 'integer' }],
      aggregations: [{ name: 'total', function: 'sum', field: 'size' }],
      ...(over.collection && { collection: over.collection }),
      rbac: { resourceTypeName: 'maps' },
    } as never, // put together from parts
  })
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}

async function aHub(): Promise<{ world: World; member: Member; catalog: MemoryCatalog }> {
  const world = await aWorld()
  worlds.push(world)
  const member = await world.member()
  await member.server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } } as ApiObject)
  return { world, member, catalog: new MemoryCatalog() }
}

const addMap = (member: Member, name: string, size: number, app = 'x') =>
  member.server.objects.create({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'team', labels: { app } },
    data: { size: String(size) },
  } as ApiObject)

const rowsOf = (world: World, cluster: string) => world.cluster(cluster)?.tables.get(`${NAMESPACE}/maps`)

/** In the order in which they were offered. */
const isRising = (batches: readonly Batch[]) =>
  batches.every(({ sequence }, i) => i === 0 || sequence > (batches[i - 1]?.sequence ?? 0))

describe('MetricSources of a cluster the hub reads', () => {
  it('are read as soon as they are in force, beside the rounds, and no batch is lost for its number', async () => {
    const { world, member, catalog } = await aHub()
    await addMap(member, 'one', 1)
    await addMap(member, 'two', 2)
    await world.start({ catalog, random: () => 0 })
    await connect(world, 'west', member)
    await untilPhase(world, 'west', 'Connected')
    await catalog.put(aSource().definition)
    await until(() => expect(rowsOf(world, 'west')?.rows.size).toBe(2))
    expect(rowsOf(world, 'west')).toMatchObject({ outcome: 'complete', aggregations: { total: 3 } })
    // Another definition, while rounds go on.
    await catalog.put(aSource({ label: 'y' }).definition)
    await until(() => expect(rowsOf(world, 'west')?.rows.size).toBe(0))
    expect(isRising(world.batches)).toBe(true)
    expect(world.batches.some(({ partial }) => partial)).toBe(true)
    expect(world.batches.some(({ partial }) => !partial)).toBe(true)
  })

  it('come no more from the moment an agent delivers, even before the hub has left the cluster to it', async () => {
    const { world, member, catalog } = await aHub()
    const agents = new SomeAgents()
    await addMap(member, 'one', 1)
    await world.start({ catalog, agents, random: () => 0 })
    await connect(world, 'west', member)
    await untilPhase(world, 'west', 'Connected')
    await catalog.put(aSource({ collection: { intervalSeconds: 30 } }).definition)
    await until(() => expect(rowsOf(world, 'west')?.rows.size).toBe(1))
    agents.deliversUnheard('west')
    const before = world.batches.length
    await catalog.put(aSource({ label: 'y' }).definition)
    await new Promise((resolve) => setTimeout(resolve, 1500))
    const late = world.batches.slice(before).flatMap(({ tables = [] }) => tables.map(({ source }) => source))
    expect(late).not.toContain(`${NAMESPACE}/maps`)
    expect(rowsOf(world, 'west')?.rows.size).toBe(1)
  })

  it('leave what nodes and pods use to its own rate, which somebody who looks makes faster', async () => {
    const { world, member, catalog } = await aHub()
    let cpu = 0
    const metrics = (plural: string, kind: string, namespaced: boolean, list: () => object[]) =>
      member.server.addVirtual({
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        plural,
        kind,
        namespaced,
        list: () => list() as ApiObject[],
      })
    metrics('nodes', 'NodeMetrics', false, () => [
      { metadata: { name: 'n1' }, usage: { cpu: `${++cpu}m`, memory: '1Ki' } },
    ])
    metrics('pods', 'PodMetrics', true, () => [])
    let refreshMs = 3_600_000
    let tell: (cluster: string) => void = () => undefined
    const rates = {
      of: () => refreshMs,
      onChange: (listener: (cluster: string) => void) => {
        tell = listener
        return () => undefined
      },
    }
    const usage = { rates, kubeletsOf: () => undefined }
    const defaults = { intervalMs: 150, timeoutMs: 2000, operatorScanIntervalMs: 300_000, usage }
    await world.start({ catalog, random: () => 0, defaults })
    await connect(world, 'west', member)
    const used = () => world.cluster('west')?.tables.get('node-usage')?.rows.row(0).values.cpuText
    await until(() => expect(used()).toMatch(/^\d+m$/))
    await until(() => expect(world.cluster('west')?.tables.get('pod-usage')).toMatchObject({ outcome: 'complete' }))
    const first = used()
    refreshMs = 200
    tell('west')
    await until(() => expect(used()).not.toBe(first))
    const second = used()
    await until(() => expect(used()).not.toBe(second))
    expect(isRising(world.batches)).toBe(true)
  })

  it('wait until each cluster that was there at the start was looked at once', async () => {
    const { world, member, catalog } = await aHub()
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    try {
      await addMap(member, 'one', 1)
      await catalog.put(aSource().definition)
      await connect(world, 'west', member)
      const { port } = silent.address() as AddressInfo
      await connect(world, 'silent', { ...member, url: `https://127.0.0.1:${port}` })
      await world.start({ catalog, random: () => 0 })
      await until(() => expect(rowsOf(world, 'west')?.rows.size).toBe(1))
      const first = (is: (batch: Batch) => boolean) => world.batches.findIndex(is)
      const looked = first(({ cluster }) => cluster === 'silent')
      expect(looked).toBeGreaterThan(first(({ cluster }) => cluster === 'west'))
      expect(first(({ partial }) => partial === true)).toBeGreaterThan(looked)
    } finally {
      silent.close()
    }
  })

  it('are followed where the source asks for it', async () => {
    const { world, member, catalog } = await aHub()
    await addMap(member, 'one', 1)
    await catalog.put(aSource({ collection: { watch: true } }).definition)
    await world.start({ catalog, random: () => 0 })
    await connect(world, 'west', member)
    await until(() => expect(rowsOf(world, 'west')?.rows.size).toBe(1))
    await addMap(member, 'two', 2)
    await until(() => expect(rowsOf(world, 'west')?.aggregations).toEqual({ total: 3 }))
  })

  it('end with the connection, and with the controller', async () => {
    const { world, member, catalog } = await aHub()
    await catalog.put(aSource({ collection: { watch: true } }).definition)
    const manager = await world.start({ catalog, random: () => 0 })
    await connect(world, 'west', member)
    await until(() => expect(rowsOf(world, 'west')?.outcome).toBe('complete'))
    await world.hub.delete(connectionResource, { name: 'west', namespace: NAMESPACE })
    await until(() => expect(world.cluster('west')).toBeUndefined())
    const count = world.batches.length
    await addMap(member, 'one', 1)
    await manager.stop()
    expect(world.batches).toHaveLength(count)
  })

  it('are not read where only an agent can', async () => {
    const { world, catalog } = await aHub()
    await catalog.put(aSource().definition)
    await world.start({ catalog, random: () => 0 })
    const spec = { collectionMode: 'push' }
    await world.hub.create(connectionResource, { metadata: { name: 'far', namespace: NAMESPACE }, spec })
    await until(() => expect(world.cluster('far')?.status.health).toBe('unhealthy'))
    expect(world.batches).toEqual([])
  })
})

describe('a trial', () => {
  const options = { limit: 1, signal: new AbortController().signal }
  const trialOf = ({ hub, clients }: World) =>
    sourceTrial({
      hub,
      clients,
      namespace: NAMESPACE,
      defaults: { intervalMs: 1000, timeoutMs: 2000, operatorScanIntervalMs: 1000 },
    })

  it('reads as many rows as are asked for, of a source that is in force nowhere', async () => {
    const { world, member } = await aHub()
    await addMap(member, 'one', 1)
    await addMap(member, 'two', 2)
    await connect(world, 'west', member)
    const part = await trialOf(world)('west', aSource(), options)
    expect(part).toMatchObject({ outcome: 'complete', truncated: true })
    if (part?.outcome === 'complete') expect(part.rows.size).toBe(1)
  })

  it('gives nothing where the hub has no way in', async () => {
    const { world } = await aHub()
    await world.hub.create(connectionResource, {
      metadata: { name: 'far', namespace: NAMESPACE },
      spec: { collectionMode: 'push' },
    })
    expect(await trialOf(world)('far', aSource(), options)).toBeUndefined()
    expect(await trialOf(world)('nowhere', aSource(), options)).toBeUndefined()
  })

  it('says what is wrong with the way', async () => {
    const { world, member } = await aHub()
    await connect(world, 'west', member, { credentialsRef: { name: 'missing' } })
    expect(await trialOf(world)('west', aSource(), options)).toMatchObject({
      outcome: 'unreachable',
      message: expect.stringContaining('missing'),
    })
  })
})
