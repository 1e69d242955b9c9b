import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Batch,
  type BatchView,
  type FleetError,
  inRanges,
  type Ranges,
  StoreUnavailableError,
  withRange,
} from '#model'
import { encodeRequest, originalFromBatch, viewOf } from '#wire'
import { aBatch, aNode, complete, T0, west } from '../../state/test/fleet-words.ts'
import { BaseMismatchError, InvalidBatchError } from '../errors.ts'
import { defaultLimits, type StreamLimits } from '../line/limits.ts'
import { Session } from './session.ts'
import type { Answer, Effect, SessionWorld } from './session-events.ts'
import type { Payload } from './test/clients.ts'
import { frame, hello } from './test/own-agent.ts'
import type { Peer } from './types.ts'

const peer: Peer = { cluster: west, method: 'token', credential: 'west' }

function aWorld(changes: Partial<SessionWorld> & { readonly limit?: Partial<StreamLimits> } = {}): SessionWorld {
  const { limit, ...rest } = changes
  return {
    limits: { ...defaultLimits, ...limit },
    tls: false,
    verify: () => ({ peer }),
    stillValid: () => true,
    pauseMs: () => 0,
    badFrame: () => false,
    knows: () => true,
    received: () => [],
    heardTo: () => undefined,
    planOf: () => undefined,
    enter: () => ({ epoch: 1, doubt: undefined, originals: { last: 0, recent: [] } }),
    random: () => 0.5,
    ...rest,
  }
}

const bytesOf = (payload: Payload) => encodeRequest({ payload })
const sent = (effects: readonly Effect[]): Answer[] =>
  effects.flatMap((effect) => (effect.kind === 'send' ? [effect.answer] : []))
const offered = (effects: readonly Effect[]) => effects.filter((effect) => effect.kind === 'accept')

/** A session past its registration, and a way to say things to it. */
function registered(world = aWorld(), payload = hello({ now: () => T0 })) {
  const session = new Session(world, T0)
  let now = T0
  const tell = (event: Parameters<Session['on']>[0], afterMs = 0) => {
    now += afterMs
    return session.on(event, now)
  }
  tell({ kind: 'opened', verdict: { peer } })
  const welcome = tell({ kind: 'message', bytes: bytesOf(payload) })
  return { session, tell, welcome, say: (said: Payload) => tell({ kind: 'message', bytes: bytesOf(said) }) }
}

const nodesBatch = (sequence: number, names: readonly string[], more: Partial<Batch> = {}) =>
  aBatch(west, sequence, [complete('node', ...names.map((name) => aNode(name)))], { source: 'push', ...more })

describe('a session', () => {
  it('tells the agent why its credential counts no more, where that is known', () => {
    let isValid = true
    const stillValid = () => isValid
    const goodbyeOf = (changes: Partial<SessionWorld>) => {
      isValid = true
      const { tell } = registered(aWorld({ stillValid, ...changes }))
      isValid = false
      return sent(tell({ kind: 'credentials' }))
    }
    const why = 'the hub does not accept the cluster any more'
    expect(goodbyeOf({ whyEnded: () => why })).toMatchObject([
      { case: 'goodbye', value: { code: 'revoked', message: why } },
    ])
    expect(goodbyeOf({})).toMatchObject([{ value: { message: 'the credential is no longer valid' } }])
  })

  it('acknowledges what became safe in one message, and nothing before', () => {
    const { say, tell } = registered()
    const tickets = [1, 2, 4].map((sequence) => {
      const [accept] = offered(say(frame(nodesBatch(sequence, ['n1']))))
      return accept?.kind === 'accept' ? accept.ticket : 0
    })
    expect(sent(tell({ kind: 'flush' }))).toEqual([])
    for (const ticket of tickets) tell({ kind: 'accepted', ticket })
    expect(sent(tell({ kind: 'flush' }))).toMatchObject([
      {
        case: 'ack',
        value: {
          success: true,
          received: [
            { first: 1, last: 2 },
            { first: 4, last: 4 },
          ],
        },
      },
    ])
  })

  it.each([
    ['who waited for the hub is late, and its clock right', { openedMs: 1_500, saidMs: 1_500, behindMs: 1_500 }, 0],
    ['who says what is older than the stream is behind', { openedMs: 0, saidMs: 0, behindMs: 84_000 }, 84_000],
    ['who is behind is so when its first word comes later', { openedMs: 500, saidMs: 30_000, behindMs: 5_000 }, 5_000],
  ])('of the original: %s', (_, { openedMs, saidMs, behindMs }, corrected) => {
    const session = new Session(aWorld(), T0)
    const tell = (payload: Payload, at: number) => session.on({ kind: 'message', bytes: bytesOf(payload) }, at)
    session.on({ kind: 'opened', verdict: { peer } }, T0)
    tell({ case: 'register', value: { clusterName: 'west', token: 'a', version: 'v0.9' } }, T0 + openedMs)
    const said = T0 + saidMs
    const timestamp = timestampFromMs(said - behindMs)
    tell({ case: 'health', value: { clusterName: 'west', timestamp, bufferedBatches: 0 } }, said)
    const collectedAt = T0 - 100_000
    const words = { clusterName: 'west', batchId: 'a', collectedAt: timestampFromMs(collectedAt) }
    const value = { ...originalFromBatch(nodesBatch(1, ['n1'])), ...words }
    const effects = offered(tell({ case: 'metrics', value }, said))
    expect(effects).toMatchObject([{ offer: { batch: { collectedAt: collectedAt + corrected } } }])
  })

  it('stops reading while the hub cannot take what it has, then tells the agent when to try again', () => {
    const { session, say, tell } = registered()
    const [first] = offered(say(frame(nodesBatch(1, ['n1']))))
    const ticket = first?.kind === 'accept' ? first.ticket : 0
    const error = new StoreUnavailableError('log', 'disk full')
    const [again] = offered(tell({ kind: 'failed', ticket, error }))
    expect(again).toMatchObject({ ticket, afterMs: expect.any(Number) })
    expect(session.readAfterMs(T0)).toBe(Number.POSITIVE_INFINITY)
    const answers = sent(tell({ kind: 'failed', ticket, error }, defaultLimits.holdMs))
    expect(answers).toMatchObject([{ value: { success: false, retryable: true, code: 'store_unavailable' } }])
    expect(session.readAfterMs(T0 + defaultLimits.holdMs)).toBe(0)
  })

  it('offers a difference whole when its base is no longer the newest', () => {
    const { say, tell } = registered()
    const first = nodesBatch(1, ['n1', 'n2'])
    const [one] = offered(say(frame(first)))
    tell({ kind: 'accepted', ticket: one?.kind === 'accept' ? one.ticket : 0 })
    const base = { sequence: 1, view: viewOf(first) }
    const [two] = offered(say(frame(nodesBatch(2, ['n1', 'n2', 'n3']), { base })))
    const [whole] = offered(
      tell({
        kind: 'failed',
        ticket: two?.kind === 'accept' ? two.ticket : 0,
        error: new BaseMismatchError('west'),
      }),
    )
    expect(whole).toMatchObject({ offer: { batch: { sequence: 2, parts: [{ type: 'node', outcome: 'complete' }] } } })
    expect(whole?.kind === 'accept' && whole.offer.batch.base).toBeUndefined()
  })

  it('holds so many messages and no more', () => {
    const { session, say } = registered(aWorld({ limit: { maxUnacked: 3 } }))
    for (let sequence = 1; sequence <= 3; sequence++) {
      expect(session.readAfterMs(T0)).toBe(0)
      say(frame(nodesBatch(sequence, ['n1'])))
    }
    expect(session.readAfterMs(T0)).toBe(Number.POSITIVE_INFINITY)
  })

  it('slows a sender over its rate, and ends with one that never pauses', () => {
    const limit = { messagesPerSecond: 10, overRateMs: 5_000 }
    const { session, tell } = registered(aWorld({ limit }))
    let now = T0
    let waited = 0
    for (let i = 0; i < 1_000 && !session.hasEnded; i++) {
      const waitMs = session.readAfterMs(now)
      waited += waitMs
      now += waitMs
      tell({ kind: 'message', bytes: new Uint8Array() }, waitMs)
    }
    expect(session.hasEnded).toBe(true)
    expect(waited).toBeGreaterThan(5_000)
  })

  it('never acknowledges to an original out of order or before it is safe, and drops a repeat', () => {
    const registration: Payload = { case: 'register', value: { clusterName: 'west', version: 'v1' } }
    const { say, tell, welcome } = registered(aWorld(), registration)
    expect(sent(welcome)).toEqual([])
    const metrics = (batchId: string): Payload => ({
      case: 'metrics',
      value: { clusterName: 'west', batchId, nodeMetrics: [{ name: 'n1', status: 'Ready' }] },
    })
    const [first] = offered([...say(metrics('a')), ...say(metrics('b')), ...say(metrics('a'))])
    expect(first).toMatchObject({ offer: { batch: { origin: 'original', sequence: 1 } } })
    const done = tell({ kind: 'accepted', ticket: first?.kind === 'accept' ? first.ticket : 0 })
    expect(sent(done)).toMatchObject([{ value: { batchId: 'a', success: true } }])
    const [second] = offered(done)
    const error = new InvalidBatchError('it', 'is bad')
    const rest = tell({ kind: 'failed', ticket: second?.kind === 'accept' ? second.ticket : 0, error })
    expect(sent(rest)).toMatchObject([
      { value: { batchId: 'b', success: false, error: expect.stringContaining('is bad') } },
      { value: { batchId: 'a', success: true } },
    ])
    expect(offered(say(metrics('c')))).toMatchObject([{ offer: { batch: { sequence: 2 } } }])
  })
})

/** Ends of a line that loses, repeats and reorders, between an agent with a buffer and an ingester that may refuse. */
class Line {
  now = T0
  agentOffset = 0
  readonly truth = new Map<number, string[]>()
  // the agent
  readonly buffer = new Map<number, Batch>()
  readonly unsent = new Set<number>()
  base: { sequence: number; view: BatchView } | undefined
  readonly bodies = new Map<number, BatchView>()
  sequence = 0
  // the pipe
  up: Uint8Array[] = []
  down: Answer[] = []
  // the hub
  session: Session
  readonly durable = new Map<number, string[]>()
  ranges: Ranges = []
  newest = 0
  newestNodes: string[] = []
  pending: (Effect & { kind: 'accept' })[] = []

  constructor() {
    this.session = this.connect()
  }

  connect(): Session {
    const world = aWorld({ received: () => this.ranges, limit: { messagesPerSecond: 1e9 } })
    this.session = new Session(world, this.now)
    this.up = []
    this.down = []
    this.pending = []
    this.base = undefined
    this.bodies.clear()
    for (const sequence of this.buffer.keys()) this.unsent.add(sequence)
    this.tell({ kind: 'opened', verdict: { peer } })
    const now = () => this.now + this.agentOffset
    this.tell({ kind: 'message', bytes: bytesOf(hello({ now })) })
    return this.session
  }

  tell(event: Parameters<Session['on']>[0]): void {
    for (const effect of this.session.on(event, this.now)) {
      if (effect.kind === 'send') this.down.push(effect.answer)
      if (effect.kind === 'accept') this.pending.push(effect)
    }
  }

  collect(names: string[]): void {
    const sequence = ++this.sequence
    this.truth.set(sequence, names)
    this.buffer.set(sequence, nodesBatch(sequence, names, { collectedAt: this.now + this.agentOffset }))
    this.unsent.add(sequence)
    this.send()
  }

  send(): void {
    for (const sequence of [...this.unsent]) {
      const batch = this.buffer.get(sequence)
      this.unsent.delete(sequence)
      if (!batch) continue
      const isNewest = sequence === this.sequence
      const live = isNewest ? batch : { ...batch, backfill: true }
      this.bodies.set(sequence, viewOf(batch))
      this.up.push(bytesOf(frame(live, isNewest && this.base ? { base: this.base } : {})))
    }
  }

  deliver(): void {
    const bytes = this.up.shift()
    if (bytes && this.session.readAfterMs(this.now) < Number.POSITIVE_INFINITY) this.tell({ kind: 'message', bytes })
    else if (bytes) this.up.unshift(bytes)
  }

  /** the ingester ends what it was given, the k-th of it */
  decide(k: number, how: 'ok' | 'later') {
    const [effect] = this.pending.splice(k % Math.max(1, this.pending.length), 1)
    if (!effect) return
    const { ticket, offer } = effect
    const { batch } = offer
    const fail = (error: FleetError) => this.tell({ kind: 'failed', ticket, error })
    expect(batch.cluster).toBe(west)
    expect(batch.collectedAt).toBeLessThanOrEqual(this.now + 1)
    if (how === 'later') return fail(new StoreUnavailableError('log', 'full'))
    if (!inRanges(this.ranges, batch.sequence)) {
      const part = batch.parts[0]
      let names: string[]
      if (part?.outcome === 'changed') {
        if (batch.base !== this.newest) return fail(new BaseMismatchError('west'))
        const removed = new Set(part.removed)
        names = [...this.newestNodes.filter((name) => !removed.has(name)), ...part.put.map(({ name }) => name)]
      } else names = part?.outcome === 'complete' ? part.items.map(({ name }) => name) : []
      this.durable.set(batch.sequence, [...new Set(names)].sort())
      this.ranges = withRange(this.ranges, [batch.sequence, batch.sequence])
      if (!batch.backfill && batch.sequence > this.newest) {
        this.newest = batch.sequence
        this.newestNodes = names
      }
    }
    this.tell({ kind: 'accepted', ticket })
  }

  hear(): void {
    const answer = this.down.shift()
    if (answer?.case === 'resync') this.base = undefined
    if (answer?.case === 'goodbye') this.connect()
    if (answer?.case !== 'ack') return
    const { success = false, retryable = false, received = [] } = answer.value
    for (const { first = 0, last = 0 } of received) {
      for (let sequence = first; sequence <= last; sequence++) {
        if (success) {
          expect(this.durable.has(sequence), `${sequence} was acknowledged and is not safe`).toBe(true)
          this.buffer.delete(sequence)
          const view = this.bodies.get(sequence)
          if (view && sequence > (this.base?.sequence ?? 0)) this.base = { sequence, view }
        } else {
          expect(retryable, 'a good frame was refused for ever').toBe(true)
          this.unsent.add(sequence)
        }
      }
    }
    this.send()
  }

  step(action: number, k: number): void {
    if (action < 3) this.collect(['a', 'b', 'c', 'd', 'e'].filter((_, i) => (k >> i) & 1))
    else if (action < 7) this.deliver()
    else if (action < 11) this.decide(k, 'ok')
    else if (action === 11) this.decide(k, 'later')
    else if (action < 14) this.tell({ kind: 'flush' })
    else if (action < 17) this.hear()
    else if (action === 17) this.connect()
    else if (action === 18)
      this.up.push(...this.up.slice(0, 2)) // repeated
    else if (action === 19) this.up.reverse()
    else if (action === 20)
      this.down = [] // the way back is dead: half-open
    else if (action === 21) this.agentOffset += (k - 16) * 3_600_000
    else if (action === 22) this.now += k * 1_000
    else this.tell({ kind: k % 2 ? 'tick' : 'plan' })
  }

  /** the line is good again */
  heal(): void {
    this.connect()
    this.send()
    for (let i = 0; i < 10_000 && this.buffer.size > 0; i++) {
      this.deliver()
      this.decide(0, 'ok')
      this.tell({ kind: 'flush' })
      this.hear()
      this.send()
    }
  }
}

describe('a session over a bad line', () => {
  it('loses nothing, acknowledges nothing unsafe, and rebuilds every batch as it was', () => {
    const actions = fc.array(fc.tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 31 })), {
      minLength: 20,
      maxLength: 150,
    })
    fc.assert(
      fc.property(actions, (steps) => {
        const line = new Line()
        for (const [action, k] of steps) line.step(action, k)
        line.heal()
        expect([...line.buffer.keys()]).toEqual([])
        const sorted = [...line.truth].map(([sequence, names]): [number, string[]] => [sequence, [...names].sort()])
        expect(new Map([...line.durable].sort(([a], [b]) => a - b))).toEqual(new Map(sorted))
      }),
      { numRuns: 300 },
    )
  })

  it('ends with whatever bytes in a bounded state, without an exception', () => {
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.record({ at: fc.nat(), bit: fc.integer({ min: 0, max: 7 }) }).map(({ at, bit }) => {
        const bytes = bytesOf(frame(nodesBatch(1, ['n1', 'n2'])))
        const index = at % bytes.length
        bytes[index] = (bytes[index] ?? 0) ^ (1 << bit)
        return bytes
      }),
      fc.nat({ max: 400 }).map((length) => bytesOf(frame(nodesBatch(1, ['n1', 'n2']))).slice(0, length)),
    )
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 20 }), (messages) => {
        const { session, tell } = registered()
        for (const bytes of messages) tell({ kind: 'message', bytes })
        expect(session.facts(T0)?.epoch).toBe(1)
      }),
      { numRuns: 500 },
    )
  })
})
