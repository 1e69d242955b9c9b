import { setImmediate as turn } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type Clock, parseClusterName, systemClock } from '#model'
import { encodeRequest } from '#wire'
import { cpuMs } from '../../../../test/cpu.ts'
import { aBatch, aNode, complete, T0, west } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { defaultLimits } from '../line/limits.ts'
import { bodyOf, FrameRefusedError } from './frames.ts'
import { Offenders } from './offenders.ts'
import { Session } from './session.ts'
import type { SessionWorld } from './session-events.ts'
import { type Payload, StreamClient } from './test/clients.ts'
import { aHub } from './test/hub.ts'
import { frame, hello, OwnAgent } from './test/own-agent.ts'
import type { Peer } from './types.ts'

const batch = (sequence: number, cluster = west) =>
  aBatch(cluster, sequence, [complete('node', aNode('n1'))], { source: 'push', collectedAt: Date.now() })

const bomb = deflateRawSync(Buffer.alloc(64 * 2 ** 20))

/** A cheap source of numbers, so that a failure can be repeated. */
function numbers(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % below
  }
}

const good = encodeRequest({ payload: frame(batch(1)) })
const values = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, 1e308, -0]

/** The n-th bad message: cut, flipped, random, impossible numbers, bombs, and fields that do not fit. */
function badMessage(n: number, pick: (below: number) => number): Uint8Array {
  const value = () => values[pick(values.length)] ?? 0
  switch (n % 7) {
    case 0:
      return good.slice(0, pick(good.length))
    case 1: {
      const bytes = good.slice()
      for (let i = 0; i <= pick(4); i++) bytes[pick(bytes.length)] = pick(256)
      return bytes
    }
    case 2:
      return Uint8Array.from({ length: pick(64) }, () => pick(256))
    case 3:
      return encodeRequest({
        payload: { case: 'frame', value: { sequence: value(), base: value(), collectedAtMs: value(), body: good } },
      })
    case 4: {
      const value = { sequence: 1 + pick(9), compression: 1, bodyBytes: [1000, 2 ** 31, 0][pick(3)] ?? 0, body: bomb }
      return encodeRequest({ payload: { case: 'frame', value } })
    }
    case 5:
      return encodeRequest({
        payload: {
          case: 'loss',
          value: { sequence: value(), lost: [{ first: value(), last: value() }], fromMs: value(), count: value() },
        },
      })
    default:
      return encodeRequest({
        payload: { case: 'health', value: { oldestBufferedMs: value(), bufferedBytes: value(), lostBatches: value() } },
      })
  }
}

const world: SessionWorld = {
  limits: {
    ...defaultLimits,
    messagesPerSecond: 1e9,
    bytesPerSecond: 1e12,
    inflatedBytesPerSecond: 1e12,
  },
  tls: false,
  verify: () => ({ refused: 'unknown' }),
  stillValid: () => true,
  pauseMs: () => 0,
  badFrame: () => false,
  knows: () => true,
  received: () => [],
  heardTo: () => undefined,
  planOf: () => undefined,
  enter: () => ({ epoch: 1, doubt: undefined, originals: { last: 0, recent: [] } }),
  random: () => 0.5,
}

function openSession(): Session {
  const session = new Session(world, T0)
  session.on({ kind: 'opened', verdict: { peer: { cluster: west, method: 'token', credential: '' } } }, T0)
  session.on({ kind: 'message', bytes: encodeRequest({ payload: hello({ now: () => T0 }) }) }, T0)
  return session
}

describe('bad frames', () => {
  it('inflate no further than they say, nor than allowed', () => {
    const of = (bodyBytes: number, body: Uint8Array, compression = 1) =>
      ({ compression, bodyBytes, body }) as Parameters<typeof bodyOf>[0]
    expect(bodyOf(of(3, deflateRawSync(Buffer.from('abc'))), defaultLimits)).toEqual(Buffer.from('abc'))
    for (const [bodyBytes, body, compression] of [
      [1_000, bomb, 1],
      [64 * 2 ** 20, bomb, 1],
      [0, bomb, 1],
      [4, deflateRawSync(Buffer.from('abc')), 1],
      [3, Buffer.from('not deflate'), 1],
      [3, Buffer.from('abc'), 9],
    ] as const)
      expect(() => bodyOf(of(bodyBytes, body, compression), defaultLimits)).toThrow(FrameRefusedError)
  })

  it('that would become a thousand times what they weigh are refused before anything is inflated', () => {
    const small = deflateRawSync(Buffer.alloc(31 * 2 ** 20))
    const before = process.cpuUsage()
    for (let i = 0; i < 1_000; i++)
      expect(() => bodyOf({ compression: 1, bodyBytes: 31 * 2 ** 20, body: small } as never, defaultLimits)).toThrow(
        /inflated/,
      )
    expect(cpuMs(before), 'ms of CPU').toBeLessThan(500)
    // What batches are like passes: rows that differ in little.
    const rows = Buffer.from(
      Array.from({ length: 60_000 }, (_, n) => `{"name":"pod-${n}","phase":"Running"}`).join(','),
    )
    const body = deflateRawSync(rows)
    const honest = { compression: 1, bodyBytes: rows.length, body } as never
    expect(bodyOf(honest, defaultLimits).length).toBe(rows.length)
  })

  it('end their stream after a few, and what inflates is charged whole', () => {
    const offenders = new Offenders({ ...systemClock, now: () => T0 }, defaultLimits.maxBadFrames)
    const badFrame = (peer: Peer) => offenders.badFrame(peer)
    const session = new Session({ ...world, limits: defaultLimits, badFrame }, T0)
    session.on({ kind: 'opened', verdict: { peer: { cluster: west, method: 'token', credential: '' } } }, T0)
    session.on({ kind: 'message', bytes: encodeRequest({ payload: hello({ now: () => T0 }) }) }, T0)
    const bad = (sequence: number) =>
      encodeRequest({
        payload: {
          case: 'frame',
          value: { sequence, compression: 1, bodyBytes: 20 * 2 ** 20, body: new Uint8Array(64) },
        },
      })
    let sent = 0
    const waits: number[] = []
    while (!session.hasEnded && sent < 100) {
      session.on({ kind: 'message', bytes: bad(++sent) }, T0)
      waits.push(session.readAfterMs(T0))
    }
    expect(sent).toBe(defaultLimits.maxBadFrames)
    // Four seconds of what may be inflated are free; the fourth frame is beyond them by one.
    expect(waits.slice(0, 4)).toEqual([0, 0, 0, 1_000])
  })

  it('do no harm: 20 000 of them, no exception, no growth', () => harmless(20_000))
  it('do no harm: 100 000 of them, no exception, no growth', { tags: ['long'] }, () => harmless(100_000))
  const harmless = async (all: number) => {
    const pick = numbers(7)
    let session = openSession()
    const feed = async (count: number) => {
      for (let n = 0; n < count; n++) {
        for (const effect of session.on({ kind: 'message', bytes: badMessage(n, pick) }, T0)) {
          if (effect.kind === 'accept') session.on({ kind: 'accepted', ticket: effect.ticket }, T0)
        }
        if (session.hasEnded) session = openSession()
        if (n % 100 === 0) await turn() // as between messages of a socket: buffers are given back then
      }
    }
    await feed(all / 2)
    const before = process.memoryUsage().rss
    await feed(all / 2)
    expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(64)
  }

  it('leave other streams as they are, over the wire', async () => {
    await using hub = await aHub()
    const { address } = hub.server
    const east = parseClusterName('east')
    const { agent: other } = await OwnAgent.connect({ address, token: 'east-token', cluster: 'east' })
    await using _other = other
    const pick = numbers(3)
    let n = 0
    for (let round = 1; round <= 40; round++) {
      await using bad = new StreamClient({ address, token: 'west-token' })
      bad.send(hello({ origin: `bad-${round}` }))
      for (let i = 0; i < 10; i++) bad.sendBytes(badMessage(n++, pick))
      bad.finish()
      other.push(batch(round, east))
      await Promise.all([bad.ended(), other.ackedTo(round)])
    }
    expect(hub.server.agents.facts('east')).toMatchObject({ connected: true })
  })

  it('pause their credential: it is told to wait when it comes back too early, and is served after that', async () => {
    let laterMs = 0
    const clock: Clock = { now: () => Date.now() + laterMs, sleep: (ms, signal) => systemClock.sleep(ms, signal) }
    await using hub = await aHub({ clock })
    const { address } = hub.server
    // One on each stream: however they are spread, they are of one credential.
    for (let sequence = 1; sequence <= defaultLimits.maxBadFrames; sequence++) {
      const { agent } = await OwnAgent.connect({ address, token: 'west-token' })
      await using bad = agent
      const value = { sequence, compression: 1, bodyBytes: 31 * 2 ** 20, body: bomb }
      bad.sendBytes(encodeRequest({ payload: { case: 'frame', value } }))
      expect(await bad.next('ack')).toMatchObject({ success: false })
      if (sequence < defaultLimits.maxBadFrames) continue
      expect(await bad.next('goodbye')).toMatchObject({ code: 'bad_frames', retryAfterMs: 60_000 })
    }
    for (const token of ['west-token', undefined]) {
      await using early = new StreamClient({ address, ...(token && { token }) })
      early.send(hello({ token: 'west-token' }))
      const { code, retryAfterMs } = await early.next('goodbye')
      expect(code).toBe('early')
      expect(retryAfterMs).toBeGreaterThan(30_000)
      expect(retryAfterMs).toBeLessThan(60_000)
    }
    const { agent: other } = await OwnAgent.connect({ address, token: 'east-token', cluster: 'east' })
    await using _other = other
    laterMs = 60_000
    const { agent: again } = await OwnAgent.connect({ address, token: 'west-token' })
    await using _again = again
    again.push(batch(1))
    await again.ackedTo(1)
  })

  it('of a size beyond the limit end their own stream only', async () => {
    await using hub = await aHub({ limits: { maxMessageBytes: 2 ** 20 } })
    const { address } = hub.server
    const { agent: other } = await OwnAgent.connect({ address, token: 'east-token', cluster: 'east' })
    await using _other = other
    const { agent: giant, welcome } = await OwnAgent.connect({ address, token: 'west-token' })
    await using _giant = giant
    expect(welcome.maxMessageBytes).toBe(2 ** 20)
    giant.sendBytes(new Uint8Array(2 ** 21))
    expect((await giant.ended()).code).toBe(8)
    await eventually('its place is free', () => hub.server.agents.facts('west')?.connected === false)
    other.push(batch(1, parseClusterName('east')))
    await other.ackedTo(1)
  })

  it('of an original are refused by their ack when they are too large, and the stream goes on', async () => {
    await using hub = await aHub({ limits: { maxOriginalMessageBytes: 1_000 } })
    await using client = new StreamClient({ address: hub.server.address, token: 'west-token' })
    const metrics = (batchId: string, name: string): Payload => ({
      case: 'metrics',
      value: { clusterName: 'west', batchId, nodeMetrics: [{ name, status: 'Ready' }] },
    })
    client.send({ case: 'register', value: { clusterName: 'west', token: 'west-token' } })
    client.send(metrics('large', 'n'.repeat(1_000)))
    client.send(metrics('nameless', ''))
    client.send(metrics('good', 'n1'))
    expect(await client.next('ack')).toMatchObject({ batchId: 'large', success: false })
    expect(await client.next('ack')).toMatchObject({ batchId: 'nameless', success: false })
    expect(await client.next('ack')).toMatchObject({ batchId: 'good', success: true })
  })
})
