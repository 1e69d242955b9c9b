import { once } from 'node:events'
import { connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { viewOf } from '#wire'
import { eventually } from '../../state/test/redis-server.ts'
import { frame } from '../stream/test/own-agent.ts'
import { GREETING_BYTES, greetingTo, UNREAD_BYTES } from './messages.ts'
import { someOwners } from './test/owners.ts'
import { aRelay, type TestPeer } from './test/relays.ts'
import { batchOf, connect as connectAgent, metricOf, namesOf } from './test/words.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Writes as much as it is let until so many bytes are written, as a session does. */
function aWriter() {
  let wake: (() => void) | undefined
  return {
    drained: () => wake?.(),
    written: 0,
    async write(line: { write(message: Uint8Array): boolean }, bytes: number, size: number): Promise<void> {
      while (this.written < bytes) {
        const flows = line.write(new Uint8Array(size))
        this.written += size
        if (!flows) await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}

describe('what an owner says to peers of other fronts', () => {
  it('waits for one that reads nothing with so many bytes and no more, and flows to the others', async () => {
    await using relay = await aRelay()
    const [slow, fast] = [aWriter(), aWriter()]
    const SIZE = 8 * 1024
    const stuck = await relay.stream({ drained: slow.drained })
    const free = await relay.stream({ drained: fast.drained })
    stuck.peer.isSlow = true
    const stuckDone = slow.write(stuck.arrival.line, 4 * UNREAD_BYTES, SIZE)
    await fast.write(free.arrival.line, 64 * UNREAD_BYTES, SIZE)
    await eventually('all of it has come', () => free.peer.bytes === 64 * UNREAD_BYTES)
    expect(slow.written).toBe(UNREAD_BYTES)
    expect(stuck.peer.bytes).toBe(UNREAD_BYTES)
    // It reads again: the rest follows.
    stuck.peer.drain()
    await stuckDone
    await eventually('the rest has come', () => stuck.peer.bytes === 4 * UNREAD_BYTES)
  })

  it('comes whole and in order, however slow each of them is in turn', async () => {
    await using relay = await aRelay()
    const step = fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 90_000 }), fc.boolean())
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const streams = await Promise.all([0, 1, 2].map(() => relay.stream()))
        const said: number[][] = [[], [], []]
        for (const [which, size, isSlow] of steps) {
          const { peer, arrival } = streams[which] ?? streams[0] ?? fail()
          if (isSlow) peer.isSlow = true
          else if (peer.isSlow) peer.drain()
          said[which]?.push(size)
          arrival.line.write(new Uint8Array(size).fill(size % 251))
          if (size % 3 === 0) await turn()
        }
        for (const { arrival } of streams) arrival.line.end(14, 'over')
        await eventually('all have ended', () => streams.every(({ peer }) => peer.status !== undefined))
        const heard = ({ heard }: TestPeer) => heard.map((bytes) => [bytes.length, bytes[0]])
        expect(streams.map(({ peer }) => heard(peer))).toEqual(said.map((sizes) => sizes.map((s) => [s, s % 251])))
        for (const { peer } of streams) peer.subscriber?.closed('', 0)
      }),
      { numRuns: 40 },
    )
    expect(relay.front.carried).toBe(0)
  })
})

describe('a peer at the door of another owner that reads nothing', () => {
  it('is read no further after a while, holds up nobody, and has all its answers once it reads', async () => {
    const [slowOne, quickOne] = namesOf(2, 2, 2)
    if (!slowOne || !quickOne) throw new Error('there are two')
    const limits = { messagesPerSecond: 1e6, bytesPerSecond: 1e9, inflatedBytesPerSecond: 1e9 }
    await using fleet = await someOwners({ clusters: [slowOne, quickOne], limits })
    const [front, owner] = fleet.owners
    if (!front || !owner) throw new Error('there are two')
    await using slow = (await connectAgent(front, slowOne)).agent
    await using quick = (await connectAgent(front, quickOne)).agent
    slow.pause()
    const SENT = 9_000
    // Each is answered twice: its base is not known.
    const batch = batchOf(slowOne, 1)
    const base = { sequence: 9_999_999, view: viewOf(batch) }
    for (let sequence = 1; sequence <= SENT; sequence++) slow.send(frame({ ...batch, sequence }, { base, plain: true }))
    const taken = () => metricOf(owner, 'clusterpulse_agent_messages_total{what="resync"}')
    let [before, now, acked] = [-1, 0, 0]
    while (now === 0 || now !== before) {
      before = now
      for (const last = acked + 25; acked < last; ) {
        quick.push(batchOf(quickOne, ++acked))
        await quick.ackedTo(acked)
      }
      now = await taken()
    }

    expect(now).toBeLessThan(SENT)
    slow.resume()
    await eventually('all are answered', () => slow.received.length === 2 * SENT, 100_000)
  })
})

describe('what peers say', () => {
  it('is let through one by one, as the owner asks, and then their end', async () => {
    await using relay = await aRelay()
    const heard: string[] = []
    const { peer, arrival } = await relay.stream({
      message: (bytes) => heard.push(Buffer.from(bytes).toString()),
      finished: () => heard.push('finished'),
      closed: () => heard.push('closed'),
    })
    expect(peer.allowed).toBe(1) // of the first message, which came
    for (let i = 0; i < 5; i++) {
      arrival.line.allow('member')
      await eventually('it is allowed', () => peer.allowed === i + 2)
      peer.subscriber?.message(Buffer.from(`message ${i}`))
      await eventually('it is heard', () => heard.length === i + 1)
    }
    peer.subscriber?.finished()
    peer.subscriber?.closed('', 0)
    await eventually('the end is heard', () => heard.length === 7)
    expect(heard).toEqual([...[0, 1, 2, 3, 4].map((i) => `message ${i}`), 'finished', 'closed'])
  })

  it('ends with the front: the owner hears that each of its lines closed', async () => {
    await using relay = await aRelay()
    let closed = 0
    const streams = await Promise.all([1, 2, 3].map(() => relay.stream({ closed: () => closed++ })))
    await relay.front[Symbol.asyncDispose]()
    await eventually('all are closed', () => closed === 3)
    expect(streams.map(({ peer }) => peer.status?.status)).toEqual([14, 14, 14])
  })
})

describe('whatever comes to the socket of an owner', () => {
  it('does no harm to it nor to the streams of real fronts', async () => {
    const [cluster] = namesOf(2, 2, 1)
    if (!cluster) throw new Error('there is one')
    await using fleet = await someOwners({ clusters: [cluster] })
    const [first] = fleet.owners
    if (!first) throw new Error('there are two')
    await using agent = (await connectAgent(first, cluster)).agent
    let sequence = 0
    const greeting = greetingTo(2, 2)
    expect(greeting).toHaveLength(GREETING_BYTES)
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      // The greeting of another division, and what is said after one that was cut.
      fc.uint8Array({ maxLength: 100 }).map((rest) => Buffer.concat([greetingTo(2, 3), rest])),
      fc
        .tuple(fc.nat(GREETING_BYTES - 1), fc.uint8Array({ maxLength: 200 }))
        .map(([cut, rest]) => Buffer.concat([greeting.subarray(0, cut), rest])),
      // No frame is so small, none so large.
      fc.constantFrom(0, 8, 2 ** 31, 2 ** 32 - 1).map((size) => {
        const bytes = Buffer.alloc(GREETING_BYTES + 4)
        bytes.set(greeting)
        bytes.writeUInt32LE(size, GREETING_BYTES)
        return bytes
      }),
    )
    await fc.assert(
      fc.asyncProperty(garbage, async (bytes) => {
        const socket = connect({ path: `${fleet.directory}/2.sock` })
        const closed = once(socket, 'close')
        socket.on('error', () => undefined) // it is closed while we still write
        socket.resume().end(bytes)
        await closed
      }),
      { numRuns: 300 },
    )
    agent.push(batchOf(cluster, ++sequence))
    await agent.ackedTo(sequence)
  })
})

function fail(): never {
  throw new Error('there are three')
}
