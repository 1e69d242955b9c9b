import { jetstreamManager, type StreamConfig } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { canonicalRow, type Row } from '#extract'
import type { KollectEventSinkSpec } from '#kinds'
import { OutboundGuard } from '#outbound'
import { natsPrograms, startNats, type TestNats } from '../../../platform/nats/testing/nats-server.ts'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { EventReader } from '../events/testing/event-reader.ts'
import { openSink } from '../open.ts'
import { type EventDeclaration, type Sink, type SinkContext, SinkError, type Writing } from '../sink.ts'
import { aRow, at, contextOf, deliveryOf, rowsTo, sinkContract, writingOf } from '../testing/contract.ts'

const SLOW_MS = 60_000
const never = new AbortController().signal
const west = writingOf('west')

interface Place {
  readonly stream: string
  readonly prefix: string
}
let places = 0
/** A stream and subjects that no other test has. */
const aPlace = (): Place => ({ stream: `s${++places}`, prefix: `inventory${places}` })

const declared = (
  url: string,
  { stream, prefix }: Place,
  spec: Partial<KollectEventSinkSpec> = {},
  more: Partial<EventDeclaration> = {},
): EventDeclaration => ({
  ...{ namespace: 'team-a', name: 'events', cluster: 'west', credentials: {} },
  spec: { type: 'nats', endpoint: url, nats: { subject: `${prefix}.{cluster}.{namespace}.{name}`, stream }, ...spec },
  ...more,
})

async function opened(declaration: EventDeclaration, context: Partial<SinkContext> = {}): Promise<Sink> {
  const sink = await openSink('event', declaration, contextOf(context))
  onTestFinished(() => sink[Symbol.asyncDispose]())
  return sink
}

const bytes = (text: string) => new TextEncoder().encode(text)
const failure = (work: Promise<unknown>): Promise<SinkError> =>
  work.then(
    () => Promise.reject(new Error('it was taken')),
    (error: unknown) => (error instanceof SinkError ? error : Promise.reject(error)),
  )

async function manage<T>(url: string, work: (nc: NatsConnection) => Promise<T>): Promise<T> {
  const nc = await connect({ servers: url.replace(/^\w+:\/\//, '') })
  try {
    return await work(nc)
  } finally {
    await nc.close()
  }
}
const managed = <T>(url: string, work: (manager: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<T>) =>
  manage(url, async (nc) => work(await jetstreamManager(nc)))

/** All of a stream in its order, read by somebody else. */
const kept = (url: string, stream: string) =>
  managed(url, async (manager) => {
    const { state } = await manager.streams.info(stream)
    const all = []
    for (let seq = state.first_seq; seq > 0 && seq <= state.last_seq; seq++) {
      const message = await manager.streams.getMessage(stream, { seq })
      if (!message) continue
      const header = (name: string) => message.header.get(name)
      all.push({
        header,
        subject: message.subject,
        id: header('Nats-Msg-Id'),
        body: Buffer.from(message.data).toString(),
      })
    }
    return all
  })
const rowsIn = async (url: string, stream: string, writing: Writing): Promise<readonly Row[]> =>
  EventReader.of(await kept(url, stream).catch(() => [])).rows(writing) ?? []
const texts = (rows: readonly Row[]) => rows.map(canonicalRow).sort()
const fiveMegabytes = () => Array.from({ length: 2500 }, (_, n) => aRow(n, { text: `${n}`.padEnd(2000, 'x') }))

describe.each(natsPrograms)('a sink in $name', { timeout: 3 * SLOW_MS }, (program) => {
  const { missing } = program
  let nats: TestNats
  beforeAll(async () => {
    if (missing === undefined) nats = await startNats(program)
  })
  afterAll(() => nats?.[Symbol.asyncDispose]())
  const test = it.skipIf(missing !== undefined)
  const make = (config: Partial<StreamConfig> & { readonly name: string }, url = nats.url) =>
    managed(url, (manager) => manager.streams.add(config))
  const configOf = (stream: string) => managed(nats.url, async (manager) => (await manager.streams.info(stream)).config)
  const deliver = (sink: Sink, sequence: number, rows: readonly Row[], more = {}) =>
    sink.deliver(deliveryOf(west, at(sequence), rows, more), never)

  sinkContract('keeps what every sink promises', {
    missing,
    saysWhoWrote: true,
    countsKept: false,
    harness: async () => {
      const place = aPlace()
      return {
        open: (cluster) => openSink('event', declared(nats.url, place, {}, { cluster }), contextOf()),
        openAs: (writer) =>
          openSink('event', declared(nats.url, place, {}, { cluster: 'west' }), contextOf({ writer })),
        read: (writing) => rowsIn(nats.url, place.stream, writing),
        writes: () => managed(nats.url, async (manager) => (await manager.streams.info(place.stream)).state.last_seq),
      }
    },
  })

  test('publishes on the subject of an inventory, in a stream that keeps the newest of each', async () => {
    const place = aPlace()
    const sink = await opened(declared(nats.url, place))
    expect(await sink.probe(never)).toMatchObject({ verified: true, warnings: [] })
    await sink.deliver(
      deliveryOf({ cluster: 'eu.west-1', namespace: '', inventory: 'api.v2' }, at(1), rowsTo(2)),
      never,
    )
    const [message] = await kept(nats.url, place.stream)
    expect(message?.subject).toBe(`${place.prefix}.eu_west-1._.api_v2`)
    expect(message?.header('kollect.dev/cluster')).toBe('eu.west-1')
    expect(await configOf(place.stream)).toMatchObject({
      subjects: [`${place.prefix}.*.*.*`],
      max_msgs_per_subject: 64,
      max_age: 0,
      discard: 'new',
    })
    expect(sink.preview(west)).toEqual({
      provisioningMode: 'ensure',
      serializationFormat: 'json',
      objectPath: `${place.prefix}.west.team-a.workloads`,
    })
  })

  test('adds its subjects to a stream of others, and changes nothing else of it', async () => {
    const place = aPlace()
    await make({ name: place.stream, subjects: ['orders.>', 'bills.*'], max_msgs: 777, description: 'of the shop' })
    const before = await configOf(place.stream)
    await deliver(await opened(declared(nats.url, place)), 1, rowsTo(3))
    const after = await configOf(place.stream)
    expect(after).toEqual({ ...before, subjects: ['orders.>', 'bills.*', `${place.prefix}.*.*.*`] })
    await deliver(await opened(declared(nats.url, place)), 2, rowsTo(4))
    expect(await configOf(place.stream)).toEqual(after)
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(rowsTo(4)))
  })

  test('leaves a stream alone where that is said, and says what it lacks', async () => {
    const place = aPlace()
    const declaration = declared(nats.url, place, { provisioning: { mode: 'existing' } })
    const missingStream = await failure(deliver(await opened(declaration), 1, rowsTo(1)))
    expect(missingStream).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('nats stream add') })
    await make({ name: place.stream, subjects: [`${place.prefix}-orders.>`] })
    const before = await configOf(place.stream)
    const sink = await opened(declaration)
    const uncovered = await failure(deliver(sink, 1, rowsTo(1)))
    expect(uncovered).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('do not cover') })
    expect(await sink.probe(never)).toMatchObject({ verified: false, message: uncovered.message })
    expect(await configOf(place.stream)).toEqual(before)
    await managed(nats.url, (manager) => manager.streams.update(place.stream, { subjects: [`${place.prefix}.>`] }))
    await deliver(sink, 1, rowsTo(1))
    expect(await rowsIn(nats.url, place.stream, west)).toHaveLength(1)
  })

  test('names the stream that has its subjects already', async () => {
    const place = aPlace()
    await make({ name: `${place.stream}-other`, subjects: [`${place.prefix}.>`] })
    const refused = await failure(deliver(await opened(declared(nats.url, place)), 1, rowsTo(1)))
    expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining(`${place.stream}-other`) })
  })

  test('writes a content that comes back after another one, although its checksum was there a moment ago', async () => {
    for (const subject of ['{cluster}.{namespace}.{name}', 'all']) {
      const place = aPlace()
      const more = { nats: { subject: `${place.prefix}.${subject}`, stream: place.stream } }
      const sink = await opened(declared(nats.url, place, more))
      for (const [sequence, count] of [2, 3, 2].entries())
        expect(await deliver(sink, sequence + 1, rowsTo(count))).toMatchObject({ written: 1 })
      expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(rowsTo(2)))
      expect(new Set((await kept(nats.url, place.stream)).map(({ id }) => id)).size).toBe(3)
    }
  })

  test('carries 5 MB in parts, which belong together', async () => {
    const place = aPlace()
    const sink = await opened(declared(nats.url, place))
    const receipt = await deliver(sink, 1, fiveMegabytes())
    expect(receipt.written).toBeGreaterThanOrEqual(5)
    const messages = await kept(nats.url, place.stream)
    expect(messages.map(({ header }) => header('kollect.dev/part'))).toEqual(messages.map((_, i) => String(i + 1)))
    expect(new Set(messages.map(({ header }) => header('kollect.dev/checksum'))).size).toBe(1)
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(fiveMegabytes()))
    expect(await deliver(await opened(declared(nats.url, place)), 2, fiveMegabytes())).toMatchObject({ written: 0 })
  })

  test('writes all parts again after it was stopped between two of them', async () => {
    const place = aPlace()
    await deliver(await opened(declared(nats.url, place)), 1, fiveMegabytes())
    const whole = (await kept(nats.url, place.stream)).length
    await managed(nats.url, (manager) => manager.streams.deleteMessage(place.stream, whole))
    expect(await rowsIn(nats.url, place.stream, west)).toEqual([])
    await deliver(await opened(declared(nats.url, place)), 1, fiveMegabytes())
    expect(await kept(nats.url, place.stream)).toHaveLength(2 * whole - 1)
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(fiveMegabytes()))
  })

  test('does not call a stream that is sealed verified', async () => {
    const place = aPlace()
    await make({ name: place.stream, subjects: [`${place.prefix}.>`] })
    await managed(nats.url, (manager) =>
      manager.streams.update(place.stream, { sealed: true } as Partial<StreamConfig>),
    )
    const sink = await opened(declared(nats.url, place))
    expect(await sink.probe(never)).toMatchObject({ verified: false, message: expect.stringContaining('is sealed') })
  })

  test('refuses a stream that acknowledges nothing, and takes it when it does', async () => {
    const place = aPlace()
    await make({ name: place.stream, subjects: [`${place.prefix}.>`], no_ack: true })
    const sink = await opened(declared(nats.url, place))
    const message = expect.stringContaining(`nats stream edit ${place.stream} --ack`)
    expect(await sink.probe(never)).toMatchObject({ verified: false, message })
    expect(await failure(deliver(sink, 1, rowsTo(1)))).toMatchObject({ errorClass: 'terminal', message })
    await managed(nats.url, (manager) => manager.streams.update(place.stream, { no_ack: false }))
    expect(await deliver(sink, 2, rowsTo(1))).toMatchObject({ written: 1 })
  })

  test('says of a stream that lets go of what all inventories have there', async () => {
    const place = aPlace()
    await make({ name: place.stream, subjects: [`${place.prefix}.>`], max_msgs: 1 })
    const sink = await opened(declared(nats.url, place))
    expect((await sink.probe(never)).warnings).toContainEqual(
      expect.stringContaining('has room for 1 messages and lets go of the oldest'),
    )
    const refused = await failure(deliver(sink, 1, fiveMegabytes()))
    expect(refused).toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('keeps 1 messages of all subjects'),
    })
  })

  test('says of a stream that keeps too few messages that it cannot hold the parts, and writes none', async () => {
    const place = aPlace()
    await make({ name: place.stream, subjects: [`${place.prefix}.>`], max_msgs_per_subject: 2 })
    const sink = await opened(declared(nats.url, place))
    const refused = await failure(deliver(sink, 1, fiveMegabytes()))
    expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('keeps 2 messages') })
    expect(await kept(nats.url, place.stream)).toEqual([])
    await deliver(sink, 2, rowsTo(3))
    expect(await rowsIn(nats.url, place.stream, west)).toHaveLength(3)
    // Raised as the sentence says.
    const [, parts] = /--max-msgs-per-subject=(\d+)/.exec(refused.message) ?? []
    await managed(nats.url, (manager) => manager.streams.update(place.stream, { max_msgs_per_subject: Number(parts) }))
    await deliver(sink, 3, fiveMegabytes())
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(fiveMegabytes()))
    // The next one finds the former one there as a whole until its last part is.
    const narrow = expect.stringContaining('has no room for two snapshots')
    expect((await sink.probe(never)).warnings).not.toContainEqual(narrow)
    const all = Number(parts)
    await managed(nats.url, (manager) => manager.streams.update(place.stream, { max_msgs_per_subject: all - 1 }))
    const { warnings } = await sink.probe(never)
    const fresh = await opened(declared(nats.url, place))
    expect(await deliver(fresh, 4, fiveMegabytes().slice(1))).toMatchObject({ warnsAnew: true })
    expect(await deliver(fresh, 5, fiveMegabytes())).not.toHaveProperty('warnsAnew')
    expect(warnings).toContainEqual(narrow)
    expect(warnings.join()).toContain(`--max-msgs-per-subject=${all} or more`)
  })

  test('writes nothing into a stream whose bytes cannot hold it and that lets go of what others have, until it may be larger', async () => {
    const place = aPlace()
    const limits = { name: place.stream, subjects: [`${place.prefix}.>`], max_bytes: 2_000_000, discard: 'old' }
    await make(limits as Partial<StreamConfig> & { name: string })
    const sink = await opened(declared(nats.url, place))
    const east = writingOf('east')
    await sink.deliver(deliveryOf(east, at(1), rowsTo(20)), never)
    await deliver(sink, 1, rowsTo(20))
    const refused = await failure(deliver(sink, 2, fiveMegabytes()))
    expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('has room for 2000000') })
    const [, bytes] = /--max-bytes=(\d+)/.exec(refused.message) ?? []
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(rowsTo(20)))
    expect(texts(await rowsIn(nats.url, place.stream, east))).toEqual(texts(rowsTo(20)))
    await managed(nats.url, (manager) => manager.streams.update(place.stream, { max_bytes: Number(bytes) }))
    await deliver(sink, 2, fiveMegabytes())
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(fiveMegabytes()))
    expect(texts(await rowsIn(nats.url, place.stream, east))).toEqual(texts(rowsTo(20)))
  })

  test('finds at its look that a stream let go of the first parts, and writes all again', async () => {
    const place = aPlace()
    await make({ name: place.stream, subjects: [`${place.prefix}.>`] })
    const sink = await opened(declared(nats.url, place))
    await deliver(sink, 1, fiveMegabytes())
    const look = () => deliver(sink, 1, fiveMegabytes(), { isLook: true })
    expect(await look()).toMatchObject({ written: 0 })
    const whole = (await kept(nats.url, place.stream)).length
    await managed(nats.url, (manager) => manager.streams.purge(place.stream, { keep: 1 }))
    expect(await rowsIn(nats.url, place.stream, west)).toEqual([])
    expect(await look()).toMatchObject({ written: whole })
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(fiveMegabytes()))
    expect(await look()).toMatchObject({ written: 0 })
  })

  test('says that a stream is full, and delivers when there is room', async () => {
    const place = aPlace()
    const limits = { max_bytes: 300_000, discard: 'new' } as const
    await make({ name: place.stream, subjects: [`${place.prefix}.>`], ...limits } as Partial<StreamConfig> &
      Place & { name: string })
    const sink = await opened(declared(nats.url, place))
    await deliver(sink, 1, rowsTo(500))
    const refused = await failure(deliver(sink, 2, rowsTo(1200)))
    expect(refused).toMatchObject({ errorClass: 'forbidden', message: expect.stringContaining('has no room') })
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(rowsTo(500)))
    await managed(nats.url, (manager) => manager.streams.purge(place.stream))
    await deliver(sink, 2, rowsTo(600))
    expect(await rowsIn(nats.url, place.stream, west)).toHaveLength(600)
  })

  test('says that there is no room for a stream, which may change by itself', async () => {
    const own = await startNats(program)
    onTestFinished(() => own[Symbol.asyncDispose]())
    await make({ name: 'all', subjects: ['all'], max_bytes: 2 ** 40 - 2 ** 20 }, own.url)
    const sink = await opened(declared(own.url, aPlace()))
    const refused = await failure(deliver(sink, 1, rowsTo(1)))
    expect(refused).toMatchObject({ errorClass: 'forbidden', message: expect.stringContaining('nats stream add') })
    await managed(own.url, (manager) => manager.streams.delete('all'))
    expect(await deliver(sink, 1, rowsTo(1))).toMatchObject({ written: 1 })
  })

  test('makes the stream again where somebody deleted it', async () => {
    const place = aPlace()
    const sink = await opened(declared(nats.url, place))
    await deliver(sink, 1, rowsTo(1))
    await managed(nats.url, (manager) => manager.streams.delete(place.stream))
    // JetStream is there: nobody has to change anything.
    const missed = await failure(deliver(sink, 2, rowsTo(2)))
    expect(missed).toMatchObject({ errorClass: 'transient', message: expect.stringContaining('no stream took') })
    expect(await deliver(sink, 2, rowsTo(2))).toMatchObject({ written: 1 })
    expect(await rowsIn(nats.url, place.stream, west)).toHaveLength(2)
  })

  test('lets no two writers of one identity mix what they write, and names the other one', async () => {
    const place = aPlace()
    const older = await opened(declared(nats.url, place), { writer: 'agent-old' })
    const newer = await opened(declared(nats.url, place), { writer: 'agent-new' })
    await deliver(older, 1, rowsTo(10))
    await newer.deliver(deliveryOf(west, at(1, 2), rowsTo(20)), never)
    const receipt = await deliver(older, 2, rowsTo(30))
    expect(receipt).toMatchObject({ position: at(1, 2), written: 0, conflict: expect.stringContaining('agent-new') })
    const both = [
      older.deliver(deliveryOf(west, at(3), fiveMegabytes()), never),
      newer.deliver(deliveryOf(west, at(2, 2), fiveMegabytes()), never),
    ]
    await Promise.all(both)
    await newer.deliver(deliveryOf(west, at(3, 2), rowsTo(21)), never)
    expect(texts(await rowsIn(nats.url, place.stream, west))).toEqual(texts(rowsTo(21)))
  })

  test('leaves an empty snapshot where an inventory is removed, and nothing where there was none', async () => {
    const place = aPlace()
    const sink = await opened(declared(nats.url, place))
    await deliver(sink, 1, rowsTo(10))
    await sink.remove(west, at(2), never)
    await sink.remove(writingOf('west', 'unknown'), at(1), never)
    const last = (await kept(nats.url, place.stream)).at(-1)
    expect(await kept(nats.url, place.stream)).toHaveLength(2)
    expect(JSON.parse(last?.body ?? '').payload).toMatchObject({ itemCount: 0, items: [], complete: true })
  })

  test('warns of what consumers should know', async () => {
    const place = aPlace()
    await make({
      name: place.stream,
      subjects: [`${place.prefix}.>`],
      storage: 'memory',
      max_age: 3600e9,
    } as Partial<StreamConfig> & { name: string })
    const more = { nats: { subject: `${place.prefix}.all`, stream: place.stream } }
    const { warnings } = await (await opened(declared(nats.url, place, more))).probe(never)
    expect(warnings).toEqual([
      expect.stringContaining('inventories share it'),
      expect.stringContaining('is in memory'),
      expect.stringContaining('after 3600 s'),
    ])
  })

  test('is not connected where the name leads to a metadata service', async () => {
    const guard = new OutboundGuard({
      use: 'sink',
      ...{ allowLoopback: true, allowPrivate: true },
      names: (_, callback) => callback(null, [{ address: '169.254.169.254', family: 4 }]),
    })
    const refused = await failure(
      deliver(await opened(declared('nats://nats.example.com', aPlace()), { guard }), 1, []),
    )
    expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('metadata') })
  })

  test('ends with its signal, also while the server hangs', async () => {
    const own = await startNats(program)
    onTestFinished(() => own[Symbol.asyncDispose]())
    const place = aPlace()
    const sink = await opened(declared(own.url, place))
    await deliver(sink, 1, rowsTo(1))
    await own.freeze()
    const stop = new AbortController()
    const going = sink.deliver(deliveryOf(west, at(2), fiveMegabytes()), stop.signal)
    setTimeout(() => stop.abort(new Error('enough')), 300)
    await expect(going).rejects.toThrow('enough')
    own.thaw()
    await deliver(sink, 2, fiveMegabytes())
    expect(await deliver(sink, 2, fiveMegabytes())).toMatchObject({ written: 0 })
    expect(texts(await rowsIn(own.url, place.stream, west))).toEqual(texts(fiveMegabytes()))
  })

  test('loses nothing while the server is away, killed in the middle, and back', async () => {
    const own = await startNats(program)
    onTestFinished(() => own[Symbol.asyncDispose]())
    const place = aPlace()
    const sink = await opened(declared(own.url, place))
    await deliver(sink, 1, rowsTo(5))
    const going = deliver(sink, 2, fiveMegabytes()).then(
      () => undefined,
      (error: unknown) => error,
    )
    await own.kill()
    const broken = await going
    if (broken !== undefined) expect(broken).toMatchObject({ errorClass: 'transient' })
    expect(await failure(deliver(sink, 3, rowsTo(6)))).toMatchObject({
      errorClass: 'transient',
      message: expect.stringContaining(`NATS at 127.0.0.1:${own.port}`),
    })
    expect(await sink.probe(never)).toMatchObject({ verified: false })
    await own.start()
    await expect.poll(() => deliver(sink, 4, rowsTo(7)).then(({ written }) => written, String)).toBe(1)
    expect(texts(await rowsIn(own.url, place.stream, west))).toEqual(texts(rowsTo(7)))
  })

  test('gives a token before user and password, and says no part of either', async () => {
    const own = await startNats(program, 'authorization { token: "t0ken-of-the-server" }')
    onTestFinished(() => own[Symbol.asyncDispose]())
    const place = aPlace()
    const as = (credentials: Record<string, Uint8Array>) => opened(declared(own.url, place, {}, { credentials }))
    const both = { username: bytes('u'), password: bytes('wr0ng-password') }
    await deliver(await as({ ...both, token: bytes('t0ken-of-the-server\n') }), 1, rowsTo(1))
    const refused = await failure(deliver(await as(both), 1, rowsTo(1)))
    expect(refused.errorClass).toBe('terminal')
    expect(refused.message).toContain('does not take the credentials')
    expect(`${refused.message} ${(await (await as(both)).probe(never)).message}`).not.toMatch(/wr0ng/)
    expect((await failure(as({ username: bytes('u') }))).message).toContain('has no password')
    const inUrl = declared(`nats://u:s3cret@127.0.0.1:${own.port}`, place)
    expect((await failure(opened(inUrl))).message).not.toContain('s3cret')
  })

  test('names a right that its user lacks', async () => {
    const user = '{ user: "u", password: "pw-of-u", permissions: { publish: ["$JS.API.>"], subscribe: ">" } }'
    const own = await startNats(program, `authorization { users: [ ${user} ] }`)
    onTestFinished(() => own[Symbol.asyncDispose]())
    const credentials = { username: bytes('u'), password: bytes('pw-of-u') }
    const refused = await failure(deliver(await opened(declared(own.url, aPlace(), {}, { credentials })), 1, rowsTo(1)))
    expect(refused).toMatchObject({ errorClass: 'forbidden', message: expect.stringContaining('publish on inventory') })
  })

  test('says that there is no JetStream', async () => {
    const own = await startNats(program, '', 'disabled')
    onTestFinished(() => own[Symbol.asyncDispose]())
    const refused = await failure(deliver(await opened(declared(own.url, aPlace())), 1, rowsTo(1)))
    expect(refused.message).toMatch(/JetStream/)
  })

  test('speaks TLS with the CAs of the sink, and takes no certificate of others unless told to', async () => {
    const authority = await TestAuthority.make('nats')
    const { cert, key } = await authority.sign('server', 'server')
    const { mkdtemp, rm, writeFile } = await import('node:fs/promises')
    const directory = await mkdtemp('/tmp/nats-tls-')
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    await writeFile(`${directory}/cert.pem`, cert)
    await writeFile(`${directory}/key.pem`, key)
    const own = await startNats(program, `tls { cert_file: "${directory}/cert.pem", key_file: "${directory}/key.pem" }`)
    onTestFinished(() => own[Symbol.asyncDispose]())
    const sinkOf = (spec: Partial<KollectEventSinkSpec>, more: Partial<EventDeclaration> = {}) =>
      opened(declared(own.url, aPlace(), spec, more))
    expect(await deliver(await sinkOf({ tls: {} }, { caBundle: authority.pem }), 1, rowsTo(1))).toMatchObject({
      written: 1,
    })
    expect((await failure(deliver(await sinkOf({ tls: {} }), 1, rowsTo(1)))).message).toMatch(/certificate/)
    await deliver(await sinkOf({ tls: { insecureSkipVerify: true } }), 1, rowsTo(1))
    expect((await failure(deliver(await sinkOf({}), 1, rowsTo(1)))).message).toContain('asks for TLS')
  })
})
