import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { OutboundGuard } from '#outbound'
import type { SinkError } from '../index.ts'
import { aRow, at, deliveryOf, rowsTo, writingOf } from '../testing/delivery.ts'
import { onPostgres, PASSWORD, postgresMissing, startPostgres, type TestPostgres } from '../testing/postgres-server.ts'
import { aPlace, closed, type Place } from './testing/places.ts'

const signal = new AbortController().signal
const west = writingOf('west')
const failure = (work: Promise<unknown>) =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error as SinkError,
  )

describe.skipIf(postgresMissing !== undefined)(onPostgres('a sink in PostgreSQL'), () => {
  let server: TestPostgres
  let place: Place
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server[Symbol.asyncDispose]())
  beforeEach(async () => {
    place = await aPlace(server)
  })
  const table = (name = '') => `${place.schema}.inventory${name}`

  it('writes 3 of 1000 rows where 3 changed, told by differences or found by itself', async () => {
    const sink = place.sink('west')
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1000)), signal)
    const changed = rowsTo(1000).map((row, n) => (n < 3 ? aRow(n, { image: 'new' }) : row))
    const changes = { base: at(1), put: changed.slice(0, 3), removed: [] }
    expect(await sink.deliver(deliveryOf(west, at(2), changed, { changes }), signal)).toMatchObject({ written: 3 })
    const again = changed.map((row, n) => (n < 3 ? aRow(n, { image: 'newer' }) : row))
    expect(await sink.deliver(deliveryOf(west, at(3), again), signal)).toMatchObject({ written: 3 })
    await sink[Symbol.asyncDispose]()
    await expect.poll(() => server.counts(table())).toEqual({ inserted: 1000, updated: 6, deleted: 0 })
    await expect.poll(() => server.counts(table('_claims'))).toEqual({ inserted: 1000, updated: 6, deleted: 0 })
  })

  it('reads no row that did not change, where it is told what did', async () => {
    const sink = closed(place.sink('west'))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(10)), signal)
    const rows = () => {
      throw new Error('all rows were asked for')
    }
    const changes = { base: at(1), put: [aRow(1, { image: 'new' })], removed: [aRow(2)] }
    const next = rowsTo(10).flatMap((row, n) => (n === 1 ? [aRow(1, { image: 'new' })] : n === 2 ? [] : [row]))
    const receipt = await sink.deliver(deliveryOf(west, at(2), next, { changes, rows }), signal)
    expect(receipt).toMatchObject({ written: 1, removed: 1 })
    expect(await place.count()).toBe(9)
  })

  it('shows of an object that two inventories see the smallest claim, and keeps it until the last one goes', async () => {
    const sink = closed(place.sink('west'))
    const [first, second] = [writingOf('west', 'a-first'), writingOf('west', 'b-second')]
    const shown = async () => {
      const rows = await server.query<{ payload: { attributes: object } }>(`select payload from ${table()}`)
      return rows.map(({ payload }) => payload.attributes)
    }
    await sink.deliver(deliveryOf(second, at(1), [aRow(1, { by: 'second' })]), signal)
    expect(await shown()).toEqual([{ by: 'second' }])
    await sink.deliver(deliveryOf(first, at(1), [aRow(1, { by: 'first' })]), signal)
    expect(await shown()).toEqual([{ by: 'first' }])
    await sink.deliver(deliveryOf(second, at(2), [aRow(1, { by: 'second again' })]), signal)
    expect(await shown()).toEqual([{ by: 'first' }])
    await sink.deliver(deliveryOf(first, at(2), []), signal)
    expect(await shown()).toEqual([{ by: 'second again' }])
    await sink.remove(second, at(3), signal)
    expect(await shown()).toEqual([])
  })

  it('keeps one uid of two clusters in two rows', async () => {
    const sinks = [closed(place.sink('west')), closed(place.sink('east'))] as const
    await sinks[0].deliver(deliveryOf(west, at(1), [aRow(1)]), signal)
    await sinks[1].deliver(deliveryOf(writingOf('east'), at(1), [aRow(1)]), signal)
    expect(await place.count()).toBe(2)
    await sinks[0].deliver(deliveryOf(west, at(2), []), signal)
    expect(await server.query(`select cluster from ${table()}`)).toEqual([{ cluster: 'east' }])
  })

  it('takes texts that jsonb does not: NUL and halves of letters become a replacement', async () => {
    const sink = closed(place.sink('west'))
    await sink.deliver(deliveryOf(west, at(1), [aRow(1, { text: 'a\0b\ud800c', '\0': '\\u0000' })]), signal)
    expect((await place.read(west))[0]?.attributes).toEqual({ text: 'a\ufffdb\ufffdc', '\ufffd': '\\u0000' })
  })

  it('takes names of tables as names, whatever is in them', async () => {
    const evil = 'x"; drop schema public cascade; --'
    await server.query(`create schema "${evil.replaceAll('"', '""')}" authorization app`)
    const spec = { postgres: { databaseRef: { name: 'x' }, schema: evil, table: `${evil}'$1\\` } }
    const sink = closed(place.sink('west', { spec }))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    expect(await sink.probe(signal)).toMatchObject({ verified: true })
    expect(await server.query("select count(*)::int n from pg_namespace where nspname = 'public'")).toEqual([{ n: 1 }])
    const long = { postgres: { databaseRef: { name: 'x' }, schema: place.schema, table: 'x'.repeat(63) } }
    await closed(place.sink('west', { spec: long })).deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    expect(await place.count('x'.repeat(63))).toBe(3)
  })

  it('goes on where the database was away when it began, also for those that begin together', async () => {
    const address = await new Promise<{ port: number }>((resolve) => {
      const one = createServer().listen(0, '127.0.0.1', () => {
        const found = one.address() as { port: number }
        one.close(() => resolve(found))
      })
    })
    const sink = closed(place.sink('west', { dsn: server.dsn().replace(`:${server.port}/`, `:${address.port}/`) }))
    const deliver = () => sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    for (const failed of await Promise.all([failure(deliver()), failure(deliver())]))
      expect(failed).toMatchObject({ code: 'sink_transient', message: expect.stringContaining('ECONNREFUSED') })
    const back = createServer((client) => {
      const to = connect(server.port, '127.0.0.1')
      client.pipe(to).pipe(client)
      for (const one of [client, to]) one.on('error', () => void [client.destroy(), to.destroy()])
    }).listen(address.port, '127.0.0.1')
    try {
      await deliver()
      expect(await place.count()).toBe(2)
      await sink[Symbol.asyncDispose]()
    } finally {
      back.close()
    }
  })

  it('makes its tables once, also when many begin at the same time', async () => {
    const writings = Array.from({ length: 20 }, (_, n) => writingOf(`cluster-${n}`))
    await Promise.all(
      writings.map((writing) =>
        closed(place.sink(writing.cluster)).deliver(deliveryOf(writing, at(1), rowsTo(5)), signal),
      ),
    )
    expect(await place.count()).toBe(100)
  })

  it('makes nothing where it may not, and says what is missing', async () => {
    const existing = { provisioning: { mode: 'existing' } }
    const sink = closed(place.sink('west', { spec: existing }))
    expect(await sink.probe(signal)).toMatchObject({
      verified: false,
      message: expect.stringMatching(
        /mode is existing, and there is no table inventory, inventory_claims, .*status\.preview/,
      ),
    })
    expect(await failure(sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal))).toMatchObject({
      code: 'sink_terminal',
    })
    for (const statement of sink.preview().postgres?.expectedDDL.split(';\n') ?? [])
      if (statement.trim() !== '') await server.query(statement)
    await server.query(`grant all on all tables in schema ${place.schema} to app`)
    expect(await sink.probe(signal)).toMatchObject({ verified: true })
    await sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(await place.count()).toBe(1)
  })

  it('makes a table again that somebody dropped', async () => {
    const sink = closed(place.sink('west'))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(4)), signal)
    await server.query(`drop table ${table()}, ${table('_claims')}, ${table('_writers')} cascade`)
    expect(await failure(sink.deliver(deliveryOf(west, at(2), rowsTo(5)), signal))).toMatchObject({
      code: 'sink_transient',
    })
    await sink.deliver(deliveryOf(west, at(2), rowsTo(5)), signal)
    expect(await place.count()).toBe(5)
  })

  it('refuses a table of foreign columns in one sentence', async () => {
    await server.query(`create table ${table()} (cluster int, namespace text, name text, uid text, payload text)`)
    const error = await failure(closed(place.sink('west')).deliver(deliveryOf(west, at(1), rowsTo(1)), signal))
    expect(error).toMatchObject({
      code: 'sink_terminal',
      message: expect.stringContaining('cluster is integer, not text; api_group is missing, not text'),
    })
  })

  it.each([
    ['read-only', 'alter role app set default_transaction_read_only = on', 'read-only'],
    ['out of rights', 'revoke all on all tables in schema SCHEMA from app', 'grant'],
  ])('says so where the database is %s, and goes on when it is not', async (_, change, word) => {
    const sink = place.sink('west')
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    await sink[Symbol.asyncDispose]()
    onTestFinished(async () => void (await server.query('alter role app reset default_transaction_read_only')))
    if (change.includes('revoke')) await server.query(`alter table ${table()} owner to postgres`)
    await server.query(change.replace('SCHEMA', place.schema))
    const later = closed(place.sink('west'))
    expect(await later.probe(signal)).toMatchObject({ verified: false, message: expect.stringContaining(word) })
    const error = await failure(later.deliver(deliveryOf(west, at(2), rowsTo(3)), signal))
    expect(error.retryable).toBe(true)
    expect(error.message).toContain(word)
    expect(await place.count()).toBe(2)
  })

  it('waits for no lock longer than its statements may take', async () => {
    const sink = closed(place.sink('west', { spec: { options: { statement_timeout: '300ms' } } }))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    await server.query('begin')
    await server.query(`lock table ${table()}`)
    const error = await failure(sink.deliver(deliveryOf(west, at(2), rowsTo(3)), signal))
    await server.query('rollback')
    expect(error).toMatchObject({
      code: 'sink_transient',
      message: expect.stringMatching(/holds a lock|longer than its limit/),
    })
    await sink.deliver(deliveryOf(west, at(2), rowsTo(3)), signal)
    expect(await place.count()).toBe(3)
  })

  it('says nothing of a connection string when it fails, whatever is wrong with it', async () => {
    const secrets = [
      PASSWORD,
      encodeURIComponent(PASSWORD),
      'hunter2',
      String(server.port),
      '127.0.0.1',
      'nowhere.invalid',
    ]
    const broken = [
      server.dsn('?sslmode=disable', 'app:hunter2'),
      server.dsn('?sslmode=require'),
      server.dsn('?sslmode=hunter2'),
      `postgres://app:hunter2@nowhere.invalid/x`,
      `postgres://app:hunter2@127.0.0.1:1/x`,
      `postgres://app:hunter2@127.0.0.1:${server.port}/nowhere?sslmode=disable`,
      'host=127.0.0.1 user=app password=hunter2 =',
      'hunter2',
      `postgres://app:hun#ter2@${PASSWORD}`,
      'postgres://app:hunter2@169.254.169.254/x',
      'postgres://app:hunter2@/x?host=/var/run/hunter2',
      'host=127.0.0.1,nowhere.invalid user=app password=hunter2',
    ]
    for (const dsn of broken) {
      const said = await Promise.resolve()
        .then(async () => {
          const sink = closed(place.sink('west', { dsn }))
          const { verified, message } = await sink.probe(signal)
          expect(verified).toBe(false)
          const error = await failure(sink.deliver(deliveryOf(west, at(1), []), signal))
          return `${message} ${error.message}`
        })
        .catch((error: Error) => error.message)
      for (const secret of secrets) expect(said.replace(/OUTBOUND_ALLOW|PASSWORD/g, '')).not.toContain(secret)
      expect(said.length).toBeGreaterThan(20)
    }
  })

  it.each(['inventory', 'inventory_claims'])('says that a trigger of %s lets rows go', async (table) => {
    const own = await aPlace(server)
    const sink = closed(own.sink('west'))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    await server.query(
      `create function ${own.schema}.nothing() returns trigger language plpgsql as 'begin return null; end'`,
    )
    await server.query(`create trigger nothing before insert or update on ${own.schema}.${table}
for each row execute function ${own.schema}.nothing()`)
    const refused = await failure(sink.deliver(deliveryOf(west, at(2), rowsTo(5)), signal))
    expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('a trigger or a rule') })
    await server.query(`drop trigger nothing on ${own.schema}.${table}`)
    await sink.deliver(deliveryOf(west, at(3), rowsTo(5)), signal)
    expect(await own.read(west)).toHaveLength(5)
  })

  it('reads the connection string from any of its keys, in their order, and in either form', async () => {
    const words = `host=127.0.0.1 port=${server.port} user=app password='${PASSWORD}' dbname=postgres sslmode=disable`
    const sink = closed(place.sink('west', { dsn: words }))
    expect(await sink.probe(signal)).toMatchObject({ verified: true })
  })

  it('goes on without TLS where the database has none and nothing asks for it, also for several calls at once', async () => {
    const sink = closed(place.sink('west', { dsn: server.dsn('') }))
    const [probe, ...receipts] = await Promise.all([
      sink.probe(signal),
      ...['a', 'b', 'c'].map((name) => sink.deliver(deliveryOf(writingOf('west', name), at(1), rowsTo(2)), signal)),
    ])
    expect(probe).toMatchObject({ verified: true })
    expect(receipts).toHaveLength(3)
  })

  it('dials no address that is closed, and looks at every address of a name', async () => {
    let dialled = 0
    const trap = createServer(() => void dialled++).listen(0, '127.0.0.1')
    await once(trap, 'listening')
    onTestFinished(() => void trap.close())
    const port = (trap.address() as { port: number }).port
    const guard = new OutboundGuard({
      use: 'sink',
      allowLoopback: false,
      allowPrivate: true,
      names: (_, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]),
    })
    for (const host of ['127.0.0.1', 'db.example.com', 'localhost', '[::ffff:127.0.0.1]', '169.254.169.254']) {
      const sink = closed(place.sink('west', { guard, dsn: `postgres://app:x@${host}:${port}/x` }))
      expect(await sink.probe(signal)).toMatchObject({
        verified: false,
        message: expect.stringMatching(
          /closed to sinks: it is an address .*(set SINK_ALLOW_LOOPBACK|no setting opens it)/,
        ),
      })
    }
    expect(dialled).toBe(0)
  })

  it('stops where its signal says, and leaves nothing half written', async () => {
    const sink = closed(place.sink('west'))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    await server.query('begin')
    await server.query(`lock table ${table()}`)
    const stop = new AbortController()
    const going = sink.deliver(deliveryOf(west, at(2), rowsTo(2)), stop.signal)
    setTimeout(() => stop.abort(new Error('enough')), 300)
    await expect(going).rejects.toThrow('enough')
    await server.query('rollback')
    expect(await place.read(west)).toHaveLength(3)
  })

  it('waits for a server that was killed, and goes on', async () => {
    const own = await startPostgres()
    onTestFinished(() => own[Symbol.asyncDispose]())
    const there = await aPlace(own)
    const sink = closed(there.sink('west'))
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    await own.kill()
    expect(await failure(sink.deliver(deliveryOf(west, at(2), rowsTo(4)), signal))).toMatchObject({
      code: 'sink_transient',
    })
    await own.start()
    await sink.deliver(deliveryOf(west, at(2), rowsTo(4)), signal)
    expect(await there.count()).toBe(4)
  })

  describe('under one name with another writer', () => {
    const silenceMs = 400
    const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

    it('deletes at once what a former one left that said goodbye', async () => {
      const former = place.sink('west', { writer: 'former' })
      await former.deliver(deliveryOf(west, at(1), rowsTo(5)), signal)
      await former[Symbol.asyncDispose]()
      const receipt = await closed(place.sink('west')).deliver(deliveryOf(west, at(1, 2), rowsTo(2)), signal)
      expect(receipt).toMatchObject({ removed: 3 })
    })

    const lost = {
      'it was stopped in the middle of a change': async (change: (stop: AbortSignal) => Promise<SinkError>) => {
        await server.query('begin')
        await server.query(`lock table ${table('_claims')}`)
        const stop = new AbortController()
        setTimeout(() => stop.abort(new Error('enough')), 300)
        await change(stop.signal)
        await server.query('rollback')
      },
      'somebody dropped a table of it': async (change: (stop: AbortSignal) => Promise<SinkError>) => {
        await server.query(`drop table ${table('_claims')} cascade`)
        await change(signal)
      },
    }
    it.each(Object.entries(lost))('deletes at once what one left that said goodbye, though %s', async (_, lose) => {
      const former = place.sink('west', { writer: 'former' })
      await former.deliver(deliveryOf(west, at(1), rowsTo(5)), signal)
      await lose((stop) => failure(former.deliver(deliveryOf(west, at(2), rowsTo(4)), stop)))
      await former[Symbol.asyncDispose]()
      const left = await server.query(`select left_at is not null as left from ${table('_writers')}`)
      expect(left).toEqual([{ left: true }])
      const receipt = await closed(place.sink('west')).deliver(deliveryOf(west, at(1, 2), rowsTo(2)), signal)
      expect(receipt.waits).toBeUndefined()
      expect(await place.read(west)).toHaveLength(2)
    })

    it('writes at once after one that was killed, and deletes when that one was silent for a while', async () => {
      closed(await deliveredBy('killed', rowsTo(5), 1))
      const sink = closed(place.sink('west', { silenceMs }))
      const next = [...rowsTo(2), aRow(9)]
      const first = await sink.deliver(deliveryOf(west, at(1, 2), next), signal)
      expect(first).toMatchObject({
        written: 1,
        removed: 0,
        waits: { message: expect.stringContaining('once killed, which wrote before, was silent') },
      })
      expect(await place.count()).toBe(6)
      const { ms = 0 } = first.waits ?? {}
      expect(ms).toBeGreaterThan(silenceMs - 1)
      await later(ms)
      expect(await sink.deliver(deliveryOf(west, at(2, 2), next), signal)).toMatchObject({ removed: 3 })
      expect(await place.count()).toBe(3)
    })

    it('says how long is left of the silence, and that of a removal, too', async () => {
      closed(await deliveredBy('killed', rowsTo(5), 1))
      const sink = closed(place.sink('west', { silenceMs: 5000 }))
      await sink.deliver(deliveryOf(west, at(1, 2), rowsTo(2)), signal)
      await place.pass(4000)
      const { waits } = await sink.deliver(deliveryOf(west, at(2, 2), rowsTo(2)), signal)
      expect(waits?.ms).toBeLessThan(1500)
      const refused = await failure(sink.remove(west, at(3, 2), signal))
      expect(refused).toMatchObject({ code: 'sink_transient', retryAfterMs: expect.any(Number) })
    })

    it('tells both, and neither deletes, while both are there; the later one goes on when the other is gone', async () => {
      const one = await deliveredBy('one', rowsTo(5), 1)
      const two = closed(place.sink('west', { writer: 'two', silenceMs }))
      const ofTwo = [aRow(100)]
      await two.deliver(deliveryOf(west, at(1, 2), ofTwo), signal)
      const started = Date.now()
      let told: { one?: string | undefined; two?: string | undefined } = {}
      for (let n = 2; !(told.one && told.two) && Date.now() - started < 20_000; n++) {
        await later(silenceMs / 4)
        const answer = await one.deliver(deliveryOf(west, at(n), rowsTo(4)), signal)
        const other = await two.deliver(deliveryOf(west, at(n, 2), ofTwo), signal).catch(() => undefined)
        told = { one: answer.conflict, two: other?.conflict }
      }
      expect(told.one).toContain('two writes under the cluster name west')
      expect(told.two).toContain('one writes under the cluster name west')
      expect(await place.count()).toBe(6)
      await one[Symbol.asyncDispose]()
      await place.pass(silenceMs)
      expect(await two.deliver(deliveryOf(west, at(500, 2), ofTwo), signal)).toMatchObject({ removed: 5 })
    })

    it('lets an agent follow whose clock was set back before it started, when the former one is gone', async () => {
      const former = await deliveredBy('former', rowsTo(3), 1_000)
      const sink = closed(place.sink('west', { writer: 'next' }))
      const early = () => sink.deliver(deliveryOf(west, at(1, 900), rowsTo(2)), signal)
      expect((await early()).conflict).toContain('former writes under the cluster name west')
      await former[Symbol.asyncDispose]()
      const receipt = await early()
      expect(receipt).toMatchObject({ position: at(1, 1_000), written: 0, removed: 0 })
      expect(receipt.conflict).toBeUndefined()
      expect(await sink.deliver(deliveryOf(west, at(1, 1_001), rowsTo(2)), signal)).toMatchObject({ removed: 1 })
    })

    const deliveredBy = async (writer: string, rows: ReturnType<typeof rowsTo>, epoch: number) => {
      const sink = place.sink('west', { writer, silenceMs })
      await sink.deliver(deliveryOf(west, at(1, epoch), rows), signal)
      return sink
    }
  })
})
