import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Condition, Manager } from '#controller'
import type { Row } from '#extract'
import type { KollectClusterInventoryStatus, KollectKnown, KollectSinkStatus } from '#kinds'
import { events, isKubeError, type KubeObject, type Resource, secrets } from '#kube'
import { type Clock, seconds, systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { InventoryEngine, type InventoryEngineOptions, inventoryInformers, inventoryResources } from './index.ts'
import { GIVE_UP_CLEANUP, PREVIEW, TEST_CONNECTION } from './reconcile/words.ts'
import { clusters, type TestCluster } from './testing/cluster.ts'
import { lagging } from './testing/lagging.ts'
import { MemoryPlace, memoryPool, sinkContext } from './testing/memory-sink.ts'

const NAMESPACE = 'team-a'
const API = { apiVersion: 'kollect.dev/v1alpha1' }
const WRITING = { cluster: 'west', namespace: NAMESPACE, inventory: 'apps' }
const {
  inventories,
  clusterInventories,
  targets,
  clusterTargets,
  databaseSinks,
  snapshotSinks,
  eventSinks,
  scopes,
  clusterScopes,
  connectionTests,
} = inventoryResources as unknown as Readonly<Record<keyof typeof inventoryResources, Resource<KubeObject>>>

const aRow = (name: string, value: unknown = 1, more: Partial<Row> = {}): Row => ({
  targetNamespace: NAMESPACE,
  targetName: 'pods',
  namespace: NAMESPACE,
  name,
  version: 'v1',
  kind: 'Pod',
  uid: `uid-${name}`,
  attributes: { value },
  ...more,
})

/** A clock that runs so many times as fast as ours, until it is told to run as ours does. */
function hurried(times: number): Clock & { calm(): void } {
  let rate = times
  let since = Date.now()
  let then = since
  const now = () => then + (Date.now() - since) * rate
  return {
    now,
    sleep: async (ms, signal) => {
      const until = now() + ms
      for (let left = ms; left > 0 && !signal?.aborted; left = until - now())
        await systemClock.sleep(Math.min(left / rate, 50), signal)
    },
    calm: () => {
      then = now()
      since = Date.now()
      rate = 1
    },
  }
}

for (const { title, skip, open } of clusters) {
  // What does not depend on the server runs on the embedded one alone; it is no test of the others, not one left out.
  const onEmbedded = title === 'the embedded API' ? it : () => undefined
  describe.skipIf(skip)(`inventories on ${title}`, () => {
    let cluster: TestCluster
    const ends: (() => PromiseLike<unknown>)[] = []
    beforeAll(async () => {
      cluster = await open()
    })
    afterAll(() => cluster?.[Symbol.asyncDispose]())
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end()
      await clean()
    })

    /** An agent whose sinks are in memory, and whose targets are played by the test. */
    async function anAgent(
      places: Record<string, MemoryPlace>,
      known: Partial<KollectKnown> = {},
      clocks: Pick<InventoryEngineOptions, 'clock' | 'steady' | 'random'> = {},
      { kube: followed = cluster.kube } = {},
    ) {
      const { kube } = cluster
      const informers = inventoryInformers(followed, silentLogger)
      const metrics = new Metrics({}, { processMetrics: false })
      const pool = memoryPool(places)
      const engine = InventoryEngine.open({
        kube,
        informers,
        cluster: 'west',
        known: { semantics: 'strict', maxExportBytes: 1_572_864, ...known },
        sinks: sinkContext,
        pool,
        logger: silentLogger,
        metrics,
        ...clocks,
      })
      const { controllers } = engine
      const manager = new Manager({ controllers, logger: silentLogger, whileLeading: (signal) => engine.lead(signal) })
      await manager.start()
      let isStopped = false
      const stop = async () => {
        if (isStopped) return
        isStopped = true
        await manager.stop()
        await engine[Symbol.asyncDispose]()
        await pool[Symbol.asyncDispose]()
      }
      ends.push(stop)
      await expect.poll(() => manager.isLeading).toBe(true)
      const rows = (name = 'pods', namespace = NAMESPACE) => engine.rows.target({ namespace, name })
      return { engine, metrics, stop, rows }
    }

    const make = (resource: Resource<KubeObject>, name: string, spec: object, more: object = {}) =>
      cluster.kube.create(resource, {
        ...API,
        kind: resource.kind,
        metadata: { name, ...(resource.namespaced && { namespace: NAMESPACE }), ...more },
        spec,
      })
    const keyOf = (resource: Resource<KubeObject>, name: string) =>
      resource.namespaced ? { name, namespace: NAMESPACE } : { name }
    const read = (resource: Resource<KubeObject>, name: string) => cluster.kube.get(resource, keyOf(resource, name))
    const merge = (resource: Resource<KubeObject>, name: string, body: object) =>
      cluster.kube.patch(resource, keyOf(resource, name), body, { kind: 'merge' })
    const remove = (resource: Resource<KubeObject>, name: string) =>
      cluster.kube.delete(resource, keyOf(resource, name))
    const statusOf = async (name = 'apps', resource = inventories) =>
      ((await read(resource, name))?.status ?? {}) as KollectClusterInventoryStatus
    const stateOf = async (type: string, name = 'apps', resource = inventories): Promise<string | undefined> => {
      const found = ((await statusOf(name, resource)).conditions as Condition[] | undefined)?.find(
        (one) => one.type === type,
      )
      return found && `${found.status}/${found.reason}`
    }

    async function clean() {
      for (const resource of Object.values(inventoryResources) as unknown as Resource<KubeObject>[]) {
        for (const { metadata } of await cluster.kube.listAll(resource)) {
          const key = keyOf(resource, metadata.name)
          try {
            if (metadata.finalizers)
              await cluster.kube.patch(resource, key, { metadata: { finalizers: null } }, { kind: 'merge' })
            await cluster.kube.delete(resource, key)
          } catch (error) {
            if (!isKubeError(error, 'not_found')) throw error
          }
        }
      }
      for (const { metadata } of await cluster.kube.listAll(secrets, { namespace: NAMESPACE }))
        await cluster.kube.delete(secrets, { name: metadata.name, namespace: NAMESPACE })
      for (const { metadata } of await cluster.kube.listAll(events))
        await cluster.kube.delete(events, { name: metadata.name, namespace: metadata.namespace ?? '' })
    }

    async function aDatabase(name: string, more: object = {}) {
      await cluster.kube.create(secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace: NAMESPACE },
        stringData: { dsn: `postgres://${name}.example.com/db` },
      })
      await make(databaseSinks, name, {
        type: 'postgres',
        postgres: { databaseRef: { name }, table: 'inventory' },
        ...more,
      })
    }

    async function anInventory(spec: object = { databaseSinkRefs: ['one'] }, name = 'apps') {
      await make(targets, 'pods', { profileRef: 'pods' })
      await make(inventories, name, spec)
    }

    it('reach their sink, and their status says so; a hundred looks without a change write nothing', async () => {
      const one = new MemoryPlace()
      const agent = await anAgent({ one })
      await aDatabase('one')
      await anInventory({ databaseSinkRefs: [{ name: 'one' }] })
      agent.rows().put([aRow('a'), aRow('b')])
      agent.rows().setComplete(true)
      await expect.poll(() => one.namesOf(WRITING)).toEqual(['a', 'b'])
      await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
      await expect.poll(async () => (await statusOf()).itemCount).toBe(2)
      const status = await statusOf()
      expect(await stateOf('Ready')).toBe('True/Exported')
      expect(await stateOf('Degraded')).toBe('False/Exported')
      expect(await stateOf('Complete')).toBe('True/Complete')
      expect(status.sinkExports).toMatchObject([
        { name: 'database/one', namespace: NAMESPACE, lastChecksum: one.taken[0]?.delivery.checksum },
      ])
      expect(status.lastExportTime).toBeDefined()
      await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('True/ConnectionOK')

      const before = await read(inventories, 'apps')
      const controller = agent.engine.controllers.find(({ name }) => name === 'inventories')
      for (let look = 0; look < 100; look++) {
        controller?.enqueue({ name: 'apps', namespace: NAMESPACE })
        await expect.poll(() => controller?.load, { interval: 1 }).toEqual({ waiting: 0, running: 0 })
      }
      expect((await read(inventories, 'apps'))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion)
      expect(one.taken).toHaveLength(1)
    })

    it('delete nothing over a restart: nothing is exported until all is read, and nothing at all where nothing changed', async () => {
      const one = new MemoryPlace()
      const first = await anAgent({ one })
      await aDatabase('one')
      await anInventory()
      first.rows().put([aRow('a'), aRow('b')])
      first.rows().setComplete(true)
      await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
      const { epoch = 0 } = await statusOf()
      await first.stop()

      const second = await anAgent({ one })
      await expect.poll(async () => (await statusOf()).epoch ?? 0).toBeGreaterThan(epoch)
      second.rows().put([aRow('a')])
      await expect.poll(() => stateOf('Complete')).toBe('False/Collecting')
      second.rows().put([aRow('b')])
      second.rows().setComplete(true)
      await expect.poll(() => stateOf('Complete')).toBe('True/Complete')
      await expect.poll(() => stateOf('Synced')).toBe('True/UpToDate')
      expect(one.taken.filter(({ written }) => written > 0)).toHaveLength(1)
      second.rows().remove([aRow('b')])
      await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
      expect(one.taken.at(-1)?.delivery.position.epoch).toBeGreaterThan(BigInt(epoch))
      expect(one.taken.reduce((sum, { removed }) => sum + removed, 0)).toBe(1)
    })

    it('write down in the end what sinks took last, and look there at the start, as they may have been killed before', async () => {
      const one = new MemoryPlace()
      const first = await anAgent({ one })
      await aDatabase('one')
      await anInventory()
      first.rows().put([aRow('a')])
      first.rows().setComplete(true)
      await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
      await expect.poll(async () => (await statusOf()).sinkExports?.[0]?.lastChecksum).toBeDefined()
      const { sinkExports: former = [] } = await statusOf()
      first.rows().put([aRow('b')])
      await expect.poll(() => one.namesOf(WRITING)).toEqual(['a', 'b'])
      await first.stop()
      const { sinkExports: last } = await statusOf()
      expect(last?.[0]?.lastChecksum).toBe(one.taken.at(-1)?.delivery.checksum)
      expect(last?.[0]?.lastChecksum).not.toBe(former[0]?.lastChecksum)

      // Killed before that, and all is as it was before when it starts again.
      await cluster.kube.patch(
        inventories,
        keyOf(inventories, 'apps'),
        { status: { sinkExports: former } },
        {
          ...{ kind: 'merge', subresource: 'status' },
        },
      )
      const second = await anAgent({ one })
      second.rows().put([aRow('a')])
      second.rows().setComplete(true)
      await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
    })

    onEmbedded('say that they wait for a target, and that what earlier starts exported is old', async () => {
      const one = new MemoryPlace()
      const first = await anAgent({ one })
      await aDatabase('one')
      await anInventory()
      first.rows().put([aRow('a')])
      first.rows().setComplete(true)
      await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
      await first.stop()

      const clock = hurried(30)
      const second = await anAgent({ one }, {}, { clock, steady: clock })
      second.rows().put([aRow('b')])
      await expect.poll(() => stateOf('Ready')).toBe('False/TargetDegraded')
      const { conditions = [], sinkExports = [] } = await statusOf()
      expect(conditions.find(({ type }) => type === 'Synced')).toMatchObject({
        status: 'False',
        message: 'waits for the targets pods; until then nothing is exported',
      })
      expect(sinkExports[0]?.conditions).toMatchObject([{ type: 'Synced', status: 'False', reason: 'Behind' }])
      second.rows().put([aRow('a')])
      second.rows().setComplete(true)
      await expect.poll(() => stateOf('Ready')).toBe('True/Exported')
      expect(one.namesOf(WRITING)).toEqual(['a', 'b'])
    })

    onEmbedded('say the same over a restart that reads all soon, what they wait for where it does not', async () => {
      const one = new MemoryPlace()
      const first = await anAgent({ one })
      await aDatabase('one')
      await anInventory()
      first.rows().put([aRow('a')])
      first.rows().setComplete(true)
      await expect.poll(() => stateOf('Ready')).toBe('True/Exported')
      await first.stop()

      const { epoch = 0 } = await statusOf()
      const second = await anAgent({ one })
      await expect.poll(async () => (await statusOf()).epoch ?? 0).toBeGreaterThan(epoch)
      const { metadata } = (await read(inventories, 'apps')) as KubeObject
      second.rows().put([aRow('a')])
      const inventory = second.engine.controllers.find(({ name }) => name === 'inventories')
      for (let look = 0; look < 10; look++) {
        inventory?.enqueue({ name: 'apps', namespace: NAMESPACE })
        await expect.poll(() => inventory?.load, { interval: 1 }).toMatchObject({ running: 0 })
      }
      expect((await read(inventories, 'apps'))?.metadata.resourceVersion).toBe(metadata.resourceVersion)
      // It may not be read any more: that is told at once.
      const refusedAt = Date.now()
      second.rows().setComplete(false, true)
      await expect.poll(() => stateOf('Ready')).toBe('False/TargetDegraded')
      expect((Date.now() - refusedAt) / slowness).toBeLessThan(5_000)
      second.rows().setComplete(true)
      await expect.poll(() => stateOf('Ready')).toBe('True/UpToDate')
      await second.stop()

      const clock = hurried(5)
      const third = await anAgent({ one }, {}, { clock, steady: clock })
      third.rows().put([aRow('a')])
      await expect.poll(() => stateOf('Ready')).toBe('Unknown/Reading')
      const { conditions = [] } = await statusOf()
      expect(conditions.find(({ type }) => type === 'Ready')?.message).toMatch(/^waits for the targets pods; /)
      expect([await stateOf('Degraded'), await stateOf('Complete')]).toEqual(['False/Reading', 'False/Collecting'])
      third.rows().setComplete(true)
      await expect.poll(() => stateOf('Ready')).toBe('True/UpToDate')
      expect(one.taken.filter(({ written }) => written > 0)).toHaveLength(1)
    })

    onEmbedded('are exported soon after their sink answers again, however long it was away', async () => {
      const one = new MemoryPlace()
      one.trouble = 'transient'
      one.probeSays = { verified: false, message: 'it is away', warnings: [] }
      // After five failures the next try by itself is 160 s away: far more than the test waits.
      const clock = hurried(20)
      const agent = await anAgent({ one }, {}, { clock, steady: clock, random: () => 1 })
      await aDatabase('one')
      await anInventory()
      agent.rows().put([aRow('a')])
      agent.rows().setComplete(true)
      await expect.poll(() => one.attempts).toBeGreaterThanOrEqual(5)
      clock.calm()
      one.trouble = undefined
      one.probeSays = { verified: true, message: 'it answers', warnings: [] }
      await merge(databaseSinks, 'one', { metadata: { annotations: { [TEST_CONNECTION]: 'true' } } })
      await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
    })

    onEmbedded(
      'say since when a sink is late, once, also over a restart, until it has all',
      async () => {
        const one = new MemoryPlace()
        const clock = hurried(30)
        const first = await anAgent({ one }, {}, { clock, steady: clock })
        await aDatabase('one')
        await anInventory()
        first.rows().put([aRow('a')])
        first.rows().setComplete(true)
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        const behindSince = async () => (await statusOf()).sinkExports?.[0]?.behindSince
        expect(await behindSince()).toBeUndefined()
        one.trouble = 'hang' // it says nothing: no failure makes anybody look
        first.rows().put([aRow('b')])
        await expect.poll(behindSince).toBeDefined()
        const since = await behindSince()
        await expect.poll(async () => (await statusOf()).itemCount).toBe(2)
        const before = await read(inventories, 'apps')
        const controller = first.engine.controllers.find(({ name }) => name === 'inventories')
        for (let look = 0; look < 100; look++) {
          controller?.enqueue({ name: 'apps', namespace: NAMESPACE })
          await expect.poll(() => controller?.load, { interval: 1 }).toEqual({ waiting: 0, running: 0 })
        }
        expect((await read(inventories, 'apps'))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion)
        await first.stop()

        one.trouble = undefined
        const second = await anAgent({ one }, {}, { clock, steady: clock })
        second.rows().put([aRow('a')])
        await expect.poll(() => stateOf('Complete')).toBe('False/Collecting')
        expect(await behindSince()).toBe(since)
        second.rows().put([aRow('b')])
        second.rows().setComplete(true)
        await expect.poll(() => one.namesOf(WRITING)).toEqual(['a', 'b'])
        await expect.poll(behindSince).toBeUndefined()
      },
      120_000,
    )

    onEmbedded(
      'wait for a target that nobody reads yet, and are emptied when the last one goes',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one })
        await aDatabase('one')
        await make(targets, 'late', { profileRef: 'pods' })
        await anInventory()
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Complete')).toBe('False/Collecting')
        expect(one.attempts).toBe(0)
        agent.rows('late').drop()
        await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
        agent.rows().drop()
        await remove(targets, 'pods')
        await expect.poll(() => one.namesOf(WRITING)).toEqual([])
        expect(one.taken.at(-1)?.delivery).toMatchObject({ complete: true, itemCount: 0 })
      },
      120_000,
    )

    onEmbedded(
      'judge each sink by itself, and are never Ready and Degraded together',
      async () => {
        const [one, two] = [new MemoryPlace(), new MemoryPlace()]
        const agent = await anAgent({ one, two })
        for (const name of ['one', 'two']) await aDatabase(name)
        two.trouble = 'transient'
        await anInventory({ databaseSinkRefs: ['one', 'two', 'absent'] })
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
        await expect.poll(() => stateOf('Synced')).toBe('False/PartiallySynced')
        expect(await stateOf('Ready')).toBe('True/PartiallySynced')
        expect(await stateOf('Degraded')).toBe('False/PartiallySynced')
        expect((await statusOf()).sinkExports?.map(({ conditions }) => conditions?.[0]?.reason)).toEqual([
          'Exported',
          'Transient',
          'SinkNotFound',
        ])
        one.trouble = 'terminal'
        agent.rows().put([aRow('b')])
        await expect.poll(() => stateOf('Degraded')).toBe('True/Progressing')
        expect(await stateOf('Ready')).toBe('False/Progressing')
        const said = (await cluster.kube.listAll(events)).map((event) => `${event.type}/${event.reason}`)
        expect(said).toEqual(
          expect.arrayContaining(['Normal/ExportSucceeded', 'Warning/ExportFailed', 'Warning/SinkNotFound']),
        )
      },
      120_000,
    )

    onEmbedded(
      'go on at once when the sink that was missing is there, and when its Secret is',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one })
        await anInventory()
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Degraded')).toBe('True/SinkNotFound')
        await make(databaseSinks, 'one', {
          type: 'postgres',
          postgres: { databaseRef: { name: 'one' }, table: 'inventory' },
        })
        await expect.poll(() => stateOf('Degraded')).toBe('True/SecretNotFound')
        await expect.poll(() => stateOf('Degraded', 'one', databaseSinks)).toBe('True/SecretNotFound')
        await cluster.kube.create(secrets, {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'one', namespace: NAMESPACE },
          stringData: { dsn: 'postgres://one.example.com/db' },
        })
        await merge(databaseSinks, 'one', { metadata: { annotations: { [TEST_CONNECTION]: 'true' } } })
        await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
      },
      120_000,
    )

    onEmbedded(
      'are opened anew under rotated credentials, and closed under the old ones',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one })
        await aDatabase('one')
        await anInventory()
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        await cluster.kube.patch(
          secrets,
          { name: 'one', namespace: NAMESPACE },
          {
            stringData: { dsn: 'postgres://other.example.com/db' },
            data: { dsn: Buffer.from('postgres://other').toString('base64') },
          },
          { kind: 'merge' },
        )
        agent.engine.controllers
          .find(({ name }) => name === 'database-sinks')
          ?.enqueue({ name: 'one', namespace: NAMESPACE })
        await expect.poll(() => one.opened).toBe(2)
        await expect.poll(() => one.closed).toBe(1)
        await expect.poll(() => one.taken.length).toBe(2)
      },
      120_000,
    )

    onEmbedded(
      'refuse Secrets of other namespaces with the next step',
      async () => {
        const agent = await anAgent({})
        const databaseRef = { name: 'one', namespace: 'kollect-system' }
        await make(databaseSinks, 'one', { type: 'postgres', postgres: { databaseRef, table: 'inventory' } })
        await anInventory()
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Degraded', 'one', databaseSinks)).toMatch(/^True\//)
        const { conditions = [] } = ((await read(databaseSinks, 'one'))?.status ?? {}) as KollectSinkStatus
        expect(conditions.find(({ type }) => type === 'Degraded')?.message).toMatch(/KOLLECT_SEMANTICS/)
        await expect.poll(() => stateOf('Ready')).toMatch(/^False\//)
      },
      120_000,
    )

    onEmbedded(
      'keep below their scopes: a sink that is not allowed gets nothing, and no name of what is allowed',
      async () => {
        const [one, two] = [new MemoryPlace(), new MemoryPlace()]
        const agent = await anAgent({ one, two })
        for (const name of ['one', 'two']) await aDatabase(name)
        await anInventory({ databaseSinkRefs: ['one'] })
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        await make(scopes, 'ceiling', { databaseSinkRefs: ['two'] })
        await expect.poll(() => stateOf('Degraded')).toBe('True/ScopeSinkDenied')
        agent.rows().put([aRow('a')])
        const { conditions = [] } = await statusOf()
        expect(conditions.find(({ type }) => type === 'Degraded')?.message).not.toContain('two')
        await make(connectionTests, 'try', { sinkRef: { databaseSinkRef: 'one' } })
        await expect.poll(() => stateOf('Ready', 'try', connectionTests)).toBe('False/ConnectionTestFailed')
        await remove(scopes, 'ceiling')
        await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
      },
      120_000,
    )

    onEmbedded(
      'use no sink that a scope denies: nothing is opened and no Secret read, and it says which scope, until that allows it',
      async () => {
        const [one, git, bus] = [new MemoryPlace(), new MemoryPlace(), new MemoryPlace()]
        await anAgent({ one, git, bus })
        const denying = { databaseSinkRefs: ['other'], snapshotSinkRefs: ['other'], eventSinkRefs: ['other'] }
        await make(scopes, 'ceiling', denying)
        await make(databaseSinks, 'one', { type: 'postgres', postgres: { databaseRef: { name: 'one' }, table: 'x' } })
        await make(snapshotSinks, 'git', { type: 'git', endpoint: 'https://git.example.com/a.git' })
        await make(eventSinks, 'bus', { type: 'nats', nats: { url: 'nats://nats.example.com:4222', subject: 'x' } })
        const sinks = [
          ['one', databaseSinks, one],
          ['git', snapshotSinks, git],
          ['bus', eventSinks, bus],
        ] as const
        for (const [name, resource, place] of sinks) {
          await expect.poll(() => stateOf('Degraded', name, resource)).toBe('True/ScopeSinkDenied')
          const { conditions = [] } = await statusOf(name, resource)
          expect(conditions.find(({ type }) => type === 'Degraded')?.message).toMatch(
            new RegExp(`^the scope ceiling does not allow the sink ${name}: .*have the scope changed$`),
          )
          expect(await stateOf('ConnectionVerified', name, resource)).toBe('False/ConnectionTestFailed')
          expect(place.opened).toBe(0)
        }
        await cluster.kube.create(secrets, {
          ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'one', namespace: NAMESPACE } },
          stringData: { dsn: 'postgres://one.example.com/db' },
        })
        await merge(scopes, 'ceiling', {
          spec: { databaseSinkRefs: ['one'], snapshotSinkRefs: ['git'], eventSinkRefs: ['bus'] },
        })
        for (const [name, resource, place] of sinks) {
          await expect.poll(() => stateOf('ConnectionVerified', name, resource)).toBe('True/ConnectionOK')
          expect(await stateOf('Degraded', name, resource)).toBeUndefined()
          expect(place.closed).toBe(0)
        }
        await merge(scopes, 'ceiling', { spec: denying })
        for (const [, , place] of sinks) await expect.poll(() => place.closed).toBe(1)
      },
      120_000,
    )

    onEmbedded(
      'lets a roll-up write to a sink that the scope of its namespace denies to others, as cluster scopes allow it',
      async () => {
        const one = new MemoryPlace()
        await anAgent({ one })
        await make(scopes, 'ceiling', { databaseSinkRefs: ['other'] })
        await aDatabase('one')
        await expect.poll(() => stateOf('Degraded', 'one', databaseSinks)).toBe('True/ScopeSinkDenied')
        await make(clusterInventories, 'fleet', {
          namespaceSelector: {},
          databaseSinkRefs: [{ name: 'one', namespace: NAMESPACE }],
        })
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('True/ConnectionOK')
        await make(clusterScopes, 'fleet', { databaseSinkRefs: ['other'] })
        await expect.poll(() => stateOf('Degraded', 'one', databaseSinks)).toBe('True/ScopeSinkDenied')
      },
      120_000,
    )

    onEmbedded(
      'export nothing while they are suspended',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one })
        await aDatabase('one')
        await anInventory({ databaseSinkRefs: ['one'], suspend: true })
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Degraded')).toBe('True/Suspended')
        await merge(inventories, 'apps', { spec: { suspend: false } })
        await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
        expect(one.attempts).toBe(1)
      },
      120_000,
    )

    it('take away what they wrote before they go, also where their sink goes with them', async () => {
      const one = new MemoryPlace()
      const agent = await anAgent({ one })
      await aDatabase('one')
      await anInventory()
      agent.rows().put([aRow('a')])
      agent.rows().setComplete(true)
      await expect.poll(() => one.namesOf(WRITING)).toEqual(['a'])
      await remove(databaseSinks, 'one')
      await cluster.kube.delete(secrets, { name: 'one', namespace: NAMESPACE })
      await remove(inventories, 'apps')
      await expect.poll(() => read(inventories, 'apps')).toBeUndefined()
      expect(one.removed).toEqual(['west/team-a/apps'])
    })

    onEmbedded(
      'stay while a dead sink keeps what they wrote, until somebody gives up',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one })
        await aDatabase('one')
        await anInventory()
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        one.trouble = 'terminal'
        await remove(inventories, 'apps')
        await expect.poll(() => stateOf('Degraded')).toBe('True/CleanupTerminal')
        await merge(inventories, 'apps', { metadata: { annotations: { [GIVE_UP_CLEANUP]: 'true' } } })
        await expect.poll(() => read(inventories, 'apps')).toBeUndefined()
        expect(one.namesOf(WRITING)).toEqual(['a'])
      },
      120_000,
    )

    onEmbedded(
      'go at once where a sink that never was got nothing',
      async () => {
        const agent = await anAgent({})
        await anInventory()
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Degraded')).toBe('True/SinkNotFound')
        await remove(inventories, 'apps')
        await expect.poll(() => read(inventories, 'apps')).toBeUndefined()
      },
      120_000,
    )

    it('are rolled up from ready cluster targets, incomplete while one is not, within seconds of a change', async () => {
      const one = new MemoryPlace()
      const agent = await anAgent({ one })
      await aDatabase('one')
      const selector = { matchLabels: { team: 'a' } }
      const spec = { profileRef: { name: 'pods', namespace: NAMESPACE }, namespaceSelector: selector }
      for (const name of ['ready', 'slow']) await make(clusterTargets, name, spec)
      const writing = { cluster: 'west', namespace: '', inventory: 'fleet' }
      const rowOf = (name: string, targetName: string, namespace = NAMESPACE) =>
        aRow(name, 1, { targetName, targetNamespace: namespace, namespace })
      agent.rows('ready', '').put([rowOf('a', 'ready'), rowOf('hidden', 'ready', 'team-b')])
      agent.rows('slow', '').put([rowOf('b', 'slow')])
      for (const name of ['ready', 'slow']) agent.rows(name, '').setComplete(true)
      await make(clusterInventories, 'fleet', {
        namespaceSelector: selector,
        databaseSinkRefs: ['one'],
        sinkNamespace: NAMESPACE,
      })
      await expect.poll(() => one.namesOf(writing)).toEqual(['a', 'b'])
      await expect.poll(() => stateOf('Synced', 'fleet', clusterInventories)).toBe('True/RolledUp')
      await expect
        .poll(() => statusOf('fleet', clusterInventories))
        .toMatchObject({
          itemCount: 2,
          targetCount: 2,
          namespaceShardCount: 1,
          namespaceShards: [{ namespace: NAMESPACE, itemCount: 2, targetCount: 2 }],
        })
      agent.rows('slow', '').setComplete(false)
      agent.rows('slow', '').replace([])
      agent.rows('ready', '').put([rowOf('c', 'ready')])
      const changedAt = Date.now()
      await expect.poll(() => one.namesOf(writing)).toEqual(['a', 'b', 'c'])
      expect(Date.now() - changedAt).toBeLessThan(seconds(15))
      expect(one.taken.at(-1)?.delivery.complete).toBe(false)
      await expect.poll(() => stateOf('Complete', 'fleet', clusterInventories)).toBe('False/TargetDegraded')
    })

    onEmbedded(
      'lose no row to a watch of cluster targets that is silent while they and what selects them are changed',
      async () => {
        const one = new MemoryPlace()
        const selector = { matchLabels: { team: 'a' } }
        const ofTarget = { profileRef: { name: 'pods', namespace: NAMESPACE }, namespaceSelector: selector }
        await make(clusterTargets, 'pods', ofTarget, { labels: { before: 'yes' } })
        const agent = await anAgent({ one }, {}, {}, { kube: lagging(cluster.kube, clusterTargets.plural, 60_000) })
        await aDatabase('one')
        const writing = { cluster: 'west', namespace: '', inventory: 'fleet' }
        agent.rows('pods', '').put([aRow('a', 1, { targetNamespace: '' })])
        agent.rows('pods', '').setComplete(true)
        await make(clusterInventories, 'fleet', {
          targetSelector: { matchLabels: { before: 'yes' } },
          namespaceSelector: selector,
          databaseSinkRefs: ['one'],
          sinkNamespace: NAMESPACE,
        })
        await expect.poll(() => one.namesOf(writing)).toEqual(['a'])
        await merge(clusterTargets, 'pods', { metadata: { labels: { after: 'yes' } } })
        const chosenBy = (labels: object) =>
          merge(clusterInventories, 'fleet', { spec: { targetSelector: { matchLabels: labels } } })
        await chosenBy({ before: null, after: 'yes' })
        agent.rows('pods', '').put([aRow('b', 1, { targetNamespace: '' })])
        await expect.poll(() => one.namesOf(writing)).toEqual(['a', 'b'])
        expect(one.taken.filter(({ removed }) => removed > 0)).toEqual([])
        // Nobody is left to be taken: that goes out.
        await chosenBy({ after: 'no' })
        await expect.poll(() => one.namesOf(writing)).toEqual([])
      },
      120_000,
    )

    onEmbedded(
      'without a target to roll up say so, and export nothing',
      async () => {
        const one = new MemoryPlace()
        await anAgent({ one })
        await aDatabase('one')
        const selector = { matchLabels: { team: 'a' } }
        await make(clusterInventories, 'fleet', {
          namespaceSelector: selector,
          databaseSinkRefs: ['one'],
          sinkNamespace: NAMESPACE,
        })
        await expect.poll(() => stateOf('Degraded', 'fleet', clusterInventories)).toBe('True/Progressing')
        expect(one.attempts).toBe(0)
      },
      120_000,
    )

    onEmbedded(
      'have sinks that are looked at: verified or not, insecure, with a preview while it is asked for',
      async () => {
        const [one, git] = [new MemoryPlace(), new MemoryPlace()]
        one.probeSays = { verified: false, message: 'it does not answer', warnings: [] }
        await anAgent({ one, git })
        await aDatabase('one', { tls: { insecureSkipVerify: true } })
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('False/ConnectionTestFailed')
        expect(await stateOf('TLSInsecure', 'one', databaseSinks)).toBe('True/InsecureSkipVerify')
        await expect
          .poll(async () => (await cluster.kube.listAll(events)).map(({ reason }) => reason))
          .toContain('ConnectionTestFailed')
        one.probeSays = { verified: true, message: 'it answers', warnings: [] }
        await merge(databaseSinks, 'one', { spec: { connectionTest: false, tls: null } })
        await expect.poll(() => stateOf('TLSInsecure', 'one', databaseSinks)).toBeUndefined()
        await merge(databaseSinks, 'one', {
          metadata: { annotations: { [TEST_CONNECTION]: 'true', [PREVIEW]: 'true' } },
        })
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('True/ConnectionOK')
        await expect
          .poll(async () => (await read(databaseSinks, 'one'))?.metadata.annotations)
          .toEqual({ [PREVIEW]: 'true' })
        const previewOf = async () =>
          ((await read(databaseSinks, 'one'))?.status as KollectSinkStatus | undefined)?.preview
        await expect.poll(previewOf).toMatchObject({
          objectPath: 'west/api',
          provisioningMode: 'ensure',
          inputSampleSource: 'an inventory that is made up, team-a/api: none names this sink',
        })
        await merge(databaseSinks, 'one', { metadata: { annotations: { [PREVIEW]: null } } })
        await expect.poll(previewOf).toBeUndefined()
        expect(await cluster.kube.listAll(snapshotSinks)).toEqual([])
      },
      120_000,
    )

    onEmbedded(
      'have sinks whose connection is looked at again when deliveries fail, and when they work again, with its age',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one }, { allowFiles: true })
        await aDatabase('one')
        await anInventory()
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('True/ConnectionOK')
        const sinkStatus = async () => ((await read(databaseSinks, 'one'))?.status ?? {}) as KollectSinkStatus
        const { lastTestedAt = '', cluster: writtenAs } = await sinkStatus()
        expect(writtenAs).toBe('west')
        expect(Date.now() - Date.parse(lastTestedAt)).toBeLessThan(seconds(60))
        expect(await stateOf('LoopbackAllowed', 'one', databaseSinks)).toBe('True/SinkAllowLoopback')

        // The last look was in order, and a delivery fails: what was true then is not any more.
        one.trouble = 'transient'
        one.probeSays = { verified: false, message: 'it is away', warnings: [] }
        agent.rows().put([aRow('b')])
        await expect.poll(() => stateOf('Degraded')).toBe('True/Progressing')
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('False/ConnectionTestFailed')
        expect(Date.parse((await sinkStatus()).lastTestedAt ?? '')).toBeGreaterThan(Date.parse(lastTestedAt))

        one.trouble = undefined
        one.probeSays = { verified: true, message: 'it answers', warnings: [] }
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('True/ConnectionOK')
      },
      180_000,
    )

    onEmbedded(
      'go on as soon as a sink that somebody had to mend answers again, not an hour later',
      async () => {
        const one = new MemoryPlace()
        one.trouble = 'terminal'
        one.probeSays = { verified: false, message: 'the password is wrong', warnings: [] }
        const agent = await anAgent({ one })
        await aDatabase('one')
        await anInventory()
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Degraded')).toBe('True/ExportTerminal')
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('False/ConnectionTestFailed')
        // Mended at the sink: no object of ours changes.
        one.trouble = undefined
        one.probeSays = { verified: true, message: 'it answers', warnings: [] }
        await expect.poll(() => stateOf('Synced'), { timeout: 90_000 }).toBe('True/Exported')
      },
      180_000,
    )

    onEmbedded(
      'go on as soon as somebody asks for a look at a sink, which never failed one: its limit may have been raised',
      async () => {
        const one = new MemoryPlace()
        one.trouble = 'terminal'
        const agent = await anAgent({ one })
        await aDatabase('one')
        await anInventory()
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Degraded')).toBe('True/ExportTerminal')
        await expect.poll(() => stateOf('ConnectionVerified', 'one', databaseSinks)).toBe('True/ConnectionOK')
        one.trouble = undefined
        await merge(databaseSinks, 'one', { metadata: { annotations: { [TEST_CONNECTION]: 'true' } } })
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
      },
      120_000,
    )

    onEmbedded(
      'show a preview of an inventory that names the sink, where there is one',
      async () => {
        const one = new MemoryPlace()
        await anAgent({ one })
        await anInventory()
        await aDatabase('one', {})
        await merge(databaseSinks, 'one', { metadata: { annotations: { [PREVIEW]: 'true' } } })
        await expect
          .poll(async () => ((await read(databaseSinks, 'one'))?.status as KollectSinkStatus | undefined)?.preview)
          .toMatchObject({
            objectPath: 'west/apps',
            inputSampleSource: 'the inventory team-a/apps; rows and numbers are made up',
          })
      },
      120_000,
    )

    onEmbedded(
      'say that another writer is there, and that deletions wait, in words of their own: the sink was reached',
      async () => {
        const one = new MemoryPlace()
        const agent = await anAgent({ one })
        await aDatabase('one')
        await anInventory()
        agent.rows().put([aRow('a'), aRow('b')])
        agent.rows().setComplete(true)
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        one.deletesAt = Date.now() + seconds(5)
        agent.rows().remove([aRow('b')])
        await expect.poll(() => stateOf('Synced')).toBe('False/DeletionsWait')
        expect(await stateOf('Ready')).toBe('True/DeletionsWait')
        expect(await stateOf('Degraded')).toBe('False/DeletionsWait')
        expect(await stateOf('SinkReachable')).toBe('True/Exported')
        await expect.poll(() => stateOf('Synced')).toBe('True/Exported')
        expect(one.namesOf(WRITING)).toEqual(['a'])
        one.trouble = 'conflict'
        agent.rows().put([aRow('c')])
        await expect.poll(() => stateOf('Degraded')).toBe('True/WriterConflict')
        expect(await stateOf('SinkReachable')).toBe('True/WriterConflict')
        // The sink says it, too, with what it holds and since when that is not all.
        await expect.poll(() => stateOf('Synced', 'one', databaseSinks)).toBe('False/WriterConflict')
        const { conditions, ...seen } = ((await read(databaseSinks, 'one'))?.status ?? {}) as KollectSinkStatus
        expect(seen).toMatchObject({ inventories: 1, itemCount: 1, lastExportTime: expect.any(String) })
        expect(conditions?.find(({ type }) => type === 'Synced')?.message).toContain('team-a/apps: somebody else')
        const about = async () =>
          (await cluster.kube.listAll(events))
            .filter(({ reason }) => reason === 'WriterConflict')
            .map(({ involvedObject }) => involvedObject)
        await expect
          .poll(about)
          .toEqual(
            expect.arrayContaining([
              expect.objectContaining({ kind: 'KollectDatabaseSink', name: 'one' }),
              expect.objectContaining({ kind: 'KollectInventory', name: 'apps' }),
            ]),
          )
        one.trouble = undefined
        await expect.poll(() => stateOf('Synced', 'one', databaseSinks)).toBe('True/Exported')
        await remove(inventories, 'apps')
        const left = async () =>
          ((await read(databaseSinks, 'one'))?.status as KollectSinkStatus | undefined)?.inventories
        await expect.poll(left).toBe(0)
      },
      120_000,
    )

    it('have connection tests that run once and go when their time is over', async () => {
      const one = new MemoryPlace()
      const agent = await anAgent({ one })
      await aDatabase('one')
      await make(connectionTests, 'try', { sinkRef: { databaseSinkRef: 'one' } })
      await make(connectionTests, 'brief', { sinkRef: { databaseSinkRef: 'one' }, ttlSecondsAfterFinished: 0 })
      await make(connectionTests, 'lost', { sinkRef: { databaseSinkRef: 'absent' } })
      await expect.poll(() => stateOf('Ready', 'try', connectionTests)).toBe('True/ProbeSucceeded')
      expect(await stateOf('ConnectionVerified', 'try', connectionTests)).toBe('True/ProbeSucceeded')
      await expect.poll(() => stateOf('Ready', 'lost', connectionTests)).toBe('False/SinkNotFound')
      await expect.poll(() => read(connectionTests, 'brief')).toBeUndefined()
      const test = await read(connectionTests, 'try')
      expect(test?.status).toMatchObject({ completed: true, latencyMs: expect.any(Number) })
      expect(test?.metadata.ownerReferences).toMatchObject([{ kind: 'KollectDatabaseSink', name: 'one' }])
      one.probeSays = { verified: false, message: 'gone', warnings: [] }
      agent.engine.controllers
        .find(({ name }) => name === 'connection-tests')
        ?.enqueue({ name: 'try', namespace: NAMESPACE })
      await expect.poll(() => stateOf('Ready', 'try', connectionTests)).toBe('True/ProbeSucceeded')
    })

    onEmbedded(
      'are measured: what each sink lacks, what was written, and what failed',
      async () => {
        const [one, two] = [new MemoryPlace(), new MemoryPlace()]
        two.trouble = 'transient'
        const agent = await anAgent({ one, two })
        for (const name of ['one', 'two']) await aDatabase(name)
        await anInventory({ databaseSinkRefs: ['one', 'two'] })
        agent.rows().put([aRow('a')])
        agent.rows().setComplete(true)
        await expect.poll(() => one.taken.length).toBe(1)
        const lagOf = async (sink: string) => {
          const text = await agent.metrics.registry.metrics()
          const line = text
            .split('\n')
            .find((one) => one.startsWith('kollect_export_lag_seconds') && one.includes(sink))
          return Number(line?.split(' ').at(-1))
        }
        await expect.poll(() => lagOf('database/two')).toBeGreaterThan(0.5)
        expect(await lagOf('database/one')).toBe(0)
        const text = await agent.metrics.registry.metrics()
        expect(text).toContain('kollect_exports_total{sink_type="postgres"} 1')
        expect(text).toContain('kollect_export_rows_total{sink_type="postgres",verb="written"} 1')
        expect(text).toMatch(/kollect_sink_errors_total\{reason="transient"\} [1-9]/)
        expect(text).toContain('kollect_collect_items_total 1')
      },
      120_000,
    )
  })
}
