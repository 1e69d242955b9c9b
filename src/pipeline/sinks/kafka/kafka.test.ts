import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { canonicalRow, type Row } from '#extract'
import type { KollectEventSinkSpec } from '#kinds'
import { EventReader } from '../events/testing/event-reader.ts'
import { openSink } from '../open.ts'
import { type EventDeclaration, type Sink, type SinkContext, SinkError, type Writing } from '../sink.ts'
import { aRow, at, contextOf, deliveryOf, rowsTo, sinkContract, writingOf } from '../testing/contract.ts'
import { KafkaSink } from './kafka.ts'
import { kafkaMissing, startKafka, type TestKafka, users } from './testing/kafka-broker.ts'
import { readTopic } from './testing/read-topic.ts'
import { groupOf } from './writers.ts'

const SLOW_MS = 60_000
const never = new AbortController().signal
const west = writingOf('west')
const bytes = (text: string) => new TextEncoder().encode(text)
const texts = (rows: readonly Row[]) => rows.map(canonicalRow).sort()
const fiveMegabytes = () => Array.from({ length: 2500 }, (_, n) => aRow(n, { text: `${n}`.padEnd(2000, 'x') }))
let topics = 0
const aTopic = () => `inventory-${++topics}`

const declared = (
  brokers: string,
  topic: string,
  spec: Partial<KollectEventSinkSpec> = {},
  more: Partial<EventDeclaration> = {},
): EventDeclaration => ({
  ...{ namespace: 'team-a', name: 'events', cluster: 'west', credentials: {} },
  spec: { type: 'kafka', kafka: { brokers: [brokers], topic }, ...spec },
  ...more,
})

async function opened(declaration: EventDeclaration, context: Partial<SinkContext> = {}): Promise<Sink> {
  const sink = await openSink('event', declaration, contextOf(context))
  onTestFinished(() => sink[Symbol.asyncDispose]())
  return sink
}
const deliver = (sink: Sink, sequence: number, rows: readonly Row[], more = {}) =>
  sink.deliver(deliveryOf(west, at(sequence), rows, more), never)
const failure = (work: Promise<unknown>): Promise<SinkError> =>
  work.then(
    () => Promise.reject(new Error('it was taken')),
    (error: unknown) => (error instanceof SinkError ? error : Promise.reject(error)),
  )

describe.skipIf(kafkaMissing !== undefined)(
  `a sink in Kafka${kafkaMissing === undefined ? '' : ` (not run: ${kafkaMissing})`}`,
  { timeout: 3 * SLOW_MS },
  () => {
    let kafka: TestKafka
    beforeAll(async () => {
      kafka = await startKafka()
    }, 4 * SLOW_MS)
    afterAll(() => kafka?.[Symbol.asyncDispose]())

    const administer = async <T>(work: (admin: ReturnType<Kafka['admin']>) => Promise<T>): Promise<T> => {
      const client = new Kafka({ clientId: 'test', brokers: [kafka.address], logLevel: logLevel.NOTHING })
      const admin = client.admin()
      await admin.connect()
      try {
        return await work(admin)
      } finally {
        await admin.disconnect()
      }
    }
    const make = (topic: string, settings: Readonly<Record<string, string>> = {}) =>
      administer((admin) => {
        const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
        return admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }], waitForLeaders: true })
      })
    const rowsIn = async (topic: string, writing: Writing) =>
      EventReader.of(await readTopic(kafka.address, topic)).rows(writing) ?? []

    sinkContract('keeps what every sink promises', {
      missing: kafkaMissing,
      isAskedWhatItHolds: false,
      countsKept: false,
      sequences: 12,
      harness: async () => {
        const topic = aTopic()
        return {
          open: (cluster) => openSink('event', declared(kafka.address, topic, {}, { cluster }), contextOf()),
          read: (writing) => rowsIn(topic, writing),
          writes: async () => (await readTopic(kafka.address, topic)).length,
        }
      },
    })

    it('stops two clusters of one name while both are alive, and goes on, for readers too, when one of them is not', async () => {
      const topic = aTopic()
      const as = (writer: string) => {
        const sink = new KafkaSink(declared(kafka.address, topic), contextOf({ writer }), {
          aliveMs: 1000,
          joinAfterMs: 0,
        })
        onTestFinished(() => sink[Symbol.asyncDispose]())
        return sink
      }
      const [one, same, clone] = [as('pod-a in cluster 1'), as('pod-a in cluster 1'), as('pod-c in cluster 2')]
      // Whoever claims another namespace of the cluster is in nobody's way, and nobody in his.
      const claims = as('pod-z in cluster 3')
      const claimed = { ...west, namespace: 'team-z' }
      await claims.deliver(deliveryOf(claimed, at(1), rowsTo(1)), never)
      await deliver(one, 1, rowsTo(3))
      await deliver(same, 2, rowsTo(3))
      await clone.deliver(deliveryOf(west, at(1, Date.now()), rowsTo(5)), never)
      const conflictOf = (sink: Sink, epoch: number, rows: readonly Row[]) => async () => {
        const look = deliveryOf(west, at(2, epoch), rows, { isLook: true })
        return (await sink.deliver(look, never)).conflict
      }
      const timeout = SLOW_MS
      await expect.poll(conflictOf(one, 1, rowsTo(3)), { timeout }).toMatch(/^pod-c in cluster 2 writes.*west, too/)
      await expect.poll(conflictOf(clone, Date.now(), rowsTo(5)), { timeout }).toMatch(/^pod-a in cluster 1 writes/)
      expect(await deliver(one, 3, rowsTo(4))).toMatchObject({ written: 0 })
      expect(await claims.deliver(deliveryOf(claimed, at(2), rowsTo(2)), never)).toMatchObject({ written: 1 })
      await clone[Symbol.asyncDispose]()
      let position = at(4)
      await expect
        .poll(
          async () => {
            const receipt = await one.deliver(deliveryOf(west, position, rowsTo(4)), never)
            position = { epoch: receipt.position.epoch + 1n, sequence: 1n }
            return receipt.written
          },
          { timeout },
        )
        .toBe(1)
      expect(await rowsIn(topic, west)).toHaveLength(4)
    })

    it('writes nothing where it starts while an agent of another cluster writes under its name, and goes on once that is gone', {
      tags: ['again'],
    }, async () => {
      const topic = aTopic()
      const as = (writer: string) => {
        const sink = new KafkaSink(declared(kafka.address, topic), contextOf({ writer }), { joinAfterMs: 0 })
        onTestFinished(() => sink[Symbol.asyncDispose]())
        return sink
      }
      const one = as('pod-a in cluster 1')
      await deliver(one, 1, rowsTo(3))
      const group = groupOf(topic, west)
      const members = () =>
        administer((admin) => admin.describeGroups([group])).then(({ groups }) => groups[0]?.members.length)
      await expect.poll(members, { timeout: SLOW_MS }).toBe(1)
      // Of its own cluster: as one that was killed.
      const next = as('pod-b in cluster 1')
      expect(await deliver(next, 2, rowsTo(3))).toMatchObject({ written: 1 })
      await next[Symbol.asyncDispose]()
      const written = (await readTopic(kafka.address, topic)).length
      const clone = as('pod-c in cluster 2')
      const first = await clone.deliver(deliveryOf(west, at(1, Date.now()), rowsTo(5)), never)
      expect(first).toMatchObject({ written: 0, conflict: expect.stringMatching(/^pod-[ab] in cluster 1 writes/) })
      expect(await readTopic(kafka.address, topic)).toHaveLength(written)
      await one[Symbol.asyncDispose]()
      let position = at(2, Date.now())
      await expect
        .poll(
          async () => {
            const receipt = await clone.deliver(deliveryOf(west, position, rowsTo(5)), never)
            position = { epoch: receipt.position.epoch + 1n, sequence: 1n }
            return receipt.written
          },
          { timeout: SLOW_MS },
        )
        .toBe(1)
      expect(await rowsIn(topic, west)).toHaveLength(5)
    })

    it('is in the way of nobody once no inventory of a namespace is written to it any more', async () => {
      const topic = aTopic()
      const sink = new KafkaSink(declared(kafka.address, topic), contextOf({ writer: 'pod-a in cluster 1' }), {
        joinAfterMs: 0,
      })
      onTestFinished(() => sink[Symbol.asyncDispose]())
      const other = writingOf('west', 'other')
      for (const writing of [west, other]) await sink.deliver(deliveryOf(writing, at(1), rowsTo(2)), never)
      const members = () =>
        administer((admin) => admin.describeGroups([groupOf(topic, west)])).then(
          ({ groups }) => groups[0]?.members.length,
        )
      await expect.poll(members, { timeout: SLOW_MS }).toBe(1)
      await sink.leave(west)
      expect(await members()).toBe(1)
      await sink.remove(other, at(2), never)
      await expect.poll(members, { timeout: SLOW_MS }).toBe(0)
      expect(await rowsIn(topic, west)).toHaveLength(2)
    })

    it('makes a compacted topic with the partitions of the broker, and keys by cluster and inventory', async () => {
      const topic = aTopic()
      const sink = await opened(declared(kafka.address, topic))
      expect(await sink.probe(never)).toMatchObject({ verified: true, warnings: [] })
      await deliver(sink, 1, rowsTo(3))
      await sink.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(2)), never)
      const messages = await readTopic(kafka.address, topic)
      expect(messages.map(({ key }) => key).sort()).toEqual(['east/team-a/workloads', 'west/team-a/workloads'])
      const [facts] = await administer((admin) =>
        admin.fetchTopicMetadata({ topics: [topic] }).then((one) => one.topics),
      )
      expect(facts?.partitions).toHaveLength(3)
      const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['cleanup.policy'] }
      const { resources } = await administer((admin) =>
        admin.describeConfigs({ resources: [resource], includeSynonyms: false }),
      )
      expect(resources[0]?.configEntries[0]?.configValue).toBe('compact')
      expect(sink.preview(west)).toMatchObject({ kafka: { topic }, provisioningMode: 'ensure' })
    })

    it('is written again where a look finds the topic gone, made anew or empty, by whoever wrote it', async () => {
      const topic = aTopic()
      const other = writingOf('west', 'other')
      const look = (sink: Sink, writing: Writing, sequence: number) =>
        sink.deliver(deliveryOf(writing, at(sequence), rowsTo(3), { isLook: true }), never)
      const sink = await opened(declared(kafka.address, topic))
      for (const writing of [west, other]) await sink.deliver(deliveryOf(writing, at(1), rowsTo(3)), never)
      for (const writing of [west, other]) expect(await look(sink, writing, 2)).toMatchObject({ written: 0 })
      await administer((admin) => admin.deleteTopics({ topics: [topic] }))
      const there = () => administer((admin) => admin.listTopics())
      await expect.poll(there, { timeout: SLOW_MS }).not.toContain(topic)
      for (const writing of [west, other]) expect(await look(sink, writing, 3)).toMatchObject({ written: 1 })
      for (const writing of [west, other]) expect(await look(sink, writing, 4)).toMatchObject({ written: 0 })
      expect([await rowsIn(topic, west), await rowsIn(topic, other)].map((rows) => rows.length)).toEqual([3, 3])

      const next = await opened(declared(kafka.address, topic))
      expect(await look(next, west, 5)).toMatchObject({ written: 0 })
      const empty = await opened(declared(kafka.address, aTopic()))
      expect(await look(empty, west, 5)).toMatchObject({ written: 1 })
    })

    it('is written again where a look finds that the topic let go of it by age or size, and warned of', async () => {
      const topic = aTopic()
      const configEntries = [{ name: 'cleanup.policy', value: 'compact,delete' }]
      await administer((admin) => admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }] }))
      const look = (sink: Sink, sequence: number) =>
        sink.deliver(deliveryOf(west, at(sequence), rowsTo(3), { isLook: true }), never)
      const sink = await opened(declared(kafka.address, topic))
      expect((await sink.probe(never)).warnings).toEqual([expect.stringContaining('forgets messages by age or size')])
      await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), never)
      expect(await look(sink, 2)).toMatchObject({ written: 0 })
      await administer(async (admin) => {
        await admin.fetchTopicOffsets(topic) // which loads what the next call needs
        await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '-1' }] })
      })
      expect(await rowsIn(topic, west)).toEqual([])
      expect(await look(sink, 3)).toMatchObject({ written: 1 })
      expect(await look(sink, 4)).toMatchObject({ written: 0 })
      expect(await rowsIn(topic, west)).toHaveLength(3)
      // Who starts knows no more than that the topic forgets.
      const next = await opened(declared(kafka.address, topic))
      expect(await look(next, 5)).toMatchObject({ written: 1 })
      expect(await look(next, 6)).toMatchObject({ written: 0 })
    })

    it('writes nothing into a topic whose bytes cannot hold it, until it may be larger', async () => {
      const topic = aTopic()
      const configEntries = [
        { name: 'cleanup.policy', value: 'delete' },
        { name: 'retention.bytes', value: '1000000' },
      ]
      await administer((admin) => admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }] }))
      const sink = await opened(declared(kafka.address, topic))
      await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), never)
      const large = Array.from({ length: 1000 }, (_, n) => aRow(n, { text: `${n}`.padEnd(2000, 'x') }))
      const refused = await failure(sink.deliver(deliveryOf(west, at(2), large), never))
      expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('keeps 1000000 bytes') })
      expect(await rowsIn(topic, west)).toHaveLength(3)
      const [, bytes = ''] = /retention\.bytes=(\d+)/.exec(refused.message) ?? []
      await administer((admin) =>
        admin.alterConfigs({
          validateOnly: false,
          resources: [
            {
              type: ConfigResourceTypes.TOPIC,
              name: topic,
              configEntries: [
                { name: 'cleanup.policy', value: 'delete' },
                { name: 'retention.bytes', value: bytes },
              ],
            },
          ],
        }),
      )
      await sink.deliver(deliveryOf(west, at(3), large), never)
      expect(await rowsIn(topic, west)).toHaveLength(1000)
    })

    it('is read by the console consumer of Kafka, headers, key and rows', async () => {
      const topic = aTopic()
      const sink = await opened(declared(kafka.address, topic))
      await deliver(sink, 1, rowsTo(3))
      await sink.remove(west, at(2), never)
      const lines = (await kafka.consoleConsumer(topic, 2)).trimEnd().split('\n')
      const [first, last] = lines.map((line) => {
        const [headers = '', key, ...value] = line.split('\t')
        return { headers: headers.split(','), key, value: JSON.parse(value.join('\t')) }
      })
      expect(first?.key).toBe('west/team-a/workloads')
      expect(first?.headers).toContain('kollect.dev/cluster:west')
      expect(first?.headers).toContain('kollect.dev/sequence:1')
      expect(first?.value.payload.items).toEqual(JSON.parse(JSON.stringify([...rowsTo(3)])))
      expect(last?.headers).toContain('kollect.dev/sequence:2')
      expect(last?.value.payload).toMatchObject({ itemCount: 0, items: [], complete: true })
    })

    it('leaves topics alone where that is said, and says that there is none', async () => {
      const topic = aTopic()
      const sink = await opened(declared(kafka.address, topic, { provisioning: { mode: 'existing' } }))
      const refused = await failure(deliver(sink, 1, rowsTo(1)))
      expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('kafka-topics.sh') })
      expect(await sink.probe(never)).toMatchObject({ verified: false, message: refused.message })
      expect(await administer((admin) => admin.listTopics())).not.toContain(topic)
      await make(topic, { 'cleanup.policy': 'delete' })
      await deliver(sink, 1, rowsTo(1))
      expect(await rowsIn(topic, west)).toHaveLength(1)
      expect((await sink.probe(never)).warnings).toEqual([expect.stringContaining('cleanup.policy delete')])
    })

    it('carries 5 MB in parts of one partition, below what the topic takes', async () => {
      const topic = aTopic()
      await administer((admin) =>
        admin.createTopics({
          topics: [{ topic, numPartitions: 6, configEntries: [{ name: 'max.message.bytes', value: '300000' }] }],
        }),
      )
      const sink = await opened(declared(kafka.address, topic))
      const receipt = await deliver(sink, 1, fiveMegabytes())
      expect(receipt.written).toBeGreaterThanOrEqual(17)
      const messages = await readTopic(kafka.address, topic)
      expect(new Set(messages.map(({ partition }) => partition)).size).toBe(1)
      expect(new Set(messages.map(({ key }) => key)).size).toBe(receipt.written)
      expect(messages.at(-1)?.key).toBe('west/team-a/workloads')
      expect(texts(await rowsIn(topic, west))).toEqual(texts(fiveMegabytes()))
    })

    it('makes its parts smaller where the topic takes less than before, and says so of one that takes nothing', async () => {
      const topic = aTopic()
      await make(topic)
      const sink = await opened(declared(kafka.address, topic))
      await deliver(sink, 1, rowsTo(1))
      const allow = (bytes: number) =>
        administer((admin) =>
          admin.alterConfigs({
            validateOnly: false,
            resources: [
              {
                type: ConfigResourceTypes.TOPIC,
                name: topic,
                configEntries: [{ name: 'max.message.bytes', value: String(bytes) }],
              },
            ],
          }),
        )
      await allow(100_000)
      expect((await deliver(sink, 2, rowsTo(2000))).written).toBeGreaterThan(3)
      expect(await rowsIn(topic, west)).toHaveLength(2000)
      await allow(500)
      const refused = await failure(deliver(sink, 3, rowsTo(2001)))
      expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('max.message.bytes') })
      expect(await rowsIn(topic, west)).toHaveLength(2000)
      // Whoever mends it and has the sink tested need not wait.
      await allow(2_000_000)
      expect(await sink.probe(never)).toMatchObject({
        verified: true,
        message: expect.stringContaining('up to 2000000 bytes'),
      })
      expect((await deliver(sink, 4, rowsTo(2002))).written).toBe(1)
      expect(await rowsIn(topic, west)).toHaveLength(2002)
    })

    it('keeps a complete snapshot beside one that may lack rows when the topic is compacted', async () => {
      const topic = aTopic()
      await make(topic, {
        ...{ 'cleanup.policy': 'compact', 'segment.ms': '100', 'min.cleanable.dirty.ratio': '0.001' },
        'delete.retention.ms': '100',
      })
      const sink = await opened(declared(kafka.address, topic))
      await deliver(sink, 1, rowsTo(5))
      await deliver(sink, 2, rowsTo(10))
      for (let sequence = 3; sequence < 6; sequence++)
        await deliver(sink, sequence, [aRow(sequence, { sequence })], { complete: false })
      const other = writingOf('west', 'other')
      // A segment is closed by what comes after it, and only closed ones are compacted.
      let sequence = 0
      await expect
        .poll(
          async () => {
            await sink.deliver(deliveryOf(other, at(++sequence), rowsTo(sequence % 5)), never)
            return (await readTopic(kafka.address, topic)).map(({ key }) => key).filter((key) => !key.includes('other'))
          },
          { timeout: 90_000, interval: 500 },
        )
        .toEqual(['west/team-a/workloads', 'west/team-a/workloads#incomplete'])
      const expected = rowsTo(10).map((row, n) => (n === 5 ? aRow(5, { sequence: 5 }) : row))
      expect(texts(await rowsIn(topic, west))).toEqual(texts(expected))
    })

    it('speaks TLS and SCRAM or PLAIN as it is told, and says no part of a password', async () => {
      const topic = aTopic()
      const as = (
        { username, password }: { readonly username: string; readonly password: string },
        spec: Partial<KollectEventSinkSpec> = {},
        caBundle: string | undefined = kafka.ca,
      ) =>
        opened(
          declared(
            kafka.secure,
            topic,
            { tls: {}, ...spec },
            {
              credentials: { username: bytes(username), password: bytes(password) },
              ...(caBundle !== '' && { caBundle }),
            },
          ),
        )
      await deliver(await as(users.writer), 1, rowsTo(1))
      await deliver(await as(users.writer, { options: { sasl_mechanism: 'PLAIN' } }), 2, rowsTo(2))
      await deliver(await as(users.writer, { tls: { insecureSkipVerify: true } }, ''), 3, rowsTo(3))
      expect(await rowsIn(topic, west)).toHaveLength(3)

      for (const sasl_mechanism of ['SCRAM-SHA-256', 'PLAIN']) {
        const sink = await as({ username: 'writer', password: 'wr0ng-password' }, { options: { sasl_mechanism } })
        const refused = await failure(deliver(sink, 4, rowsTo(4)))
        expect(refused).toMatchObject({ errorClass: 'terminal', message: expect.stringContaining('credentials') })
        expect(`${refused.message} ${(await sink.probe(never)).message}`).not.toContain('wr0ng')
      }
      const stranger = await failure(deliver(await as(users.stranger), 4, rowsTo(4)))
      expect(stranger).toMatchObject({ errorClass: 'forbidden', message: expect.stringContaining('allow it Describe') })
      const untrusted = await failure(deliver(await as(users.writer, {}, ''), 4, rowsTo(4)))
      expect(untrusted).toMatchObject({ errorClass: 'transient', message: expect.stringMatching(/certificate/) })
      const nobody = await opened(declared(kafka.secure, topic, { tls: {} }, { caBundle: kafka.ca }))
      expect((await failure(deliver(nobody, 4, rowsTo(4)))).message).toMatch(/may want credentials \(secretRef\)/)
      const inTheClear = await opened(declared(kafka.secure, topic, {}, {}))
      expect((await failure(deliver(inTheClear, 4, rowsTo(4)))).message).toMatch(/it speaks TLS/)
    })

    it('is not connected to a broker that says it is at a metadata address', async () => {
      const topic = aTopic()
      await make(topic)
      const sink = await opened(declared(kafka.renamed, topic))
      const refused = await failure(deliver(sink, 1, rowsTo(1)))
      expect(refused).toMatchObject({
        errorClass: 'terminal',
        message: expect.stringMatching(/169\.254\.169\.254.*metadata/),
      })
      expect(await sink.probe(never)).toMatchObject({
        verified: false,
        message: expect.stringContaining('169.254.169.254'),
      })
    })

    it('ends with its signal, also while the broker hangs', async () => {
      const topic = aTopic()
      const sink = await opened(declared(kafka.address, topic))
      await deliver(sink, 1, rowsTo(1))
      onTestFinished(() => kafka.thaw())
      await kafka.freeze()
      const stop = new AbortController()
      const going = sink.deliver(deliveryOf(west, at(2), rowsTo(2)), stop.signal)
      setTimeout(() => stop.abort(new Error('enough')), 300)
      await expect(going).rejects.toThrow('enough')
      kafka.thaw()
      // Whether the second one came through is unknown: what was there before it is written again.
      await expect.poll(() => deliver(sink, 3, rowsTo(1)).then(({ written }) => written, String)).toBe(1)
      expect(await deliver(sink, 4, rowsTo(1))).toMatchObject({ written: 0 })
      expect(await rowsIn(topic, west)).toHaveLength(1)
    })

    it('loses nothing while the broker is away, killed in the middle, and back', async () => {
      const topic = aTopic()
      const sink = await opened(declared(kafka.address, topic))
      await deliver(sink, 1, rowsTo(5))
      const going = deliver(sink, 2, fiveMegabytes()).then(
        () => undefined,
        (error: unknown) => error,
      )
      await kafka.kill()
      const broken = await going
      if (broken !== undefined) expect(broken).toMatchObject({ errorClass: 'transient' })
      expect(await failure(deliver(sink, 3, rowsTo(6)))).toMatchObject({
        errorClass: 'transient',
        message: expect.stringContaining(`Kafka at ${kafka.address}`),
      })
      await kafka.start()
      await expect
        .poll(() => deliver(sink, 4, rowsTo(7)).then(({ written }) => written, String), { timeout: SLOW_MS })
        .toBe(1)
      expect(texts(await rowsIn(topic, west))).toEqual(texts(rowsTo(7)))
    })
  },
)
