import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundled } from '../../../../test/bundled.ts'
import { aRow, at, deliveryOf, rowsTo, writingOf } from '../testing/delivery.ts'
import { onPostgres, postgresMissing, startPostgres, type TestPostgres } from '../testing/postgres-server.ts'
import { aPlace, closed, type Place } from './testing/places.ts'

const source = fileURLToPath(new URL('./testing/deliver-until-killed.ts', import.meta.url))
const signal = new AbortController().signal
const west = writingOf('west')

let server: TestPostgres

describe.skipIf(postgresMissing !== undefined)(onPostgres('many rows in PostgreSQL'), () => {
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const lost = 'loses no row of 10 000 to kill -9 between the first statement and the commit'
  it(`${lost}, three times`, { timeout: 600_000 }, () => killed(3))
  it(`${lost}, twenty times`, { timeout: 600_000, tags: ['long'] }, () => killed(20))

  async function killed(times: number): Promise<void> {
    const place = await aPlace(server)
    const table = `${place.schema}.inventory`
    const before = place.sink('west')
    await before.deliver(deliveryOf(west, at(1, 1), rowsTo(10_000)), signal)
    await before[Symbol.asyncDispose]()
    await using program = await bundled(source)
    for (let kill = 0; kill < times; kill++) {
      const words = [program.path, server.dsn(), place.schema, String(kill + 2)]
      const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'] })
      await inTransaction(server, child)
      await new Promise((resolve) => setTimeout(resolve, (kill * 400) / times))
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      expect(await place.count()).toBe(10_000)
    }
    const rows = Array.from({ length: 10_000 }, (_, n) => aRow(n, { end: true }))
    const sink = place.sink('west')
    await sink.deliver(deliveryOf(west, at(1, 100), rows), signal)
    await sink[Symbol.asyncDispose]()
    expect(await place.read(west)).toHaveLength(10_000)
    await expect.poll(() => idle(server)).toBe(true)
    for (const name of [table, `${table}_claims`]) expect(await server.counts(name)).toMatchObject({ deleted: 0 })
  }

  it('takes a load that lasts in pieces that hold, and writes nothing of it twice, also after a kill', async () => {
    const place = await aPlace(server)
    const table = `${place.schema}.inventory`
    // Every statement of 1000 rows is a piece.
    const sink = place.sink('west', { pieceMs: 0, writer: 'killed' })
    const first = rowsTo(2500)
    expect(await sink.deliver(deliveryOf(west, at(1), first), signal)).toMatchObject({ isPartial: true, written: 1000 })
    expect(await complete(place)).toBe(false)
    const next = closed(place.sink('west', { pieceMs: 0, silenceMs: 0 }))
    expect(await next.deliver(deliveryOf(west, at(1, 2), first), signal)).toMatchObject({
      isPartial: true,
      written: 1000,
    })
    // The same position again is the rest of it.
    const last = await next.deliver(deliveryOf(west, at(1, 2), first), signal)
    expect(last).toMatchObject({ position: at(1, 2), written: 500 })
    expect(last.isPartial).toBeUndefined()
    expect(await complete(place)).toBe(true)
    expect(await server.counts(`${table}_claims`)).toMatchObject({ updated: 0, deleted: 0 })
    const others = Array.from({ length: 1500 }, (_, n) => aRow(n + 2000))
    const changed = others.map((row) => ({ ...row, attributes: { image: 'new' } }))
    expect(await next.deliver(deliveryOf(west, at(2, 2), changed), signal)).toMatchObject({ isPartial: true })
    expect(await complete(place)).toBe(false)
    for (let n = 3; (await next.deliver(deliveryOf(west, at(n, 2), changed), signal)).isPartial; n++);
    expect(await place.read(west)).toHaveLength(1500)
    expect(await complete(place)).toBe(true)
    await next.remove(west, at(99, 2), signal)
    expect(await place.count('inventory_claims')).toBe(0)
    await sink[Symbol.asyncDispose]()
  })

  it('gets through to a database that takes so long for 1000 rows that their statement is ended', {
    tags: ['long'],
  }, async () => {
    const place = await aPlace(server)
    const sink = closed(place.sink('west', { spec: { options: { statement_timeout: '2s' } } }))
    await sink.deliver(deliveryOf(west, at(1), []), signal)
    await server.query(`create function ${place.schema}.slow() returns trigger language plpgsql as
      'begin perform pg_sleep(0.004); return new; end'`)
    await server.query(`create trigger slow before insert on ${place.schema}.inventory_claims
      for each row execute function ${place.schema}.slow()`)
    const rows = rowsTo(1500)
    const said: string[] = []
    const load = async () => {
      for (let n = 2; ; n++)
        try {
          return await sink.deliver(deliveryOf(west, at(n), rows), signal)
        } catch (error) {
          said.push(String(error))
        }
    }
    expect(await load()).toMatchObject({ written: 1500 })
    expect(said.join()).toContain('a statement took longer than its limit')
  })

  it('takes 50 writers of one cluster that see the same objects, at once and without a deadlock', async () => {
    const place = await aPlace(server)
    const sinks = Array.from({ length: 10 }, () => closed(place.sink('west')))
    const inventories = Array.from({ length: 50 }, (_, n) => writingOf('west', `inventory-${n}`))
    for (let round = 1; round <= 2; round++) {
      const answers = await Promise.all(
        inventories.map((writing, n) => {
          const given = rowsTo(60).filter((_, row) => (row * 7 + n + round) % 3 !== 0)
          const rows = given.map((row) => ({ ...row, attributes: { n, round } }))
          return sinks[n % 10]?.deliver(deliveryOf(writing, at(round), n % 2 ? rows.reverse() : rows), signal)
        }),
      )
      expect(answers.map((answer) => answer?.position)).toEqual(inventories.map(() => at(round)))
    }
    const [stats] = await server.query('select deadlocks::int from pg_stat_database where datname = current_database()')
    expect(stats).toEqual({ deadlocks: 0 })
    // Every resource shows its smallest claim, whoever came last.
    const wrong = await server.query(`select r.uid from ${place.schema}.inventory r where r.payload->'attributes' <> (
      select c.attributes from ${place.schema}.inventory_claims c where c.cluster = r.cluster and c.uid = r.uid
      order by c.inventory_name collate "C" limit 1)`)
    expect(wrong).toEqual([])
    const orphans = await server.query(`select uid from ${place.schema}.inventory r where not exists (
      select 1 from ${place.schema}.inventory_claims c where c.uid = r.uid)`)
    expect(orphans).toEqual([])
    await Promise.all(inventories.map((writing, n) => sinks[n % 10]?.remove(writing, at(9), signal)))
    expect(await place.count()).toBe(0)
    expect(await place.count('inventory_claims')).toBe(0)
  })

  it('takes 20 000 rows, then 1 % of them again and nothing else', () => takes(20_000), 600_000)
  it('takes 100 000 rows, then 1 % of them again and nothing else', { timeout: 600_000, tags: ['long'] }, () =>
    takes(100_000),
  )

  async function takes(count: number): Promise<void> {
    const place = await aPlace(server)
    const sink = closed(place.sink('west'))
    const rows = rowsTo(count)
    let [written, n] = [0, 0]
    for (let isPartial: boolean | undefined = true; isPartial; ) {
      const receipt = await sink.deliver(deliveryOf(west, at(++n), rows), signal)
      ;[written, isPartial] = [written + receipt.written, receipt.isPartial]
    }
    expect(written).toBe(count)
    const changed = rows.map((row, place) => (place % 100 === 0 ? aRow(place, { image: 'new' }) : row))
    expect(await sink.deliver(deliveryOf(west, at(n + 1), changed), signal)).toMatchObject({
      written: count / 100,
      removed: 0,
    })
    expect(await place.count()).toBe(count)
  }
})

/** Whether the table says that an inventory has all its rows. */
const complete = async ({ schema }: Place): Promise<boolean | undefined> =>
  (await server.query<{ complete: boolean }>(`select complete from ${schema}.inventory_writers`))[0]?.complete

/** Until the child has a transaction that wrote something. */
async function inTransaction(server: TestPostgres, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error('the process ended by itself')
    const [row] = await server.query<{ n: number }>(
      "select count(*)::int n from pg_stat_activity where application_name = 'clusterpulse' and backend_xid is not null",
    )
    if (row?.n) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Whether the connections of sinks are gone: what they did is counted by then. */
const idle = async (server: TestPostgres): Promise<boolean> => {
  const rows = await server.query("select 1 from pg_stat_activity where application_name = 'clusterpulse'")
  return rows.length === 0
}
