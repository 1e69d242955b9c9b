import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Row } from '#extract'
import { comparePositions, type Receipt, type Writing } from '../index.ts'
import { aRow, deliveryOf, writingOf } from '../testing/delivery.ts'
import { onPostgres, postgresMissing, startPostgres, type TestPostgres } from '../testing/postgres-server.ts'
import type { PostgresSink } from './index.ts'
import { aPlace, type Place } from './testing/places.ts'

const signal = new AbortController().signal
const seconds = (n: number) => n * 1000
/** as the sink has it */
const SILENCE_MS = seconds(90)
/** between two exports of a binding to which nothing happens, and between two times that it says that it lives */
const BEAT_MS = seconds(30)
/** what was refused is tried ever more rarely: first and last pause of a binding, at their longest */
const [FIRST_RETRY_MS, LAST_RETRY_MS] = [seconds(10), seconds(300)]

/** How agents call their clusters: each otherwise, as those of a cluster and a copy of it, or not at all. */
type Names = 'own' | 'copied' | 'unknown'

/** One of several clusters that are all called west: its own rows, and the agent that runs there, if one does. */
interface Cluster {
  readonly id: number
  readonly rows: Map<string, Row>
  agent:
    | {
        readonly sink: PostgresSink
        epoch: number
        sequence: number
        isPaused: boolean
        refused: number
        retryAt: number
      }
    | undefined
  /** when it spoke last, in the time of the world; undefined: not since it said goodbye */
  heardAt: number | undefined
  last: Receipt | undefined
}

/** Clusters under one name that write the same inventory to the same tables, in a time that only goes on when it is told to. */
class World {
  readonly #place: Place
  readonly #writing: Writing
  readonly #clusters: readonly Cluster[]
  readonly #opened: PostgresSink[] = []
  #epoch = 0
  #now = 0
  #rows = 0
  readonly #backsOff: boolean
  readonly #names: Names

  /** @param options.backsOff what was refused is tried more and more rarely, as bindings do; else every 30 s */
  constructor(
    place: Place,
    writing: Writing,
    clusters: number,
    { backsOff = false, names = 'own' }: { readonly backsOff?: boolean; readonly names?: Names } = {},
  ) {
    this.#place = place
    this.#backsOff = backsOff
    this.#names = names
    this.#writing = writing
    this.#clusters = Array.from({ length: clusters }, (_, id) => ({
      ...{ id, rows: new Map(), agent: undefined, heardAt: undefined, last: undefined },
    }))
    for (const { id } of this.#clusters) for (let n = 0; n < 2; n++) this.#add(id)
  }

  async start(id: number): Promise<void> {
    const cluster = this.#of(id)
    const home = { own: `in cluster uid-${id}`, copied: 'in cluster uid', unknown: 'at https://10.0.0.1' }[this.#names]
    const sink = this.#place.sink('west', { writer: `agent-${++this.#epoch} ${home}` })
    this.#opened.push(sink)
    cluster.agent = { sink, epoch: this.#epoch * 1000, sequence: 0, isPaused: false, refused: 0, retryAt: 0 }
    await this.export(id)
  }

  /** As a process that gets SIGTERM. */
  async goodbye(id: number): Promise<void> {
    const cluster = this.#of(id)
    const { agent } = cluster
    cluster.agent = undefined
    if (agent?.isPaused === false) cluster.heardAt = undefined
    if (agent?.isPaused === false) await agent.sink[Symbol.asyncDispose]()
  }

  /** As by kill -9. */
  kill(id: number): void {
    this.#of(id).agent = undefined
  }

  pause(id: number, isPaused: boolean): void {
    const { agent } = this.#of(id)
    if (agent) agent.isPaused = isPaused
  }

  /** One row of a cluster goes, another one comes. */
  async change(id: number): Promise<void> {
    const { rows, agent } = this.#of(id)
    const [oldest] = rows.keys()
    if (oldest !== undefined) rows.delete(oldest)
    this.#add(id)
    if (agent?.isPaused === false) await this.#goOn(id)
  }

  /** Whoever runs exports every 30 s, or says that it lives. */
  async wait(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= BEAT_MS) {
      await this.#place.pass(Math.min(left, BEAT_MS))
      this.#now += Math.min(left, BEAT_MS)
      for (const { id, agent } of this.#clusters) if (agent?.isPaused === false) await this.#goOn(id)
    }
  }

  /** Tries again what was refused when it is time to. */
  async #goOn(id: number): Promise<void> {
    const cluster = this.#of(id)
    const { agent } = cluster
    if (!agent) return
    const conflict = await agent.sink.alive(this.#writing, BigInt(agent.epoch), signal)
    const isNews = (conflict === undefined) !== (cluster.last?.conflict === undefined)
    if (!this.#backsOff || this.#now >= agent.retryAt || isNews) await this.export(id)
    cluster.heardAt = this.#now
  }

  /** Exports what a cluster has, as a binding does, and looks at what became of the rows of the others. */
  async export(id: number): Promise<Receipt> {
    const cluster = this.#of(id)
    const { agent } = cluster
    if (!agent) throw new Error('nobody runs there')
    const before = await this.held()
    let receipt: Receipt
    for (let tries = 0; ; tries++) {
      const position = { epoch: BigInt(agent.epoch), sequence: BigInt(++agent.sequence) }
      receipt = await agent.sink.deliver(deliveryOf(this.#writing, position, [...cluster.rows.values()]), signal)
      const isOvertaken = receipt.conflict === undefined && comparePositions(receipt.position, position) > 0
      if (!isOvertaken || tries > 2) break
      agent.epoch = Number(receipt.position.epoch) + 1
    }
    cluster.heardAt = this.#now
    cluster.last = receipt
    agent.refused = receipt.conflict === undefined ? 0 : agent.refused + 1
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** (agent.refused - 1), LAST_RETRY_MS)
    agent.retryAt = agent.refused === 0 ? this.#now : this.#now + pauseMs
    const after = new Set(await this.held())
    const lost = before.filter((uid) => !after.has(uid) && this.#isOfAnotherThatLives(uid, id))
    expect(lost, `deleted by ${id} at ${this.#now / 1000} s`).toEqual([])
    return receipt
  }

  conflictOf(id: number): string | undefined {
    return this.#of(id).last?.conflict
  }

  uids(id: number): string[] {
    return [...this.#of(id).rows.keys()].sort()
  }

  async held(): Promise<string[]> {
    return (await this.#place.read(this.#writing)).map(({ uid }) => uid).sort()
  }

  async end(): Promise<void> {
    for (const sink of this.#opened) await sink[Symbol.asyncDispose]()
  }

  #isOfAnotherThatLives(uid: string, id: number): boolean {
    return this.#clusters.some(
      ({ id: other, rows, heardAt }) =>
        other !== id && rows.has(uid) && heardAt !== undefined && this.#now - heardAt < SILENCE_MS,
    )
  }

  #add(id: number): void {
    const row = aRow(id * 1000 + this.#rows++)
    this.#of(id).rows.set(row.uid, row)
  }

  #of(id: number): Cluster {
    const cluster = this.#clusters[id]
    if (!cluster) throw new Error(`there is no cluster ${id}`)
    return cluster
  }
}

let worlds = 0

describe.skipIf(postgresMissing !== undefined)(onPostgres('clusters under one name in PostgreSQL'), () => {
  let server: TestPostgres
  let place: Place
  beforeAll(async () => {
    server = await startPostgres()
    place = await aPlace(server)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const aWorld = (clusters: number, options?: { readonly backsOff?: boolean; readonly names?: Names }) =>
    new World(place, writingOf('west', `inventory-${++worlds}`), clusters, options)
  let world: World
  const [west, east, south] = [0, 1, 2]
  beforeEach(() => {
    world = aWorld(3)
    const { end } = world
    onTestFinished(() => end.call(world))
  })

  /** West wrote first, east came later, and both were heard for so long that both are stopped. */
  async function inConflict(): Promise<string[]> {
    await world.start(west)
    await world.wait(seconds(60))
    await world.start(east)
    await world.wait(seconds(150))
    expect(world.conflictOf(west)).toContain('it started later')
    expect(world.conflictOf(east)).toContain('both are stopped')
    const rows = await world.held()
    expect(rows).toEqual([...world.uids(west), ...world.uids(east)].sort())
    return rows
  }

  it.each([
    ['the later one is ended and starts anew', () => world.goodbye(east), east],
    ['the first one is ended and starts anew', () => world.goodbye(west), west],
    ['the later one is killed and starts anew', () => world.kill(east), east],
    ['the first one is killed and starts anew', () => world.kill(west), west],
  ])('delete nothing of each other while both are there: %s', async (_, end, id) => {
    const rows = await inConflict()
    for (let times = 0; times < 3; times++) {
      await end()
      await world.wait(seconds(5))
      await world.start(id)
      await world.wait(seconds(45))
      expect(await world.held()).toEqual(rows)
    }
    await world.wait(seconds(1200))
    expect(world.conflictOf(id)).toContain('both are stopped')
    expect(await world.held()).toEqual(rows)
  })

  it('are both stopped at once again after the later one was ended: its goodbye says nothing of the other', async () => {
    await inConflict()
    await world.goodbye(east)
    await world.start(east)
    expect(world.conflictOf(east)).toContain('both are stopped')
  })

  it('delete nothing where both start anew', async () => {
    const rows = await inConflict()
    for (const first of [west, east]) {
      const [one, other] = first === west ? [west, east] : [east, west]
      await world.goodbye(one)
      await world.goodbye(other)
      await world.start(one)
      await world.wait(seconds(30))
      await world.start(other)
      await world.wait(seconds(240))
      expect(await world.held()).toEqual(rows)
    }
  })

  it.each([
    ['the first', west, east],
    ['the later', east, west],
  ])('delete nothing of %s while it stands still for 100 s, or for ten minutes', async (_, one, other) => {
    const rows = await inConflict()
    for (const ms of [seconds(100), seconds(600)]) {
      world.pause(one, true)
      await world.wait(ms)
      await world.kill(other)
      await world.start(other)
      await world.wait(seconds(30))
      world.pause(one, false)
      await world.wait(seconds(120))
      expect(await world.held()).toEqual(rows)
    }
  })

  it('delete nothing of one that the former later one had not heard yet', async () => {
    await world.start(west)
    await world.wait(seconds(30))
    await world.start(east)
    await world.goodbye(east)
    await world.start(east)
    expect(await world.held()).toEqual([...world.uids(west), ...world.uids(east)].sort())
  })

  it('delete nothing of a third one when one of two that are refused is ended', async () => {
    await world.start(west)
    await world.start(east)
    await world.wait(seconds(120))
    await world.start(south)
    await world.wait(seconds(240))
    const rows = await world.held()
    world.pause(west, true)
    await world.wait(seconds(60))
    await world.goodbye(east)
    await world.wait(seconds(300))
    await world.goodbye(south)
    await world.start(south)
    await world.wait(seconds(60))
    world.pause(west, false)
    await world.wait(seconds(120))
    expect(await world.held()).toEqual(expect.arrayContaining(rows.filter((uid) => world.uids(west).includes(uid))))
  })

  it.each([
    ['the first goes on when the later one is ended', east, west],
    ['the later one goes on when the first is ended', west, east],
  ])('%s, and deletes 90 s later', async (_, ended, left) => {
    const rows = await inConflict()
    await world.goodbye(ended)
    await world.wait(seconds(60))
    expect(world.conflictOf(left)).toBeUndefined()
    expect(await world.held()).toEqual(rows)
    await world.wait(seconds(90))
    expect(await world.held()).toEqual(world.uids(left))
  })

  it.each([
    ['the first goes on', east, west],
    ['the later one goes on', west, east],
  ])('%s when the other was silent for 15 minutes', async (_, killed, left) => {
    await inConflict()
    world.kill(killed)
    await world.wait(seconds(13 * 60))
    expect(world.conflictOf(left)).toBeDefined()
    await world.wait(seconds(5 * 60))
    expect(await world.held()).toEqual(world.uids(left))
  })

  it.each([
    ['the first', west, east],
    ['the later', east, west],
  ])(
    '%s, killed and started anew meanwhile, goes on when the other is ended, and deletes 90 s later',
    async (_, left, ended) => {
      await inConflict()
      for (const id of [left, ended]) await world.goodbye(id).then(() => world.start(id))
      await world.wait(seconds(30))
      world.kill(left)
      await world.start(left)
      await world.wait(seconds(90))
      expect(world.conflictOf(left)).toContain(`in cluster uid-${ended} writes`)
      expect(world.conflictOf(ended)).toContain(`in cluster uid-${left} writes`)
      const rows = await world.held()
      await world.goodbye(ended)
      await world.wait(seconds(30))
      expect(world.conflictOf(left)).toBeUndefined()
      expect(await world.held()).toEqual(rows)
      await world.wait(seconds(120))
      expect(await world.held()).toEqual(world.uids(left))
    },
  )

  it.each([
    ['the first', west, east],
    ['the later', east, west],
  ])(
    '%s goes on within 30 s of the silence of 15 minutes, and is told of the other as soon',
    async (_, left, killed) => {
      const one = aWorld(2, { backsOff: true })
      onTestFinished(() => one.end())
      await one.start(west)
      await one.wait(seconds(60))
      await one.start(east)
      await one.wait(seconds(1200))
      one.kill(killed)
      await one.wait(seconds(870))
      expect(one.conflictOf(left)).toBeDefined()
      await one.wait(seconds(60))
      expect(one.conflictOf(left)).toBeUndefined()
      expect(await one.held()).toEqual(one.uids(left))
      await one.start(killed)
      await one.wait(seconds(120))
      for (const id of [west, east]) expect(one.conflictOf(id)).toBeDefined()
      await one.goodbye(killed).then(() => one.start(killed))
      await one.wait(seconds(30))
      for (const id of [west, east]) expect(one.conflictOf(id)).toBeDefined()
    },
  )

  it.each([
    ['the first', () => [west, east, west, west]],
    ['the later', () => [east, west, east, east]],
  ])(
    'delete nothing when they are ended and started one after the other through hours of conflict: %s',
    async (_, order) => {
      const one = aWorld(2, { backsOff: true })
      onTestFinished(() => one.end())
      await one.start(west)
      await one.wait(seconds(60))
      await one.start(east)
      await one.wait(seconds(1200))
      const rows = await one.held()
      for (const id of order()) {
        await one.goodbye(id)
        await one.wait(seconds(5))
        await one.start(id)
        await one.wait(seconds(1800))
        expect(await one.held()).toEqual(rows)
      }
    },
  )

  it('loses no row of one that lives, in any order of starts, goodbyes, kills and pauses', { timeout: 300_000 }, () => {
    const id = fc.integer({ min: 0, max: 2 })
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('start' as const), id }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('goodbye' as const, 'kill' as const), id }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const), id }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('change' as const), id }) },
      { weight: 4, arbitrary: fc.constantFrom(5, 30, 90, 120, 240, 1200).map((s) => ({ do: 'wait' as const, id: s })) },
    )
    return fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 3 }),
        fc.boolean(),
        fc.constantFrom<Names>('own', 'own', 'copied', 'unknown'),
        fc.array(step, { minLength: 5, maxLength: 24 }),
        (count, backsOff, names, steps) => through(aWorld(count, { backsOff, names }), { count, names }, steps),
      ),
      { numRuns: 160 },
    )
  })

  async function through(
    one: World,
    { count, names }: { readonly count: number; readonly names: Names },
    steps: readonly { readonly do: string; readonly id: number }[],
  ) {
    try {
      for (const { do: what, id: n } of steps) {
        const id = n % count
        if (what === 'start') await one.goodbye(id).then(() => one.start(id))
        else if (what === 'goodbye') await one.goodbye(id)
        else if (what === 'kill') one.kill(id)
        else if (what === 'pause' || what === 'resume') one.pause(id, what === 'pause')
        else if (what === 'change') await one.change(id)
        else await one.wait(seconds(n))
      }
      // The one that is left in the end has the tables to itself.
      await one.goodbye(0).then(() => one.start(0))
      for (let id = 1; id < count; id++) {
        // A former start of it may have been killed: nobody else can tell that it is gone before it is there again.
        if (names === 'own') await one.goodbye(id).then(() => one.start(id))
        await one.goodbye(id)
      }
      if (names === 'own') {
        await one.wait(seconds(30))
        expect(one.conflictOf(0)).toBeUndefined()
        await one.wait(seconds(120))
      } else await one.wait(seconds(17 * 60))
      expect(await one.held()).toEqual(one.uids(0))
    } finally {
      await one.end()
    }
  }
})
