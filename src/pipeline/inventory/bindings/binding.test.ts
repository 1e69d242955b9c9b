import { afterEach, describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { minutes, seconds } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { comparePositions, SinkError, type SinkObject, type SinkPool } from '#sinks'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { ExportMetrics } from '../metrics.ts'
import { RowStore } from '../store/index.ts'
import { MemoryPlace, memoryPool } from '../testing/memory-sink.ts'
import { InventoryRun, type InventoryRunOptions } from './inventory-run.ts'
import { type BindingPlan, planBindings } from './plan.ts'
import { SinkHealth } from './sink-health.ts'

const TARGET = { namespace: 'team-a', name: 'apps' }
const WRITING = { cluster: 'west', namespace: 'team-a', inventory: 'apps' }

const aRow = (name: string, value: unknown = 1): Row => ({
  targetNamespace: 'team-a',
  targetName: 'apps',
  namespace: 'team-a',
  name,
  version: 'v1',
  kind: 'Pod',
  uid: `uid-${name}`,
  attributes: { value },
})

const aSink = (name: string, identity = `id-${name}`) => ({
  identity,
  object: {
    family: 'database',
    uid: `uid-of-${name}-${identity}`,
    declaration: { namespace: 'team-a', name, cluster: 'west', credentials: {}, spec: { type: 'postgres' } },
  } as unknown as SinkObject, // of the spec only the type is looked at
})

const aPlan = (name: string, more: Partial<BindingPlan> = {}): BindingPlan => ({
  name: `database/${name}`,
  family: 'database',
  namespace: 'team-a',
  sinkName: name,
  pace: { windowMs: 0, heartbeatMs: undefined },
  maxPartBytes: 1000,
  deletionPolicy: 'Delete',
  target: { kind: 'ready', sink: aSink(name) },
  ...more,
})

describe('bindings of an inventory', () => {
  const clock = new ManualClock()
  const ends: (() => PromiseLike<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  class World {
    readonly places = { one: new MemoryPlace(() => clock.now()), two: new MemoryPlace(() => clock.now()) }
    readonly pool: SinkPool = memoryPool(this.places)
    readonly run: InventoryRun
    readonly store = new RowStore(() => this.run.changed())
    readonly rows = this.store.target(TARGET)
    readonly metrics = new Metrics({}, { processMetrics: false })

    constructor(more: Partial<InventoryRunOptions> = {}) {
      this.run = new InventoryRun({
        namespace: 'team-a',
        name: 'apps',
        epoch: 1n,
        store: this.store,
        seeds: new Map(),
        pool: this.pool,
        health: new SinkHealth({ logger: silentLogger, now: () => clock.now(), onDoubt: () => undefined }),
        metrics: new ExportMetrics(this.metrics, () => []),
        logger: silentLogger,
        clock,
        now: () => clock.now(),
        random: () => 0.5,
        onChange: () => undefined,
        ...more,
      })
      ends.push(
        () => this.run[Symbol.asyncDispose](),
        () => this.pool[Symbol.asyncDispose](),
      )
    }

    follow(...bindings: BindingPlan[]) {
      this.run.follow({
        generation: 1,
        composition: { targets: [TARGET], onceEach: false },
        bindings,
        isSuspended: false,
      })
    }

    views() {
      return Object.fromEntries(this.run.bindings.map((binding) => [binding.view().name, binding.view()]))
    }
  }

  it('export nothing before everything was read, then all of it', async () => {
    const world = new World()
    world.rows.put([aRow('a'), aRow('b')])
    world.follow(aPlan('one'))
    await clock.advance(seconds(60))
    expect(world.places.one.attempts).toBe(0)
    expect(world.views()['database/one']?.state).toBe('pending')
    world.rows.setComplete(true)
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a', 'b'])
    expect(world.places.one.taken[0]?.delivery).toMatchObject({
      complete: true,
      itemCount: 2,
      writing: WRITING,
      generation: 1,
    })
  })

  it('export what is known once every list was read, though one object is bad, and delete nothing until all is known', async () => {
    const world = new World()
    world.follow(aPlan('one'))
    world.rows.put([aRow('a'), aRow('b')])
    world.rows.setComplete(true)
    await clock.advance(1)
    await world.run[Symbol.asyncDispose]()

    // After a restart: `a` is bad, `b` changed, `c` is new.
    const again = new World({ epoch: 2n })
    again.places.one.held.set('west/team-a/apps', world.places.one.held.get('west/team-a/apps') as never) // of the same form
    again.follow(aPlan('one'))
    again.rows.put([aRow('b', 2), aRow('c')])
    again.rows.setComplete(false, true)
    await clock.advance(seconds(60))
    expect(again.places.one.attempts).toBe(0)
    again.rows.setComplete(false, true, true)
    await clock.advance(1)
    expect(again.places.one.taken.map(({ delivery }) => delivery.complete)).toEqual([false])
    expect(
      again.places.one
        .rowsOf(WRITING)
        .map(({ name, attributes }) => `${name}${attributes.value}`)
        .sort(),
    ).toEqual([...['a1', 'b2', 'c1']])
    again.rows.setComplete(true)
    await clock.advance(1)
    expect(again.places.one.namesOf(WRITING)).toEqual(['b', 'c'])
  })

  it('tell a sink that has the last snapshot what differs, and write 1 % for a change of 1 %', async () => {
    const world = new World()
    world.rows.put(Array.from({ length: 1000 }, (_, at) => aRow(String(at))))
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.rows.put(Array.from({ length: 10 }, (_, at) => aRow(String(at), 2)))
    world.rows.remove([aRow('999')])
    await clock.advance(1)
    const last = world.places.one.taken.at(-1)
    expect(last).toMatchObject({ byChanges: true, written: 10, removed: 1 })
    expect(world.places.one.rowsOf(WRITING)).toHaveLength(999)
  })

  it('delete nothing while a target is incomplete, and what is gone once it is complete', async () => {
    const world = new World()
    world.rows.put([aRow('a'), aRow('b'), aRow('c')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.rows.setComplete(false)
    world.rows.replace([aRow('c', 2), aRow('d')])
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a', 'b', 'c', 'd'])
    expect(world.places.one.taken.at(-1)).toMatchObject({ written: 2, removed: 0 })
    world.rows.put([aRow('b')])
    world.rows.setComplete(true)
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['b', 'c', 'd'])
    expect(world.places.one.taken.at(-1)).toMatchObject({ byChanges: true, removed: 1 })
    const { written, removed } = world.places.one.taken.at(-1) ?? {}
    expect([written, removed]).toEqual([1, 1])
  })

  it('do not wait for each other: one that hangs keeps no other from its rows', async () => {
    const world = new World()
    world.places.one.trouble = 'hang'
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'), aPlan('two'))
    await clock.advance(1)
    for (const name of ['b', 'c']) {
      world.rows.put([aRow(name)])
      await clock.advance(seconds(1))
    }
    expect(world.places.two.namesOf(WRITING)).toEqual(['a', 'b', 'c'])
    expect(world.places.one.taken).toEqual([])
    const [one, two] = world.run.bindings
    expect(one?.lagMs).toBeGreaterThanOrEqual(seconds(2))
    expect(two?.lagMs).toBe(0)
  })

  it('give a sink that was away for an hour the latest, once, and lose nothing', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'), aPlan('two'))
    await clock.advance(1)
    world.places.one.trouble = 'transient'
    for (let minute = 0; minute < 60; minute++) {
      world.rows.put([aRow(`m${minute}`)])
      await clock.advance(seconds(60))
    }
    expect(world.views()['database/one']).toMatchObject({
      state: 'failing',
      reason: 'Transient',
      errorClass: 'transient',
    })
    expect(world.views()['database/two']).toMatchObject({ state: 'exported' })
    world.places.one.trouble = undefined
    const before = world.places.one.taken.length
    await expect
      .poll(async () => {
        await clock.advance(seconds(300))
        return world.places.one.taken.length
      })
      .toBe(before + 1)
    expect(world.places.one.namesOf(WRITING)).toEqual(world.places.two.namesOf(WRITING))
    expect(world.views()['database/one']?.behindSince).toBeUndefined()
  })

  it('are late a minute after their window, and say when they are not any more', async () => {
    let told = 0
    const world = new World({ onChange: () => told++ })
    const pace = { windowMs: seconds(60), heartbeatMs: undefined }
    world.follow(aPlan('one', { pace }), aPlan('two', { pace }))
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    await clock.advance(1)
    const began = clock.now()
    world.rows.put([aRow('b')])
    expect(world.views()['database/one']).toMatchObject({ behindSince: began, lateAt: began + seconds(120) })
    world.places.one.trouble = 'part'
    await clock.advance(seconds(61))
    expect(world.views()['database/one']).toMatchObject({ behindSince: began })
    expect(world.views()['database/two']).not.toHaveProperty('lateAt')
    world.rows.put([aRow('c')])
    await clock.advance(seconds(120))
    world.places.one.trouble = undefined
    const before = told
    await expect.poll(() => world.places.one.namesOf(WRITING)).toEqual(['a', 'b', 'c'])
    expect(world.views()['database/one']).not.toHaveProperty('behindSince')
    expect(told).toBeGreaterThan(before)
  })

  it('owe over a restart what they owed, until it was found to stand there', async () => {
    const first = new World()
    first.rows.put([aRow('a')])
    first.rows.setComplete(true)
    first.follow(aPlan('one'))
    await clock.advance(1)
    const { lastChecksum = '', lastExportAt = 0, identity = '' } = first.views()['database/one'] ?? {}

    let told = 0
    const behindSince = clock.now() - seconds(3600)
    const exported = { checksum: lastChecksum, at: lastExportAt, identity }
    const seeds = new Map([['database/one', { exported, behindSince }]])
    const world = new World({ seeds, epoch: 2n, onChange: () => told++ })
    world.follow(aPlan('one'))
    world.rows.put([aRow('a')])
    await clock.advance(1)
    expect(world.views()['database/one']).toMatchObject({ state: 'current', behindSince })
    expect(world.run.bindings[0]?.lagMs).toBeGreaterThanOrEqual(seconds(3600))
    expect(told).toBe(0)
    world.rows.setComplete(true)
    await clock.advance(1)
    expect(world.views()['database/one']).not.toHaveProperty('behindSince')
    expect([told, world.places.one.attempts]).toEqual([1, 0])
  })

  it('never write identical content again: not after a flip that a window swallowed, not after a restart', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    const plan = aPlan('one', { pace: { windowMs: seconds(60), heartbeatMs: undefined } })
    world.follow(plan)
    await clock.advance(1)
    world.rows.put([aRow('a', 2)])
    world.rows.put([aRow('a', 1)])
    await clock.advance(seconds(600))
    expect(world.places.one.attempts).toBe(1)

    const { lastChecksum = '', lastExportAt = 0, identity = '' } = world.views()['database/one'] ?? {}
    const seeds = new Map([['database/one', { exported: { checksum: lastChecksum, at: lastExportAt, identity } }]])
    const again = new World({ seeds, epoch: 2n })
    again.rows.put([aRow('a')])
    again.follow(plan)
    await clock.advance(1)
    again.rows.setComplete(true)
    await clock.advance(seconds(600))
    expect(again.places.one.attempts).toBe(0)
    expect(again.views()['database/one']?.state).toBe('current')
    again.rows.put([aRow('b')])
    await clock.advance(1)
    expect(again.places.one.taken).toHaveLength(1)
    expect(again.places.one.taken[0]?.delivery.position).toEqual({ epoch: 2n, sequence: 1n })
  })

  it('make of 600 changes in 600 s at most 12 exports in a window of 60 s, the last with what is there at the end', async () => {
    const world = new World()
    world.rows.setComplete(true)
    world.follow(aPlan('one', { pace: { windowMs: seconds(60), heartbeatMs: undefined } }))
    for (let at = 1; at <= 600; at++) {
      world.rows.put([aRow('a', at)])
      await clock.advance(seconds(1))
    }
    await clock.advance(seconds(120))
    expect(world.places.one.attempts).toBeLessThanOrEqual(12)
    expect(world.places.one.attempts).toBeGreaterThanOrEqual(10)
    expect(world.places.one.rowsOf(WRITING)).toEqual([aRow('a', 600)])
  })

  it('delete and write nothing after an end between write and status: the sink knows more than the status', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    const { lastChecksum = '', lastExportAt = 0, identity = '' } = world.views()['database/one'] ?? {}
    world.rows.put([aRow('b')])
    await clock.advance(1)
    await world.run[Symbol.asyncDispose]()

    const again = new World({
      seeds: new Map([['database/one', { exported: { checksum: lastChecksum, at: lastExportAt, identity } }]]),
      epoch: 2n,
    })
    for (const [text, held] of world.places.one.held) again.places.one.held.set(text, held)
    again.follow(aPlan('one'))
    for (const name of ['a', 'b']) {
      again.rows.put([aRow(name)])
      await clock.advance(seconds(10))
    }
    expect(again.places.one.attempts).toBe(0)
    again.rows.setComplete(true)
    await clock.advance(1)
    expect(again.places.one.taken.map(({ written, removed }) => [written, removed])).toEqual([[0, 0]])
    expect(again.places.one.namesOf(WRITING)).toEqual(['a', 'b'])
  })

  it('go on at once where a sink took a part, with what is latest, and tell nobody that it has all', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    const plan = aPlan('one', { pace: { windowMs: seconds(60), heartbeatMs: undefined } })
    world.follow(plan)
    await clock.advance(1)
    world.places.one.trouble = 'part'
    world.rows.put([aRow('b')])
    await clock.advance(seconds(61))
    await expect.poll(() => world.places.one.attempts).toBeGreaterThan(3)
    expect(world.run.bindings[0]?.lagMs).toBeGreaterThan(0)
    // What it had at first is not what it has now.
    world.rows.remove([aRow('b')])
    const before = world.places.one.attempts
    await expect.poll(() => world.places.one.attempts).toBeGreaterThan(before + 1)
    world.places.one.trouble = undefined
    await expect.poll(() => world.places.one.taken.length).toBe(2)
    expect(world.places.one.taken.at(-1)?.delivery.changes).toBeUndefined()
    expect(world.places.one.namesOf(WRITING)).toEqual(['a'])
  })

  it('write all anew to a sink that became another one', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.places.one.held.clear()
    world.follow(aPlan('one', { target: { kind: 'ready', sink: aSink('one', 'rotated') } }))
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a'])
    expect(world.places.one.taken.at(-1)?.delivery.changes).toBeUndefined()
  })

  it('go past what the sink holds of a start with a later clock', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.places.one.held.set('west/team-a/apps', { position: { epoch: 77n, sequence: 5n }, rows: new Map() })
    world.follow(aPlan('one'))
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a'])
    expect(world.places.one.taken[0]?.delivery.position.epoch).toBe(78n)
  })

  it('stay behind what other sinks hold where one let them go past it', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'), aPlan('two'))
    await clock.advance(1)
    world.places.one.held.set('west/team-a/apps', { position: { epoch: 77n, sequence: 5n }, rows: new Map() })
    for (const name of ['b', 'c']) {
      world.rows.put([aRow(name)])
      await clock.advance(1)
    }
    const positions = (place: MemoryPlace) => place.taken.map(({ delivery }) => delivery.position)
    expect(positions(world.places.one).map(({ epoch }) => epoch)).toEqual([1n, 78n, 78n])
    expect(positions(world.places.two).map(({ epoch }) => epoch)).toEqual([1n, 1n, 1n])
    for (const place of [world.places.one, world.places.two])
      expect(positions(place)).toEqual(positions(place).toSorted(comparePositions))
  })

  it('say so when another writer has the same identity, and write nothing', async () => {
    const world = new World()
    world.places.one.trouble = 'conflict'
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    expect(world.views()['database/one']).toMatchObject({ state: 'failing', reason: 'WriterConflict' })
    expect(world.places.one.taken).toEqual([])
    expect(await world.metrics.registry.metrics()).toContain('kollect_export_conflicts_total 1')
  })

  it('ask sinks of documents and events now and then whether another writer came, though nothing changes', async () => {
    const spec = { snapshotSinkRefs: ['one'], eventSinkRefs: ['two'] }
    const find = () => ({ kind: 'blocked', blocked: { reason: '', message: '', errorClass: 'terminal' } }) as const
    const plans = planBindings({ spec, namespace: 'team-a', ceilings: [], maxExportBytes: 1, find })
    expect(plans.map(({ pace }) => pace.heartbeatMs)).toEqual([minutes(5), minutes(1)])
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one', { pace: { windowMs: 0, heartbeatMs: minutes(5) } }))
    await clock.advance(1)
    world.places.one.trouble = 'conflict'
    await clock.advance(minutes(5))
    expect(world.views()['database/one']).toMatchObject({ state: 'failing', reason: 'WriterConflict' })
    expect(world.places.one.taken.map(({ delivery }) => delivery.isLook)).toEqual([false])
  })

  it('are held back by the floor of a scope where they are written as a whole, and never where they follow changes', () => {
    const spec = {
      snapshotSinkRefs: ['one', { name: 'quick', snapshotWindow: '1s' }],
      databaseSinkRefs: [{ name: 'two', exportMinInterval: '0s' }],
      eventSinkRefs: ['three'],
    }
    const find = () => ({ kind: 'blocked', blocked: { reason: '', message: '', errorClass: 'terminal' } }) as const
    const ceilings = [
      { name: 'a', minExportInterval: '90s' },
      { name: 'b', minExportInterval: '10s' },
    ]
    const plans = planBindings({ spec, namespace: 'team-a', ceilings, maxExportBytes: 1, find })
    const paces = Object.fromEntries(plans.map(({ name, pace }) => [name, pace]))
    expect(paces).toMatchObject({
      'snapshot/one': { windowMs: 90_000 },
      'snapshot/quick': { windowMs: 90_000 },
      'database/two': { windowMs: 0, heartbeatMs: 90_000 },
      'event/three': { windowMs: 0 },
    })
  })

  it('say in a look that all of it stands there, also while the same is read anew', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    const pace = { windowMs: 0, heartbeatMs: minutes(1) }
    world.follow(aPlan('one', { pace, family: 'event', name: 'event/one' }), aPlan('two', { pace }))
    await clock.advance(1)
    world.rows.setComplete(false)
    await clock.advance(minutes(3))
    const completes = (place: MemoryPlace) => place.taken.map(({ delivery }) => delivery.complete)
    expect(completes(world.places.one)).toEqual([true, true, true, true])
    // Databases keep rows that are gone until all was read.
    expect(completes(world.places.two)).toEqual([true, false, false, false])
  })

  it('say that the sink does not keep what it takes, from the second look that finds it gone', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one', { pace: { windowMs: 0, heartbeatMs: minutes(1) }, family: 'event', name: 'event/one' }))
    await clock.advance(1)
    const reason = () => world.views()['event/one']?.reason
    for (const said of ['Exported', 'WrittenAgain', 'WrittenAgain']) {
      world.places.one.held.clear()
      await clock.advance(minutes(1))
      expect(reason()).toBe(said)
    }
    expect(world.views()['event/one']?.message).toContain('at 3 of its last 3 looks')
    // Where others push it out by turns it is there for a while, and no longer.
    await clock.advance(minutes(2))
    world.places.one.held.clear()
    await clock.advance(minutes(1))
    expect(world.views()['event/one']?.message).toContain('at 4 of its last 6 looks')
    await clock.advance(minutes(3))
    expect(reason()).toBe('WrittenAgain')
    await clock.advance(minutes(1))
    expect(reason()).toBe('Exported')
  })

  it('tell a sink where it kept their documents when it was last written, also after a restart and to one that became another', async () => {
    const seeds = new Map([['database/one', { listedAt: 'old/list' }]])
    const world = new World({ seeds })
    const { one } = world.places
    one.listedAt = 'new/list'
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    expect(one.formerLists).toEqual(['old/list'])
    expect(world.views()['database/one']).toMatchObject({ listedAt: 'new/list' })
    world.follow(aPlan('one', { target: { kind: 'ready', sink: aSink('one', 'another') } }))
    await clock.advance(1)
    expect(one.formerLists).toEqual(['old/list', 'new/list'])
  })

  it('say whom they replaced, for as long as they run', async () => {
    const world = new World()
    world.places.one.replaced = 'in place of what east wrote'
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.places.one.replaced = undefined
    world.rows.put([aRow('b')])
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a', 'b'])
    expect(world.views()['database/one']).toMatchObject({
      ...{ state: 'exported', reason: 'ReplacedWriter', message: 'in place of what east wrote' },
    })
  })

  // A Terminal failure under the old CA kept the mended sink waiting for an hour.
  it('do not take a failure of the sink as it was for one of the sink that it became meanwhile', async () => {
    let fail: (error: Error) => void = () => undefined
    const calls: string[] = []
    const pool = {
      use: (object: SinkObject) => {
        calls.push(object.uid)
        if (calls.length === 1)
          return new Promise((_, reject) => {
            fail = reject
          })
        return Promise.resolve({ position: { epoch: 1n, sequence: 2n }, written: 1, removed: 0, bytes: 0 })
      },
    } as unknown as SinkPool // no more of it is used
    const world = new World({ pool })
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.follow(aPlan('one', { target: { kind: 'ready', sink: aSink('one', 'mended') } }))
    fail(new SinkError('terminal', 'the certificate is not trusted'))
    await clock.advance(1)
    expect(calls).toEqual(['uid-of-one-id-one', 'uid-of-one-mended'])
    expect(world.views()['database/one']).toMatchObject({ state: 'exported' })
  })

  it('wait for deletions exactly as long as the sink says, and hold up nothing else meanwhile', async () => {
    const world = new World()
    const { one } = world.places
    world.rows.put([aRow('a'), aRow('b'), aRow('c')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    one.deletesAt = clock.now() + seconds(90)
    world.rows.remove([aRow('b')])
    await clock.advance(1)
    const message = '1 row that is gone stands there still: somebody may be there'
    expect(world.views()['database/one']).toMatchObject({ state: 'waiting', reason: 'DeletionsWait', message })
    expect(world.views()['database/one']?.lastChecksum).toBeUndefined()
    world.rows.put([aRow('d')])
    await clock.advance(1)
    expect(one.namesOf(WRITING)).toEqual(['a', 'b', 'c', 'd'])
    const { attempts } = one
    await clock.advance(seconds(89))
    expect(one.attempts).toBe(attempts)
    await clock.advance(seconds(1.5))
    expect(one.namesOf(WRITING)).toEqual(['a', 'c', 'd'])
    expect(world.views()['database/one']).toMatchObject({ state: 'exported', lastChecksum: expect.any(String) })
    expect(await world.metrics.registry.metrics()).not.toMatch(/kollect_sink_errors_total\{/)
  })

  it('say how many rows stay until all is read again, and say nothing of it any more then', async () => {
    const said: (string | undefined)[] = []
    const world = new World({ onChange: () => said.push(world.views()['database/one']?.message) })
    world.rows.put([aRow('a'), aRow('b'), aRow('c')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.rows.setComplete(false, true)
    await clock.advance(1)
    expect(world.views()['database/one']).toMatchObject({ state: 'exported' })
    world.rows.remove([aRow('b'), aRow('c')])
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a', 'b', 'c'])
    const message = expect.stringContaining('2 rows that were not read stand there still')
    expect(world.views()['database/one']).toMatchObject({ state: 'waiting', reason: 'DeletionsWait', message })
    expect(said.at(-1)).toEqual(message)
    world.rows.setComplete(true)
    await clock.advance(1)
    expect(world.places.one.namesOf(WRITING)).toEqual(['a'])
    expect(world.views()['database/one']).toMatchObject({ state: 'exported', reason: 'Exported' })
    expect(said.at(-1)).toBe('the sink holds what was exported')
  })

  it('wait no longer for what a sink was spared, and say of it what was met last', async () => {
    let trouble: SinkError | undefined = new SinkError('transient', 'it starts (SQLSTATE 57P01)')
    const triedAt: number[] = []
    const pool = {
      use: () => {
        triedAt.push(clock.now())
        if (trouble) return Promise.reject(trouble)
        return Promise.resolve({ position: { epoch: 1n, sequence: 1n }, written: 1, removed: 0, bytes: 0 })
      },
    } as unknown as SinkPool // no more of it is used
    const world = new World({ pool })
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    trouble = new SinkError('transient', 'it is left alone', { sparedMs: 1000 })
    for (let s = 0; s < 25; s++) await clock.advance(seconds(1))
    expect(world.views()['database/one']).toMatchObject({ state: 'failing', message: 'it starts (SQLSTATE 57P01)' })
    trouble = undefined
    const backAt = clock.now()
    await clock.advance(seconds(4))
    expect(world.views()['database/one']).toMatchObject({ state: 'exported' })
    expect(triedAt.filter((at) => at < backAt).length).toBeLessThan(10)
  })

  it('take away what they wrote when the sink says, where it has to wait', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.places.one.deletesAt = clock.now() + seconds(90)
    world.run.remove({
      generation: 2,
      composition: { targets: [], onceEach: false },
      bindings: [aPlan('one')],
      isSuspended: false,
    })
    await clock.advance(1)
    expect(world.run.bindings[0]?.removal).toMatchObject({ kind: 'waiting', message: 'somebody may be there' })
    await clock.advance(seconds(91))
    expect(world.run.bindings[0]?.removal).toEqual({ kind: 'done' })
    expect(world.places.one.removed).toEqual(['west/team-a/apps'])
  })

  it('give databases a sign of life each interval that holds no row', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one', { pace: { windowMs: 0, heartbeatMs: seconds(30) } }))
    await clock.advance(seconds(95))
    expect(world.places.one.taken.map(({ written, removed }) => [written, removed])).toEqual([
      [1, 0],
      [0, 0],
      [0, 0],
      [0, 0],
    ])
    expect(
      world.places.one.taken.slice(1).every(({ delivery }) => [...(delivery.changes?.put ?? [0])].length === 0),
    ).toBe(true)
  })

  it.each(['conflict', 'terminal', 'forbidden', 'transient', undefined] as const)(
    'tell a database each half minute that they live, whatever comes of exports and without an interval: %s',
    async (trouble) => {
      const world = new World()
      world.places.one.trouble = trouble
      world.rows.put([aRow('a')])
      world.rows.setComplete(true)
      world.follow(aPlan('one'))
      await clock.advance(1)
      const from = clock.now()
      // A sink that fails over and over is left alone for a moment now and then.
      for (let s = 0; s < 1200; s++) await clock.advance(seconds(1))
      const heard = [from, ...world.places.one.heardAt.filter((at) => at > from), clock.now()]
      expect(heard.length).toBeGreaterThan(30)
      expect(Math.max(...heard.slice(1).map((at, i) => at - (heard[i] ?? 0)))).toBeLessThanOrEqual(seconds(45))
    },
  )

  it('tell a database that they live while they are suspended, and no longer than they are there', async () => {
    const world = new World()
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    world.run.follow({
      ...{ generation: 1, composition: { targets: [TARGET], onceEach: false }, bindings: [aPlan('one')] },
      isSuspended: true,
    })
    await clock.advance(seconds(95))
    expect(world.places.one.heardAt).toHaveLength(4)
    await world.run[Symbol.asyncDispose]()
    await clock.advance(seconds(300))
    expect(world.places.one.heardAt).toHaveLength(4)
  })

  it('say within 30 s that somebody else writes there, and export within 30 s when nobody does any more', async () => {
    const world = new World()
    const { one } = world.places
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(seconds(40))
    one.trouble = 'conflict'
    await clock.advance(seconds(30))
    expect(world.views()['database/one']).toMatchObject({ state: 'failing', reason: 'WriterConflict' })
    world.rows.put([aRow('b')])
    await clock.advance(minutes(40))
    expect(one.namesOf(WRITING)).toEqual(['a'])
    one.trouble = undefined
    await clock.advance(seconds(30))
    expect(one.namesOf(WRITING)).toEqual(['a', 'b'])
    expect(world.views()['database/one']?.state).toBe('exported')
  })

  it('owe nothing to a sink that is away while nothing changes, and the change that comes meanwhile', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    world.follow(aPlan('one', { pace: { windowMs: 0, heartbeatMs: seconds(30) } }))
    await clock.advance(seconds(1))
    world.places.one.trouble = 'transient'
    await clock.advance(minutes(20))
    expect(world.views()['database/one']).toMatchObject({ state: 'failing', reason: 'Transient' })
    expect(world.views()['database/one']).not.toHaveProperty('behindSince')
    expect(world.run.bindings[0]?.lagMs).toBe(0)
    const began = clock.now()
    world.rows.put([aRow('b')])
    await clock.advance(minutes(20))
    expect(world.views()['database/one']).toMatchObject({ state: 'failing', behindSince: began })
    // A part of it may stand there: what was before does not count any more.
    world.rows.remove([aRow('b')])
    await clock.advance(minutes(20))
    expect(world.run.bindings[0]?.lagMs).toBeGreaterThan(minutes(39))
    world.places.one.trouble = undefined
    await expect
      .poll(async () => {
        await clock.advance(seconds(60))
        return world.views()['database/one']
      })
      .not.toHaveProperty('behindSince')
    expect(world.places.one.namesOf(WRITING)).toEqual(['a'])
  })

  it('take away what they wrote when the inventory goes, and keep at it', async () => {
    const world = new World()
    world.rows.put([aRow('a')])
    world.rows.setComplete(true)
    const plans = [aPlan('one'), aPlan('two', { deletionPolicy: 'Retain' })]
    world.follow(...plans)
    await clock.advance(1)
    world.places.one.trouble = 'transient'
    world.run.remove({
      generation: 1,
      composition: { targets: [], onceEach: false },
      bindings: plans,
      isSuspended: false,
    })
    await clock.advance(1)
    expect(world.run.bindings.map(({ removal }) => removal.kind)).toEqual(['failed', 'done'])
    world.places.one.trouble = undefined
    await clock.advance(seconds(10))
    expect(world.run.bindings.map(({ removal }) => removal.kind)).toEqual(['done', 'done'])
    expect(world.places.one.removed).toEqual(['west/team-a/apps'])
    expect(world.places.two.namesOf(WRITING)).toEqual(['a'])
  })

  it('end at once with their owner, also in the middle of an export', async () => {
    const world = new World()
    world.places.one.trouble = 'hang'
    world.rows.setComplete(true)
    world.follow(aPlan('one'))
    await clock.advance(1)
    expect(world.places.one.attempts).toBe(1)
    await world.run[Symbol.asyncDispose]()
    expect(world.run.bindings).toEqual([])
  })
})
