import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager, type StreamConfig } from '@nats-io/jetstream'
import { connect, type NatsConnection, nkeys } from '@nats-io/transport-node'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { type ClusterState, systemClock, Table } from '#model'
import { type NatsConfig, parseNatsCreds, parseNatsServers } from '#nats'
import { type Logger, Metrics } from '#runtime'
import { natsPrograms, startNats, type TestNats } from '../../platform/nats/testing/nats-server.ts'
import { slowWay } from '../../platform/nats/testing/slow-way.ts'
import { freePort } from '../../platform/runtime/testing/free-port.ts'
import { TestAuthority } from '../ingest/stream/test/certificates.ts'
import { eventually } from '../state/test/redis-server.ts'
import { ClusterPublisher, type PublisherOptions } from './index.ts'
import { aCluster, podRows, TestState } from './testing/clusters.ts'
import { readEvent, type SeenEvent } from './testing/events.ts'

const SLOW_MS = 30_000
const PERIOD_MS = 200
const west = () => aCluster('west', podRows({ 'core/web': [['web', 1, false]] }))

const natsAt = (port: number, more: Partial<NatsConfig> = {}): NatsConfig => ({
  servers: [{ host: '127.0.0.1', port, tls: false }],
  ...more,
})

/** What is logged, by level. */
class Lines implements Logger {
  readonly said: { readonly level: string; readonly sentence: string }[] = []
  #add = (level: string) => (_: object, sentence: string) => void this.said.push({ level, sentence })
  trace = this.#add('trace')
  debug = this.#add('debug')
  info = this.#add('info')
  warn = this.#add('warn')
  error = this.#add('error')
  child = () => this
  warnings = () => this.said.filter(({ level }) => level === 'warn').map(({ sentence }) => sentence)
}

function aPublisher(nats: NatsConfig, state: TestState, more: Partial<PublisherOptions> = {}) {
  const lines = new Lines()
  const metrics = new Metrics({}, { processMetrics: false })
  const options = { nats, state, defaultCluster: 'west', periodMs: PERIOD_MS, metrics, logger: lines, ...more }
  const publisher = ClusterPublisher.start(options)
  onTestFinished(() => publisher[Symbol.asyncDispose]())
  const count = async (name: string, labels: Record<string, string> = {}) => {
    const found = (await metrics.moment()).find((one) => one.name === `clusterpulse_nats_${name}`)
    const fits = (found?.values ?? []).filter((one) =>
      Object.entries(labels).every(([label, value]) => (one.labels as Record<string, unknown>)[label] === value),
    )
    return fits.reduce((sum, { value }) => sum + value, 0)
  }
  return { publisher, lines, count }
}

/** A token as NATS has them, signed with a key of its issuer. */
function jwtOf(issuer: ReturnType<typeof nkeys.createUser>, subject: typeof issuer, nats: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const keys = { iss: issuer.getPublicKey(), sub: subject.getPublicKey() }
  const claims = { jti: 'x', iat: Math.floor(Date.now() / 1000), name: 'test', ...keys, nats }
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`
}

interface Kept {
  readonly subject: string
  readonly msgId: string
  readonly header: (name: string) => string
  readonly bytes: Uint8Array
  readonly event: SeenEvent
}

/** All of a stream, in its order, read by somebody of his own. */
async function kept(server: TestNats, stream = 'CLUSTER', as: object = {}): Promise<readonly Kept[]> {
  const nc = await connect({ servers: server.url.replace('nats://', ''), ...as })
  try {
    const manager = await jetstreamManager(nc)
    const { state } = await manager.streams.info(stream)
    const all: Kept[] = []
    for (let seq = state.first_seq; seq > 0 && seq <= state.last_seq; seq++) {
      const message = await manager.streams.getMessage(stream, { seq })
      if (!message) continue
      all.push({
        subject: message.subject,
        msgId: message.header.get('Nats-Msg-Id'),
        header: (name) => message.header.get(name),
        bytes: message.data,
        event: readEvent(message.subject.endsWith('pods') ? 'pods' : 'metrics', message.data),
      })
    }
    return all
  } finally {
    await nc.close()
  }
}

const keptOr = (server: TestNats, stream?: string, as?: object) => kept(server, stream, as).catch(() => [])

async function manage<T>(server: TestNats, work: (nc: NatsConnection) => Promise<T>): Promise<T> {
  const nc = await connect({ servers: server.url.replace('nats://', '') })
  try {
    return await work(nc)
  } finally {
    await nc.close()
  }
}

const makeStream = (server: TestNats, config: Partial<StreamConfig> & { readonly name: string }) =>
  manage(server, async (nc) => (await jetstreamManager(nc)).streams.add(config))
const streamOf = (server: TestNats, name = 'CLUSTER') =>
  manage(server, async (nc) => (await (await jetstreamManager(nc)).streams.info(name)).config)

for (const [at, program] of natsPrograms.entries())
  describe(`publishing to ${program.name}`, { timeout: 3 * SLOW_MS, tags: at === 0 ? [] : ['again'] }, () => {
    const open: TestNats[] = []
    const server = async (...args: [config?: string, jetStream?: string]) => {
      const started = await startNats(program, ...args)
      open.push(started)
      return started
    }
    afterEach(async () => {
      for (const one of open.splice(0)) await one[Symbol.asyncDispose]()
    })
    const test = it.skipIf(program.missing !== undefined)

    test('makes the stream as the original does, and keeps both subjects of the default cluster there', async () => {
      const nats = await server()
      aPublisher(
        natsAt(nats.port),
        new TestState().with(west).with(() => aCluster('eu.north', podRows({}))),
      )
      const wanted = ['cluster.eu_north.metrics', 'cluster.eu_north.pods', 'cluster.metrics', 'cluster.pods']
      await eventually(
        'all subjects are there',
        async () => {
          const seen = new Set((await keptOr(nats)).map(({ subject }) => subject))
          return wanted.every((subject) => seen.has(subject))
        },
        SLOW_MS,
      )
      const all = await kept(nats)
      expect([...new Set(all.map(({ subject }) => subject))].sort()).toEqual(wanted)
      for (const { subject, event, header } of all) {
        expect(event.metadata.entity_id).toBe(subject.includes('eu_north') ? 'eu.north' : 'west')
        expect(event.metadata.event_id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
        expect([header('part'), header('parts')]).toEqual(['1', '1'])
      }
      const pods = (subject: string) => all.find((one) => one.subject === subject)?.event.pods
      expect(pods('cluster.pods')).toEqual([
        { name: 'web', namespace: 'core', restart_count: 1, oom_killed: false, container: 'web' },
      ])
      expect(pods('cluster.eu_north.pods')).toEqual([])
      expect(all.find(({ subject }) => subject === 'cluster.metrics')?.event.nodes).toMatchObject([{ name: 'n1' }])
      expect(await streamOf(nats)).toMatchObject({
        ...{ subjects: ['cluster.>'], retention: 'limits', storage: 'file', discard: 'old', num_replicas: 1 },
        ...{ max_msgs: 1_000_000, max_bytes: 2 ** 30, max_age: 7 * 24 * 3600 * 1e9 },
      })
    })

    test('numbers a tick alike in two hubs, so that the stream has it once', async () => {
      const nats = await server()
      const state = () => new TestState().with(west)
      const [one, other] = [aPublisher(natsAt(nats.port), state()), aPublisher(natsAt(nats.port), state())]
      await eventually(
        'both published',
        async () => (await one.count('published_total')) >= 10 && (await other.count('published_total')) >= 10,
        SLOW_MS,
      )
      const ids = (await kept(nats)).map(({ msgId }) => msgId)
      expect(new Set(ids).size).toBe(ids.length)
      const sum = (await one.count('published_total')) + (await other.count('published_total'))
      expect(ids.length).toBeLessThan(sum)
    })

    test('goes on with a server that comes later, goes and comes: one warning for each change, and nothing old', async () => {
      const nats = await server()
      await nats.kill()
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually(
        'ticks are dropped',
        async () => (await count('dropped_total', { reason: 'disconnected' })) >= 4,
        SLOW_MS,
      )
      expect(await count('connected')).toBe(0)
      expect(lines.warnings()).toHaveLength(1)
      expect(lines.warnings()[0]).toContain(`NATS at 127.0.0.1:${nats.port} is not reached`)
      await nats.start()
      await eventually('it publishes', async () => (await count('published_total')) >= 4, SLOW_MS)
      expect(await count('connected')).toBe(1)
      await nats.kill()
      await eventually('it notices', async () => (await count('connected')) === 0, SLOW_MS)
      const before = await count('dropped_total', { reason: 'disconnected' })
      await eventually(
        'ticks are dropped',
        async () => (await count('dropped_total', { reason: 'disconnected' })) >= before + 20,
        SLOW_MS,
      )
      const back = Date.now()
      await nats.start()
      const published = await count('published_total')
      await eventually('it publishes again', async () => (await count('published_total')) >= published + 4, SLOW_MS)
      expect(lines.warnings()).toHaveLength(2)
      const all = await kept(nats)
      const ids = all.map(({ msgId }) => msgId)
      expect(new Set(ids).size).toBe(ids.length)
      // Ticks of the time without a server are not there, but for two periods before it came back.
      const tickOf = ({ msgId }: Kept) => Number(msgId.split('.').at(-1))
      const ticks = all.filter(({ subject }) => subject === 'cluster.pods').map(tickOf)
      const gap = Math.max(...ticks.map((tick, i) => tick - (ticks[i - 1] ?? tick)))
      expect(gap).toBeGreaterThanOrEqual(8)
      const first = ticks.findIndex((tick, i) => i > 0 && tick - ticks[i - 1]! === gap)
      expect(ticks[first]! * PERIOD_MS).toBeGreaterThan(back - 3 * PERIOD_MS)
    })

    test('gives up a server that does not answer, and sends it nothing more until it does', async () => {
      const nats = await server()
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it publishes', async () => (await count('published_total')) >= 4, SLOW_MS)
      const froze = Date.now()
      await nats.freeze()
      await eventually(
        'ticks give way to newer ones',
        async () => (await count('dropped_total', { reason: 'replaced' })) >= 4,
        SLOW_MS,
      )
      await eventually('it notices', async () => (await count('connected')) === 0, SLOW_MS)
      await eventually(
        'it tried again',
        async () => (await count('dropped_total', { reason: 'disconnected' })) >= 30,
        SLOW_MS,
      )
      const thawed = Date.now()
      nats.thaw()
      const published = await count('published_total')
      await eventually('it publishes again', async () => (await count('published_total')) >= published + 4, SLOW_MS)
      const ids = (await kept(nats)).map(({ msgId }) => msgId)
      expect(new Set(ids).size).toBe(ids.length)
      const late = ids
        .map((id) => Number(id.split('.').at(-1)) * PERIOD_MS)
        .filter((at) => at > froze && at < thawed - 3 * PERIOD_MS)
      // One of each subject was on its way.
      expect(late.length).toBeLessThanOrEqual(2)
      expect(lines.warnings().length).toBeLessThanOrEqual(3)
    })

    test('stays connected to a server that answers late, and publishes there', async () => {
      const nats = await server()
      await using way = await slowWay(nats.port)
      const { publisher, count } = aPublisher(natsAt(way.port), new TestState().with(west))
      await eventually('it publishes', async () => (await count('published_total')) >= 2, SLOW_MS)
      way.delayMs = 2600
      await eventually('ticks wait', async () => (await count('dropped_total', { reason: 'replaced' })) >= 20, SLOW_MS)
      const published = await count('published_total')
      await eventually('it publishes on', async () => (await count('published_total')) >= published + 4, SLOW_MS)
      expect([way.taken, await count('connected'), await count('failed_total')]).toEqual([1, 1, 0])
      await publisher[Symbol.asyncDispose]()
    })

    test('says that it may not publish', async () => {
      const user =
        '{ user: hub, password: pass, permissions: { publish: ["$JS.API.>", "cluster.metrics"], subscribe: ["_INBOX.>"] } }'
      const nats = await server(`authorization { users: [${user}] }`)
      const credentials = { kind: 'password', user: 'hub', password: 'pass' } as const
      const { lines, count } = aPublisher(natsAt(nats.port, { credentials }), new TestState().with(west))
      await eventually(
        'the one is kept',
        async () => (await count('published_total', { kind: 'metrics' })) >= 2,
        SLOW_MS,
      )
      await eventually(
        'the other is refused',
        async () => (await count('failed_total', { kind: 'pods' })) >= 2,
        SLOW_MS,
      )
      expect(lines.warnings()).toEqual([
        expect.stringMatching(/published on cluster\.pods is not kept \(.*[Pp]ermission/),
      ])
    })

    test('takes a stream as somebody else made it', async () => {
      const nats = await server()
      const theirs = {
        name: 'CLUSTER',
        subjects: ['cluster.>', 'other.>'],
        max_msgs: 50,
        max_msgs_per_subject: 2,
        storage: 'memory',
      } as const
      await makeStream(nats, theirs as unknown as StreamConfig)
      const before = await streamOf(nats)
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it publishes', async () => (await count('published_total')) >= 8, SLOW_MS)
      expect(await streamOf(nats)).toEqual(before)
      expect(lines.warnings()).toEqual([])
    })

    test('says which subject a stream of other settings does not cover, and publishes there once it does', async () => {
      const nats = await server()
      await makeStream(nats, { name: 'CLUSTER', subjects: ['cluster.metrics'] })
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually(
        'the covered subject is kept',
        async () => (await count('published_total', { kind: 'metrics' })) >= 2,
        SLOW_MS,
      )
      await eventually('the other is not', async () => (await count('failed_total', { kind: 'pods' })) >= 2, SLOW_MS)
      expect(lines.warnings().join('\n')).toContain(
        'with the subjects cluster.metrics, which do not cover cluster.pods',
      )
      expect(lines.warnings().length).toBeLessThanOrEqual(2)
      await manage(nats, async (nc) =>
        (await jetstreamManager(nc)).streams.update('CLUSTER', { subjects: ['cluster.>'] }),
      )
      await eventually('pods are kept', async () => (await count('published_total', { kind: 'pods' })) >= 2, SLOW_MS)
      await eventually(
        'it says so',
        () => lines.said.some(({ sentence }) => sentence === 'the stream takes what is published'),
        SLOW_MS,
      )
    })

    test('stays connected where somebody hears what no stream takes', async () => {
      const nats = await server()
      await makeStream(nats, { name: 'CLUSTER', subjects: ['cluster.metrics'] })
      await manage(nats, async (nc) => {
        nc.subscribe('cluster.>')
        const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
        await eventually(
          'it is connected',
          async () => (await count('published_total', { kind: 'metrics' })) > 0,
          SLOW_MS,
        )
        const before = await count('dropped_total', { reason: 'disconnected' })
        await eventually('pods are not kept', async () => (await count('failed_total', { kind: 'pods' })) >= 2, SLOW_MS)
        const published = await count('published_total', { kind: 'metrics' })
        await eventually(
          'the others are',
          async () => (await count('published_total', { kind: 'metrics' })) >= published + 20,
          SLOW_MS,
        )
        expect(await count('connected')).toBe(1)
        expect(await count('dropped_total', { reason: 'disconnected' })).toBe(before)
        expect(lines.warnings().join('\n')).not.toContain('ended')
      })
    })

    test('makes the stream again where somebody deleted it', async () => {
      const nats = await server()
      const { count, lines } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it publishes', async () => (await count('published_total')) >= 2, SLOW_MS)
      await manage(nats, async (nc) => (await jetstreamManager(nc)).streams.delete('CLUSTER'))
      await eventually('the stream is back', async () => (await keptOr(nats)).length > 0, SLOW_MS)
      // JetStream was there all the time.
      const said = lines.said.map(({ sentence }) => sentence).join('\n')
      expect(said).toContain('is not kept (no stream takes it: CLUSTER is looked at')
      expect(said).not.toContain('not enabled')
    })

    test('publishes into the stream of another name that has its subjects, and says so', async () => {
      const nats = await server()
      await makeStream(nats, { name: 'EVERYTHING', subjects: ['cluster.>'] })
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it publishes', async () => (await count('published_total')) >= 2, SLOW_MS)
      expect(lines.warnings()).toEqual([
        expect.stringContaining('the stream EVERYTHING has subjects of cluster.> already'),
      ])
      expect(await keptOr(nats, 'EVERYTHING')).not.toEqual([])
    })

    test('goes on where a stream is full and takes nothing new: one warning', async () => {
      const nats = await server()
      await makeStream(nats, { name: 'CLUSTER', subjects: ['cluster.>'], max_msgs: 3, discard: 'new' } as never)
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it is refused', async () => (await count('failed_total')) >= 8, SLOW_MS)
      expect(lines.warnings()).toEqual([
        expect.stringMatching(/^what is published on cluster\.(pods|metrics) is not kept \(/),
      ])
      await manage(nats, async (nc) => (await jetstreamManager(nc)).streams.purge('CLUSTER'))
      const published = await count('published_total')
      await eventually('it publishes again', async () => (await count('published_total')) > published, SLOW_MS)
    })

    test('tells in words that JetStream is not there, and publishes once it is', async () => {
      const nats = await server('', 'disabled')
      const { lines, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it is refused', async () => (await count('failed_total')) >= 2, SLOW_MS)
      expect(lines.warnings().join('\n')).toMatch(/JetStream does not answer .* start nats-server with -js/)
    })

    test('splits what is large, also below what a server takes', async () => {
      const nats = await server('max_payload: 65536')
      const rows = podRows(
        Object.fromEntries(Array.from({ length: 6000 }, (_, i) => [`team/web-${i}`, [['web', i, i % 2 === 0]]])),
      )
      const { count } = aPublisher(
        natsAt(nats.port),
        new TestState().with(() => aCluster('west', rows)),
      )
      await eventually('it publishes', async () => (await count('published_total', { kind: 'pods' })) >= 2, SLOW_MS)
      const all = (await kept(nats)).filter(({ subject }) => subject === 'cluster.pods')
      const [first] = all
      const parts = all.filter((one) => one.header('snapshot') === first?.header('snapshot'))
      expect(parts.length).toBeGreaterThan(2)
      expect(parts.map(({ header }) => header('part'))).toEqual(parts.map((_, i) => String(i + 1)))
      expect(parts.every(({ header }) => header('parts') === String(parts.length))).toBe(true)
      expect(parts.every(({ bytes }) => bytes.length < 65536)).toBe(true)
      expect(parts.flatMap(({ event }) => event.pods ?? [])).toHaveLength(6000)
      expect(new Set(parts.map(({ msgId }) => msgId)).size).toBe(parts.length)
      expect(new Set(parts.map(({ event }) => event.metadata.event_id)).size).toBe(parts.length)
    })

    test.each([
      [
        'a user and a password',
        'authorization { user: hub, password: "s3cret-word" }',
        { kind: 'password', user: 'hub', password: 's3cret-word' },
        { user: 'hub', pass: 's3cret-word' },
      ],
      [
        'a token',
        'authorization { token: "s3cret-word" }',
        { kind: 'token', token: 's3cret-word' },
        { token: 's3cret-word' },
      ],
    ] as const)('shows %s, and says that they are refused without them', async (_, config, credentials, as) => {
      const nats = await server(config)
      const without = aPublisher(natsAt(nats.port), new TestState().with(west))
      const known = aPublisher(natsAt(nats.port, { credentials }), new TestState().with(west))
      await eventually('it publishes', async () => (await known.count('published_total')) >= 2, SLOW_MS)
      expect(await kept(nats, 'CLUSTER', as)).not.toEqual([])
      await eventually('the other is refused', () => without.lines.warnings().length === 1, SLOW_MS)
      expect(without.lines.warnings()[0]).toMatch(
        /is there and refuses the hub \(.*Authorization Violation.*; check NATS_USER/i,
      )
      expect(JSON.stringify([without.lines.said, known.lines.said])).not.toContain('s3cret-word')
    })

    test('shows a key, or the credentials of an account', async () => {
      const seedOf = (pair: ReturnType<typeof nkeys.createUser>) => new TextDecoder().decode(pair.getSeed())
      const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()]
      const system = nkeys.createAccount()
      const named = { kind: 'nkey', seed: seedOf(user) } as const
      const byKey = await server(`authorization { users: [ { nkey: ${user.getPublicKey()} } ] }`)
      const first = aPublisher(natsAt(byKey.port, { credentials: named }), new TestState().with(west))
      const open = {
        mem_storage: -1,
        disk_storage: -1,
        streams: -1,
        consumer: -1,
        conn: -1,
        subs: -1,
        data: -1,
        payload: -1,
      }
      const tokens = {
        operator: jwtOf(operator, operator, { type: 'operator', version: 2 }),
        account: jwtOf(operator, account, {
          type: 'account',
          version: 2,
          limits: { ...open, imports: -1, exports: -1, wildcards: true },
        }),
        user: jwtOf(account, user, { type: 'user', version: 2, subs: -1, data: -1, payload: -1, pub: {}, sub: {} }),
      }
      const systemToken = jwtOf(operator, system, { type: 'account', version: 2, limits: {} })
      const accounts = `${account.getPublicKey()}: ${tokens.account}, ${system.getPublicKey()}: ${systemToken}`
      const resolver = `resolver: MEMORY\nresolver_preload: { ${accounts} }\nsystem_account: ${system.getPublicKey()}`
      const byCreds = await server(`operator: ${tokens.operator}\n${resolver}`)
      const creds = `-----BEGIN NATS USER JWT-----\n${tokens.user}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seedOf(user)}\n------END USER NKEY SEED------`
      const credentials = parseNatsCreds(creds)
      if ('fault' in credentials) throw new Error(credentials.fault)
      const second = aPublisher(natsAt(byCreds.port, { credentials }), new TestState().with(west))
      await eventually(
        'both publish',
        async () => (await first.count('published_total')) > 0 && (await second.count('published_total')) > 0,
        SLOW_MS,
      )
    })

    test('speaks TLS, verifies the name that it was given, and says why it does not go on', async () => {
      const directory = await mkdtemp(join(tmpdir(), 'nats-tls-'))
      onTestFinished(() => rm(directory, { recursive: true, force: true }))
      const [ours, others] = [await TestAuthority.make('ours'), await TestAuthority.make('others')]
      const [shown, own] = [await ours.sign('nats', 'server'), await ours.sign('hub', 'client')]
      const files = { crt: shown.cert, key: shown.key, ca: ours.pem }
      for (const [name, pem] of Object.entries(files)) await writeFile(join(directory, name), pem)
      const [cert, key, ca] = ['crt', 'key', 'ca'].map((name) => `"${directory}/${name}"`)
      const nats = await server(`tls { cert_file: ${cert}, key_file: ${key}, ca_file: ${ca}, verify: true }`)
      const over = (
        tls: boolean,
        roots: TestAuthority,
        { host = '127.0.0.1', pair = own as Partial<typeof own> } = {},
      ) =>
        aPublisher(
          { servers: [{ host, port: nats.port, tls }], tls: { ca: roots.pem, ...pair } },
          new TestState().with(west),
        )
      const good = over(true, ours)
      await eventually('it publishes', async () => (await good.count('published_total')) >= 1, SLOW_MS)
      for (const [refused, words] of [
        [over(true, others), /certificate|signature/],
        [over(true, ours, { host: 'localhost' }), /altnames/],
        [over(true, ours, { pair: {} }), /NATS at/],
        [over(false, ours), /asks for TLS: write tls:/],
      ] as const) {
        await eventually('it is refused', () => refused.lines.warnings().length === 1, SLOW_MS)
        expect(refused.lines.warnings()[0]).toMatch(words)
        expect(await refused.count('published_total')).toBe(0)
      }
    })

    test('ends at once while it connects, waits or publishes', async () => {
      const nats = await server()
      const { publisher, count } = aPublisher(natsAt(nats.port), new TestState().with(west))
      await eventually('it publishes', async () => (await count('published_total')) >= 2, SLOW_MS)
      await publisher[Symbol.asyncDispose]()
      const absent = aPublisher(natsAt(await freePort()), new TestState().with(west))
      await absent.publisher[Symbol.asyncDispose]()
    })
  })

describe('what is published', () => {
  const [program] = natsPrograms
  if (!program) throw new Error('there is a program')
  const test = it.skipIf(program.missing !== undefined)
  const dropped = async (change: (cluster: ClusterState) => ClusterState, kind: 'pods' | 'metrics') => {
    await using nats = await startNats(program)
    const { publisher, count } = aPublisher(
      natsAt(nats.port),
      new TestState().with(() => change(west())),
    )
    await eventually(
      'it is dropped',
      async () => (await count('dropped_total', { kind, reason: 'unread' })) >= 2,
      SLOW_MS,
    )
    expect(await count('published_total', { kind })).toBe(0)
    await publisher[Symbol.asyncDispose]()
  }
  const withTable = (cluster: ClusterState, id: string, change: object) => {
    const state = cluster.tables.get(id)!
    return { ...cluster, tables: new Map(cluster.tables).set(id, { ...state, ...change }) }
  }

  test('is no cluster whose newest read of pods failed', () =>
    dropped((one) => withTable(one, 'pods', { outcome: 'unreachable' }), 'pods'))
  for (const kind of ['pods', 'metrics'] as const)
    test(`are no ${kind} of a cluster whose newest round failed, whatever was read before`, () =>
      dropped(
        (one) => ({ ...one, heartbeats: [...one.heartbeats, { at: Date.now(), health: 'unhealthy', durationMs: 0 }] }),
        kind,
      ))
  test('is no cluster that nobody read of late', () =>
    dropped(
      (one) => ({ ...aCluster('west', podRows({}), Date.now() - 600_000), connection: one.connection }),
      'metrics',
    ))
  test('are no percents of a time when the metrics API answered', () =>
    dropped((one) => withTable(one, 'node-usage', { outcome: 'unreachable' }), 'metrics'))
  test('are no pods of an agent that does not tell of containers', () =>
    dropped(
      (one) =>
        withTable(one, 'pods', { rows: Table.of(['status'], [{ namespace: 'a', name: 'b', labels: {}, values: {} }]) }),
      'pods',
    ))
  test('are conditions without percents, where a cluster has no metrics API', async () => {
    await using nats = await startNats(program)
    const state = new TestState().with(() => withTable(west(), 'node-usage', { outcome: 'absent' }))
    const { publisher, count } = aPublisher(natsAt(nats.port), state)
    await eventually('it is published', async () => (await count('published_total', { kind: 'metrics' })) >= 1, SLOW_MS)
    const found = (await kept(nats)).find(({ subject }) => subject === 'cluster.metrics')
    expect(found?.event.nodes).toMatchObject([{ name: 'n1', cpu_percent: 0, memory_percent: 0 }])
    await publisher[Symbol.asyncDispose]()
  })

  test('is looked at each period, so that usage is read as often', async () => {
    await using nats = await startNats(program)
    const looks: string[] = []
    const { publisher } = aPublisher(natsAt(nats.port), new TestState().with(west), {
      look: (name) => looks.push(name),
    })
    await eventually('it looks', () => looks.length >= 3, SLOW_MS)
    expect(new Set(looks)).toEqual(new Set(['west']))
    await publisher[Symbol.asyncDispose]()
  })

  it('waits for no server that takes connections and says nothing', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as AddressInfo
    const { lines, count } = aPublisher(natsAt(port), new TestState().with(west))
    await eventually(
      'ticks are dropped',
      async () => (await count('dropped_total', { reason: 'disconnected' })) >= 4,
      SLOW_MS,
    )
    await eventually('it says so', () => lines.warnings().length === 1, SLOW_MS)
    expect(lines.warnings()[0]).toMatch(/is not reached \(.*timeout/)
  })

  it('is not sent to where nothing is to be asked', async () => {
    const { lines } = aPublisher(
      { servers: [{ host: '169.254.169.254', port: 4222, tls: false }] },
      new TestState().with(west),
    )
    await eventually('it says so', () => lines.warnings().length === 1, SLOW_MS)
    expect(lines.warnings()[0]).toContain('OUTBOUND_ALLOW')
  })
})

describe('an address of NATS', () => {
  it.each([
    ['nats://nats:4222', [{ host: 'nats', port: 4222, tls: false }]],
    ['nats', [{ host: 'nats', port: 4222, tls: false }]],
    [
      'tls://a.example:4443, nats://[::1]:4222',
      [
        { host: 'a.example', port: 4443, tls: true },
        { host: '::1', port: 4222, tls: false },
      ],
    ],
  ])('%s is read', (text, servers) => expect(parseNatsServers(text)).toEqual(servers))

  it.each([
    '',
    'http://nats',
    'nats://',
    'nats://nats:0',
    'nats://nats:99999',
    'nats://a b',
    'nats://[zz]:1',
    'nats://hub:s3cret@nats',
    'nats://s3cret@nats,b',
  ])('%j is refused in words that tell no secret', (text) => {
    const refused = parseNatsServers(text)
    expect(refused).toHaveProperty('fault')
    expect(JSON.stringify(refused)).not.toContain('s3cret')
  })
})

describe('the default cluster', () => {
  it('is warned of once where somebody named one that the hub does not know', async () => {
    const port = await freePort()
    let laterMs = 0
    const clock = { ...systemClock, now: () => Date.now() + laterMs }
    const at = (defaultCluster: string) =>
      aPublisher(natsAt(port), new TestState().with(west), { defaultCluster, expectsDefault: true, clock }).lines
    const said = (lines: Lines) =>
      lines.warnings().filter((line) => line.startsWith('DEFAULT_CLUSTER names no cluster'))
    const [unknown, known] = [at('prod-eu-1'), at('west')]
    expect(said(unknown)).toEqual([])
    laterMs = 60_000
    await eventually('it is said', () => said(unknown).length > 0, SLOW_MS)
    expect([said(unknown).length, said(known).length]).toEqual([1, 0])
  })
})
