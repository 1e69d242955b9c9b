import { readdir, readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { MemoryCatalog } from '#catalog'
import { Manager } from '#controller'
import type { MetricSourceSpec } from '#kinds'
import { type SourceId, StoreUnavailableError, systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { type MetricSourcesOptions, metricSourceReconcilers } from './index.ts'
import { everything, SourceReconciler } from './reconciler.ts'
import { metricSourceResource } from './source-resource.ts'
import { TestFleet } from './testing/fleet.ts'
import {
  aFaultySpec,
  anEmbeddedHub,
  aSpec,
  conditionOf,
  declare,
  hubs,
  NAMESPACE,
  statusOf,
  type TestHub,
  undeclare,
  until,
} from './testing/hub.ts'

const id = (name: string): SourceId => `${NAMESPACE}/${name}`
const EXAMPLES = new URL('../../../deploy/examples/metric-sources/', import.meta.url)

/** A memory catalog that a test may break, and that notes what it announces. */
class BreakableCatalog extends MemoryCatalog {
  isBroken = false
  puts = 0
  readonly announced: unknown[] = []
  #lost: (() => void) | undefined

  override put(...args: Parameters<MemoryCatalog['put']>) {
    this.puts++
    return this.#unless(() => super.put(...args))
  }
  override remove(removed: string) {
    return this.#unless(() => super.remove(removed))
  }
  override resync(...args: Parameters<MemoryCatalog['resync']>) {
    return this.#unless(() => super.resync(...args))
  }
  override announce(...args: readonly unknown[]): Promise<void> {
    this.announced.push(args)
    return Promise.resolve()
  }
  onLost(listener: () => void) {
    this.#lost = listener
    return () => undefined
  }
  lose() {
    this.#lost?.()
  }
  #unless<T>(action: () => Promise<T>): Promise<T> {
    return this.isBroken ? Promise.reject(new StoreUnavailableError('the store', 'it is broken')) : action()
  }
}

for (const { title, skip, open } of hubs) {
  describe.skipIf(skip)(`MetricSources of ${title}`, () => {
    let hub: TestHub
    const managers: Manager[] = []
    beforeAll(async () => {
      hub = await open()
    })
    afterAll(() => hub?.[Symbol.asyncDispose]())
    afterEach(async () => {
      for (const manager of managers.splice(0)) await manager.stop()
      for (const { metadata } of await hub.kube.listAll(metricSourceResource)) {
        await hub.kube.delete(metricSourceResource, { name: metadata.name, namespace: metadata.namespace ?? '' })
      }
    })

    async function start(over: Partial<MetricSourcesOptions> = {}, fleet = new TestFleet('east', 'west')) {
      const catalog = new BreakableCatalog()
      const controllers = metricSourceReconcilers({
        hub: hub.kube,
        namespace: NAMESPACE,
        catalog,
        state: fleet,
        ingester: fleet,
        events: fleet.events,
        logger: silentLogger,
        lookEveryMs: 100,
        ...over,
      })
      const manager = new Manager({ controllers, logger: silentLogger })
      managers.push(manager)
      await manager.start()
      return { catalog, fleet, manager }
    }

    it('brings a source into force and says what every cluster told of it', async () => {
      // So late that what is seen here is told by the bus.
      const { catalog, fleet } = await start({ lookEveryMs: 60_000 })
      await declare(hub, 'disks')
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      expect(catalog.ofType('pvc')?.id).toBe(id('disks'))
      expect(await statusOf(hub, 'disks')).toMatchObject({
        message: 'Waiting for the first collection',
        resourcesCollected: 0,
        clustersCollected: 0,
        errorsLastRun: 0,
      })
      await fleet.tell('west', id('disks'), { rows: 3, durationMs: 1_234 }, catalog)
      await fleet.tell('east', id('disks'), { rows: 2, durationMs: 20 }, catalog)
      await until(async () => {
        const status = await statusOf(hub, 'disks')
        expect(status).toMatchObject({
          phase: 'Active',
          message: 'Collection successful',
          resourcesCollected: 5,
          clustersCollected: 2,
          errorsLastRun: 0,
          lastCollectionDuration: '1.234s',
          lastCollectionTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        })
        expect(status.clusters?.map(({ name, collected, resources }) => [name, collected, resources])).toEqual([
          ['east', true, 2],
          ['west', true, 3],
        ])
        for (const type of ['Ready', 'Valid', 'Collected'])
          expect(conditionOf(status, type)).toMatchObject({ status: 'True', observedGeneration: 1 })
        expect(conditionOf(status, 'Ready')?.message).toBe('Collected 5 resources from 2 clusters')
      })
      expect(catalog.announced).toContainEqual(['reconciled', id('disks'), { resources: 5, clusters: 2, errors: 0 }])
      expect(catalog.puts).toBe(1)
    })

    it('leaves the last good revision in force where a new one has faults, and names each of them', async () => {
      const { catalog } = await start()
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      const good = catalog.source(id('disks'))
      const fields = [...aFaultySpec().fields, { name: 'app', path: '.metadata.labels[' }]
      await declare(hub, 'disks', { ...aFaultySpec(), fields })
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Error'))
      const status = await statusOf(hub, 'disks')
      expect(status.message).toBe(
        'spec.fields[2].path: "[" is not closed at 17 (and 1 more); revision 1 stays in force',
      )
      expect(conditionOf(status, 'Ready')).toMatchObject({ status: 'False', reason: 'InvalidSpec' })
      expect(conditionOf(status, 'Valid')).toMatchObject({
        status: 'False',
        reason: 'InvalidSpec',
        observedGeneration: 2,
      })
      expect(conditionOf(status, 'Valid')?.message).toBe(
        'spec.fields[2].path: "[" is not closed at 17; spec.fields[3].path: "[" is not closed at 17',
      )
      expect(status.fieldValidation).toContainEqual(expect.objectContaining({ field: 'gib', status: 'invalid' }))
      expect(catalog.source(id('disks'))).toBe(good)
      await declare(hub, 'disks', aSpec({ rbac: { resourceTypeName: 'disk' } }))
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      expect(catalog.ofType('pvc')).toBeUndefined()
      expect(catalog.ofType('disk')).toBeDefined()
    })

    it('takes a source of which a computed value cannot be compiled, and says so of that value', async () => {
      const { catalog } = await start()
      const computed = [...(aSpec().computed ?? []), { name: 'gib', expression: 'rond(capacity)' }]
      await declare(hub, 'disks', aSpec({ computed }))
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      await until(async () => expect((await statusOf(hub, 'disks')).fieldValidation).toHaveLength(4))
      const { fieldValidation } = await statusOf(hub, 'disks')
      expect(fieldValidation?.[3]).toMatchObject({
        field: 'gib',
        status: 'warning', // nothing was read yet; then it is invalid in every object
        message: expect.stringMatching(/no function rond: "gib" is null in every object/),
      })
      expect(fieldValidation?.[2]).toMatchObject({ field: 'capacityGiB', status: 'valid' })
    })

    it('says that nothing is in force where the first revision has faults already', async () => {
      const { catalog } = await start()
      await declare(hub, 'disks', aFaultySpec())
      await until(async () => expect((await statusOf(hub, 'disks')).message).toMatch(/nothing is in force$/))
      expect(catalog.sources()).toEqual([])
    })

    it('takes a deleted source and all that it collected away, and tells so', async () => {
      const { catalog, fleet } = await start()
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      await fleet.tell('west', id('disks'), { rows: 1 }, catalog)
      await fleet.tell('west', id('others'), { rows: 1 })
      await declare(hub, 'others', aSpec({ rbac: { resourceTypeName: 'other' } }))
      fleet.isBroken = true
      await undeclare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeUndefined())
      expect(fleet.holders(id('disks'))).toEqual(['west'])
      fleet.isBroken = false
      await until(() => expect(fleet.holders(id('disks'))).toEqual([]))
      await until(() => expect(catalog.announced).toContainEqual(['deleted', id('disks'), null]))
    })

    it('takes away what comes in after its source is gone', async () => {
      const { catalog, fleet } = await start()
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      await undeclare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeUndefined())
      await fleet.tell('east', id('disks'), { rows: 1 })
      await until(() => expect(fleet.holders(id('disks'))).toEqual([]))
    })

    it('cleans up at the start what was deleted while nobody looked, once state is loaded', async () => {
      const fleet = new TestFleet('east', 'west')
      await fleet.tell('east', id('gone'), { rows: 1 })
      await fleet.tell('west', 'elsewhere/gone', { rows: 1 })
      // What is compiled in is no MetricSource, and nobody deletes it.
      await fleet.tell('west', 'pods', { rows: 1 })
      await fleet.tell('west', id('disks'), { rows: 1 })
      await declare(hub, 'disks')
      fleet.availabilityNow = { state: 'loading' }
      const { catalog } = await start({}, fleet)
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      expect((await statusOf(hub, 'disks')).resourcesCollected).toBeUndefined()
      fleet.availabilityNow = { state: 'available' }
      await until(() => expect(fleet.holders(id('gone'))).toEqual([]))
      await until(() => expect(fleet.holders('elsewhere/gone')).toEqual([]))
      expect(fleet.holders('pods')).toEqual(['west'])
      expect(fleet.holders(id('disks'))).toEqual(['west'])
      expect(catalog.source(id('disks'))).toBeDefined()
    })

    it('takes away what is left once the owner of a cluster is back, which keeps no other one waiting', async () => {
      const { catalog, fleet } = await start()
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      for (const name of ['east', 'west']) await fleet.tell(name, id('disks'), { rows: 1 }, catalog)
      fleet.away.add('east')
      await undeclare(hub, 'disks')
      await until(() => expect(fleet.holders(id('disks'))).toEqual(['east']))
      const asked = fleet.asked
      await until(() => expect(fleet.asked).toBeGreaterThan(asked))
      expect(catalog.announced).not.toContainEqual(['deleted', id('disks'), null])
      fleet.away.clear()
      await until(() => expect(fleet.holders(id('disks'))).toEqual([]))
      await until(() => expect(catalog.announced).toContainEqual(['deleted', id('disks'), null]))
    })

    it('tells once that a source is gone, though state goes on showing for a while what it collected', async () => {
      const { catalog, fleet } = await start()
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      await fleet.tell('east', id('disks'), { rows: 1 }, catalog)
      const catchUp = fleet.fallBehind()
      await undeclare(hub, 'disks')
      await until(() => expect(fleet.holders(id('disks'))).toEqual([]))
      const asked = fleet.asked
      await until(() => expect(fleet.asked).toBeGreaterThan(asked + 1))
      catchUp()
      // It may be made anew, and its end is news again.
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      const told = () => catalog.announced.filter((event) => isDeepStrictEqual(event, ['deleted', id('disks'), null]))
      expect(told()).toHaveLength(1)
      await undeclare(hub, 'disks')
      await until(() => expect(told()).toHaveLength(2))
    })

    it('says and removes nothing new while state is being loaded at a start, and while it is away', async () => {
      await declare(hub, 'disks')
      const first = await start()
      await until(() => expect(first.catalog.source(id('disks'))).toBeDefined())
      await first.fleet.tell('east', id('disks'), { rows: 3 }, first.catalog)
      await until(async () => expect((await statusOf(hub, 'disks')).message).toBe('Collection successful'))
      const version = async () =>
        (await hub.kube.get(metricSourceResource, { name: 'disks', namespace: NAMESPACE }))?.metadata.resourceVersion
      const before = await version()
      await managers.splice(0)[0]?.stop()

      const fleet = new TestFleet()
      fleet.availabilityNow = { state: 'loading' }
      const { catalog } = await start({ catalog: first.catalog, lookEveryMs: 30 }, fleet)
      // Looks were taken: what is new is seen to.
      for (const name of ['others', 'more']) {
        await declare(hub, name, aSpec({ rbac: { resourceTypeName: name } }))
        await until(async () => expect((await statusOf(hub, name)).phase).toBe('Pending'))
      }
      expect((await statusOf(hub, 'more')).message).toBe('Waiting for the state of the clusters')
      await undeclare(hub, 'more')
      await until(() => expect(first.catalog.sources().map((source) => source.name)).toEqual(['disks', 'others']))
      expect(await version()).toBe(before)
      expect(fleet.asked).toBe(0)
      await managers.splice(0)[0]?.stop()

      first.fleet.availabilityNow = { state: 'unavailable', since: 0, reason: 'no connection' }
      await start({ catalog: first.catalog, lookEveryMs: 30 }, first.fleet)
      await until(async () => expect((await statusOf(hub, 'others')).message).toBe('Waiting for the first collection'))
      expect(await version()).toBe(before)
      expect(catalog.announced).toEqual([])
    })

    it('finds the catalog as it should be after a restart, and takes out what has no object any more', async () => {
      await declare(hub, 'disks')
      const first = await start()
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      await managers.splice(0)[0]?.stop()
      const [old] = first.catalog.sources()
      await first.catalog.put({ ...old?.definition, name: 'gone' })
      const before = await hub.kube.get(metricSourceResource, { name: 'disks', namespace: NAMESPACE })
      await start({ catalog: first.catalog }, first.fleet)
      await until(() => expect(first.catalog.announced).toContainEqual(['deleted', id('gone'), null]))
      expect(first.catalog.sources()).toEqual([old])
      const after = await hub.kube.get(metricSourceResource, { name: 'disks', namespace: NAMESPACE })
      expect(after?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion)
    })

    it('leaves a revision that another process brought in force, where the object has faults by now', async () => {
      await declare(hub, 'disks')
      const first = await start()
      await until(() => expect(first.catalog.source(id('disks'))).toBeDefined())
      await managers.splice(0)[0]?.stop()
      await declare(hub, 'disks', aFaultySpec())
      const good = first.catalog.source(id('disks'))
      await start({ catalog: first.catalog }, first.fleet)
      await until(async () =>
        expect((await statusOf(hub, 'disks')).message).toMatch(/the revision before stays in force$/),
      )
      expect(first.catalog.source(id('disks'))).toBe(good)
    })

    it('takes a new object of an old name for another one: nothing of the old stays', async () => {
      const { catalog, fleet, manager } = await start()
      await declare(hub, 'disks')
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      await fleet.tell('east', id('disks'), { rows: 1 }, catalog)
      await manager.stop()
      // It came into force before the new object was made.
      await catalog.resync([{ ...catalog.sources()[0]?.definition, compiledAt: '2020-01-01T00:00:00Z', hash: 'old' }])
      await undeclare(hub, 'disks')
      await declare(hub, 'disks', aFaultySpec())
      await start({ catalog }, fleet)
      await until(async () => expect((await statusOf(hub, 'disks')).message).toMatch(/nothing is in force$/))
      expect(catalog.source(id('disks'))).toBeUndefined()
    })

    it('puts a status right that somebody else wrote', async () => {
      await start()
      await declare(hub, 'disks')
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      const right = await statusOf(hub, 'disks')
      const wrong = { status: { phase: 'Disabled', conditions: [] } }
      const key = { name: 'disks', namespace: NAMESPACE }
      await hub.kube.patch(metricSourceResource, key, wrong, { kind: 'merge', subresource: 'status' })
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
      const types = ({ conditions = [] }: typeof right) => conditions.map(({ type, status }) => `${type} ${status}`)
      expect(types(await statusOf(hub, 'disks'))).toEqual(types(right))
    })

    it('writes everything again when the store lost its memory', async () => {
      const { catalog } = await start()
      await declare(hub, 'disks')
      await declare(hub, 'others', aSpec({ rbac: { resourceTypeName: 'other' } }))
      await until(() => expect(catalog.sources()).toHaveLength(2))
      await catalog.resync([])
      catalog.lose()
      await until(() => expect(catalog.sources()).toHaveLength(2))
    })

    it('says that the store is away, and stores it when that is back', async () => {
      const { catalog } = await start()
      await declare(hub, 'disks')
      await until(() => expect(catalog.source(id('disks'))).toBeDefined())
      catalog.isBroken = true
      await declare(hub, 'disks', aSpec({ rbac: { resourceTypeName: 'disk' } }))
      await until(async () => {
        const status = await statusOf(hub, 'disks')
        expect(status).toMatchObject({ phase: 'Error', message: expect.stringContaining('it is broken') })
        expect(conditionOf(status, 'Ready')).toMatchObject({ status: 'False', reason: 'StoreUnavailable' })
      })
      catalog.isBroken = false
      await until(() => expect(catalog.ofType('disk')).toBeDefined())
      await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))
    })

    it('tells the later of two sources with one type name, until that ends', async () => {
      const { catalog } = await start({ lookEveryMs: 60_000 })
      await declare(hub, 'b-disks')
      await until(async () => expect((await statusOf(hub, 'b-disks')).phase).toBe('Pending'))
      expect(conditionOf(await statusOf(hub, 'b-disks'), 'TypeNameTaken')).toBeUndefined()
      await declare(hub, 'a-disks')
      await until(async () => {
        const status = await statusOf(hub, 'b-disks')
        expect(conditionOf(status, 'TypeNameTaken')).toMatchObject({ status: 'True', reason: 'DuplicateTypeName' })
        expect(status.message).toContain(`the type name pvc means the rows of ${id('a-disks')}`)
        expect(status.phase).toBe('Pending')
      })
      expect(conditionOf(await statusOf(hub, 'a-disks'), 'TypeNameTaken')).toBeUndefined()
      await undeclare(hub, 'a-disks')
      await until(async () => expect(conditionOf(await statusOf(hub, 'b-disks'), 'TypeNameTaken')).toBeUndefined())
      expect(catalog.ofType('pvc')?.id).toBe(id('b-disks'))
    })

    it('looks at no object in another namespace', async () => {
      const { catalog } = await start()
      await declare(hub, 'disks', aSpec(), 'elsewhere')
      await declare(hub, 'disks')
      await until(() => expect(catalog.sources()).toHaveLength(1))
      expect(catalog.sources()[0]?.id).toBe(id('disks'))
      await undeclare(hub, 'disks', 'elsewhere')
    })

    it('takes every shipped example without a warning', async () => {
      const { catalog } = await start()
      const files = (await readdir(EXAMPLES)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
      expect(files.length).toBeGreaterThanOrEqual(7)
      const names: string[] = []
      for (const file of files) {
        const { metadata, spec } = parse(await readFile(new URL(file, EXAMPLES), 'utf8'))
        names.push(metadata.name)
        await declare(hub, metadata.name, spec as MetricSourceSpec)
      }
      await until(async () => {
        for (const name of names)
          expect(conditionOf(await statusOf(hub, name), 'Valid')).toMatchObject({ status: 'True', reason: 'Compiled' })
      })
      expect(catalog.sources().map((source) => source.name)).toEqual(names.sort())
    })
  })
}

it('removes what the object before it collected where another one has its name by now', async () => {
  await using hub = await anEmbeddedHub()
  const fleet = new TestFleet('east')
  const catalog = new MemoryCatalog()
  const key = { name: 'disks', namespace: NAMESPACE }
  let object = { metadata: { ...key, uid: 'one', generation: 1 }, spec: aSpec() }
  const reconciler = new SourceReconciler({
    ...{ hub: hub.kube, catalog, state: fleet, ingester: fleet, logger: silentLogger, clock: systemClock },
    objects: { get: () => object, list: () => [object] },
    ...{ random: Math.random, resyncEveryMs: 60_000, lookEveryMs: 1_000, enqueue: () => undefined },
  })
  const look = async () => {
    await reconciler.reconcile(everything(NAMESPACE), new AbortController().signal)
    await reconciler.reconcile(key, new AbortController().signal)
  }
  await look()
  await fleet.tell('east', id('disks'), { rows: 1 }, catalog)
  object = { metadata: { ...key, uid: 'two', generation: 1 }, spec: aFaultySpec() }
  fleet.availabilityNow = { state: 'loading' }
  await look()
  await look()
  expect(fleet.asked).toBe(0)
  fleet.availabilityNow = { state: 'available' }
  await look()
  expect(fleet.holders(id('disks'))).toEqual([])
  expect(catalog.sources()).toEqual([])
})

describe('statuses of MetricSources', () => {
  it('are written at once where they say something new, and counts alone at most once a minute', async () => {
    await using hub = await anEmbeddedHub()
    const fleet = new TestFleet('east', 'west')
    const catalog = new MemoryCatalog()
    const metrics = new Metrics()
    let now = Date.parse('2026-05-04T10:00:00Z')
    const controllers = metricSourceReconcilers({
      ...{ hub: hub.kube, namespace: NAMESPACE, catalog, state: fleet, ingester: fleet, logger: silentLogger, metrics },
      lookEveryMs: 20,
      clock: { now: () => now, sleep: (_ms, signal) => soon(signal) },
    })
    const manager = new Manager({ controllers, logger: silentLogger })
    await manager.start()
    await declare(hub, 'disks')
    await until(() => expect(catalog.source(id('disks'))).toBeDefined())
    await fleet.tell('east', id('disks'), { rows: 1, at: now }, catalog)
    await until(async () => expect((await statusOf(hub, 'disks')).resourcesCollected).toBe(1))
    const version = async () =>
      (await hub.kube.get(metricSourceResource, { name: 'disks', namespace: NAMESPACE }))?.metadata.resourceVersion
    const written = await version()
    now += 30_000
    await fleet.tell('east', id('disks'), { rows: 2, at: now }, catalog)
    // Something new is said of another source meanwhile: looks were taken in between.
    await declare(hub, 'others', aSpec({ rbac: { resourceTypeName: 'other' } }))
    await until(async () => expect((await statusOf(hub, 'others')).phase).toBe('Pending'))
    expect(await version()).toBe(written)
    const since = conditionOf(await statusOf(hub, 'disks'), 'Collected')?.lastTransitionTime
    now += 31_000
    await until(async () => expect((await statusOf(hub, 'disks')).resourcesCollected).toBe(2))
    expect(conditionOf(await statusOf(hub, 'disks'), 'Collected')?.lastTransitionTime).toBe(since)
    const forbidden = { outcome: 'forbidden', code: 'kube_forbidden', message: 'may not list', at: now } as const
    await fleet.tell('west', id('disks'), forbidden, catalog)
    await until(async () => {
      const status = await statusOf(hub, 'disks')
      expect(status).toMatchObject({
        phase: 'Degraded',
        errorsLastRun: 1,
        clustersCollected: 1,
        message: 'Collected with 1 error, first on west: may not list',
      })
      expect(status.clusters?.[0]).toEqual({
        ...{
          name: 'west',
          collected: false,
          resources: 0,
          errors: 1,
          reason: 'kube_forbidden',
          message: 'may not list',
        },
      })
      expect(conditionOf(status, 'Collected')).toMatchObject({
        ...{ status: 'False', reason: 'PartlyCollected', message: 'west: may not list' },
        lastTransitionTime: '2026-05-04T10:01:01Z',
      })
      expect(conditionOf(status, 'Ready')?.status).toBe('True')
    })
    expect(await metrics.registry.metrics()).toMatch(/sources{phase="Degraded"} 1\n.*sources{phase="Pending"} 1/)
    await manager.stop()
  })

  it('names the right that an agent lacks and who can give it, as long as the agent is refused', async () => {
    await using hub = await anEmbeddedHub()
    const message = 'grant "get, list persistentvolumeclaims" to it'
    const asked: unknown[] = []
    const refusalOf = (cluster: string, { group, kind }: { group: string; kind: string }) => {
      asked.push([group, kind])
      return cluster === 'west' ? message : undefined
    }
    const fleet = new TestFleet('east', 'west', 'other')
    const catalog = new MemoryCatalog()
    const controllers = metricSourceReconcilers({
      ...{ hub: hub.kube, namespace: NAMESPACE, catalog, state: fleet, ingester: fleet, events: fleet.events },
      agentRoles: { refusalOf },
      logger: silentLogger,
      lookEveryMs: 100,
    })
    const manager = new Manager({ controllers, logger: silentLogger })
    await manager.start()
    await declare(hub, 'disks')
    await until(() => expect(catalog.source(id('disks'))).toBeDefined())
    const forbidden = { outcome: 'forbidden', code: 'kube_forbidden', message: 'may not list' } as const
    await fleet.tell('east', id('disks'), { rows: 1 }, catalog)
    for (const name of ['west', 'other']) await fleet.tell(name, id('disks'), forbidden, catalog)
    await until(async () => {
      const status = await statusOf(hub, 'disks')
      expect(status).toMatchObject({ phase: 'Degraded', errorsLastRun: 2 })
      expect(status.clusters?.map(({ name, reason }) => `${name} ${reason}`)).toEqual([
        'other kube_forbidden',
        'west role_not_granted',
        'east undefined',
      ])
      expect(conditionOf(status, 'Collected')?.message).toBe(`other: may not list; west: ${message}`)
    })
    expect(asked[0]).toEqual(['', 'PersistentVolumeClaim'])
    // What was known of the role a moment ago says nothing of a cluster that was read.
    for (const name of ['west', 'other']) await fleet.tell(name, id('disks'), { rows: 1 }, catalog)
    await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Active'))
    expect(JSON.stringify((await statusOf(hub, 'disks')).clusters)).not.toContain('grant')
    await manager.stop()
  })
})

const soon = (signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 20)
    const stop = () => {
      clearTimeout(timer)
      resolve()
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
