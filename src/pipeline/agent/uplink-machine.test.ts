import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inRanges, type Ranges, type SequenceRange, withRange } from '#model'
import {
  decide,
  type Effect,
  type Event,
  type Item,
  initial,
  type State,
  WINDOW_BYTES,
  wakeAt,
} from './uplink-machine.ts'

/** What a hub of ours, a network and a buffer may do to the machine; each step is drawn at random. */
type Step =
  | {
      readonly do:
        | 'collect'
        | 'ack'
        | 'ack twice'
        | 'refuse'
        | 'retry'
        | 'resync'
        | 'cut'
        | 'block'
        | 'free'
        | 'silence'
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'goodbye'; readonly retryAfterMs: number }
  | { readonly do: 'old ack' }
  /** a batch between two rounds, after which so many older ones say nothing new any more */
  | { readonly do: 'collect beside'; readonly supersedes: number }

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant<Step>({ do: 'collect' }) },
    { weight: 6, arbitrary: fc.nat(2).map<Step>((supersedes) => ({ do: 'collect beside', supersedes })) },
    { weight: 8, arbitrary: fc.constant<Step>({ do: 'ack' }) },
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 60_000 }).map<Step>((ms) => ({ do: 'wait', ms })) },
    { weight: 1, arbitrary: fc.nat(400_000).map<Step>((retryAfterMs) => ({ do: 'goodbye', retryAfterMs })) },
    ...(['ack twice', 'refuse', 'retry', 'resync', 'cut', 'block', 'free', 'silence', 'old ack'] as const).map(
      (name) => ({
        weight: 1,
        arbitrary: fc.constant<Step>({ do: name }),
      }),
    ),
  ),
  { minLength: 1, maxLength: 80 },
)

interface OnTheWay {
  readonly as: 'live' | 'backlog'
  readonly base: number
  readonly bytes: number
}

/** A hub of ours with its stream, and the buffer, as far as the machine can tell. */
class World {
  state: State = initial
  now = 0
  buffer = new Map<number, Item>()
  used = 0
  received: Ranges = []
  lost: Ranges = []
  way = new Map<number, OnTheWay>()
  open = false
  registered = false
  answers = true
  pausedUntil = 0
  /** live frames of this stream that the agent knows to be acknowledged */
  ackedLive = new Set<number>()
  fresh: number[] = []
  streamLive: number[] = []
  formerAcks: SequenceRange[] = []
  needComplete = true
  backlogBytes = 0
  liveAt = 0
  earliestOpen = 0
  readonly rate = 20_000
  readonly maxUnacked = 4

  send(event: Event): void {
    const queue: Event[] = [event]
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { state, effects } = decide(this.state, next, { now: this.now, random: () => 0.5 })
      this.state = state
      for (const effect of effects) queue.push(...this.effect(effect))
      if (this.state.phase.kind !== 'live') this.way.clear()
    }
  }

  effect(effect: Effect): Event[] {
    switch (effect.type) {
      case 'open':
        expect(this.now, 'not before the goodbye allowed it').toBeGreaterThanOrEqual(this.earliestOpen)
        expect(this.open).toBe(false)
        this.open = true
        return [{ type: 'opened' }]
      case 'register':
        if (!this.answers) return []
        return [this.welcome()]
      case 'close':
        this.open = false
        this.registered = false
        return []
      case 'fetch': {
        const { phase } = this.state
        const item = [...this.buffer.values()].find(
          ({ sequence }) =>
            !(phase.kind === 'live' && phase.inFlight.has(sequence)) &&
            !(this.state.live.includes(sequence) && this.registered),
        )
        return [{ type: 'fetched', item }]
      }
      case 'send':
        return this.sent(effect)
      case 'settle':
        for (const [first, last] of effect.received) {
          for (let n = first; n <= last; n++) {
            expect(inRanges(this.received, n), 'settled only what the hub has').toBe(true)
            this.buffer.delete(n)
          }
        }
        return []
      case 'refuse': {
        this.buffer.delete(effect.sequence)
        this.lost = withRange(this.lost, [effect.sequence, effect.sequence])
        const sequence = ++this.used
        this.buffer.set(sequence, { sequence, bytes: 100, kind: 'loss' })
        return [{ type: 'stored' }]
      }
      case 'health':
        return []
    }
  }

  welcome(): Event {
    this.registered = true
    this.way.clear()
    this.ackedLive.clear()
    this.streamLive = []
    this.needComplete = true
    this.backlogBytes = 0
    this.pausedUntil = 0
    this.liveAt = this.now
    return {
      type: 'welcome',
      capabilities: ['frames', 'deltas', 'deflate', 'loss', 'plan'],
      received: this.received,
      maxMessageBytes: 2 ** 20,
      backlogBytesPerSecond: this.rate,
      maxUnacked: this.maxUnacked,
    }
  }

  sent({ sequence, as, base }: Extract<Effect, { type: 'send' }>): Event[] {
    const item = this.buffer.get(sequence)
    expect(item, 'sends what is in the buffer').toBeDefined()
    if (!item) return []
    if (!this.registered) return [] // the original's protocol
    expect(this.way.has(sequence), 'sends nothing twice at once').toBe(false)
    expect(this.way.size, 'respects max_unacked').toBeLessThan(this.maxUnacked)
    expect(this.now, 'respects a pause').toBeGreaterThanOrEqual(this.pausedUntil)
    const waiting = [...this.way.values()].filter((other) => other.as === 'backlog')
    if (as === 'backlog') {
      const { phase } = this.state
      const room = phase.kind === 'live' && phase.writable && this.way.size < this.maxUnacked
      if (room) expect(this.state.live, 'live goes before backlog').toEqual([])
      const bytes = waiting.reduce((sum, other) => sum + other.bytes, 0)
      if (waiting.length > 0) expect(bytes + item.bytes).toBeLessThanOrEqual(WINDOW_BYTES)
      this.backlogBytes += item.bytes
      const allowed = this.rate * (1 + (this.now - this.liveAt) / 1000)
      expect(this.backlogBytes - item.bytes, 'within the byte rate').toBeLessThanOrEqual(allowed)
    } else {
      expect(item.kind).toBe('batch')
      expect(this.fresh, 'what a later batch says goes as backlog').toContain(sequence)
      const waiting = this.state.live.filter((n) => n < sequence)
      expect(waiting, 'live goes in order').toEqual([])
      if (base > 0) {
        expect([...this.way.values()].some((other) => other.as === 'live')).toBe(false)
        expect(base, 'the newest acknowledged live frame').toBe(Math.max(...this.ackedLive))
        expect(this.needComplete, 'the first is complete, and the first after a resync').toBe(false)
      } else this.needComplete = false
    }
    this.way.set(sequence, { as, base, bytes: item.bytes })
    return []
  }

  ack(chosen: readonly number[]): void {
    for (const sequence of chosen) {
      this.received = withRange(this.received, [sequence, sequence])
      if (this.way.get(sequence)?.as === 'live') this.ackedLive.add(sequence)
      this.way.delete(sequence)
      this.formerAcks.push([sequence, sequence])
    }
    this.hears(
      chosen.map((n) => [n, n]),
      { success: true, retryable: false, retryAfterMs: 0 },
    )
  }

  hears(received: readonly SequenceRange[], how: { success: boolean; retryable: boolean; retryAfterMs: number }): void {
    this.send({ type: 'ack', received, ...how })
  }

  take(step: Step): void {
    const first = [...this.way.keys()][0]
    switch (step.do) {
      case 'collect': {
        const sequence = ++this.used
        this.buffer.set(sequence, { sequence, bytes: 30_000, kind: 'batch' })
        this.fresh = [sequence]
        this.send({ type: 'collected', sequence })
        return
      }
      case 'collect beside': {
        const sequence = ++this.used
        this.buffer.set(sequence, { sequence, bytes: 1_000, kind: 'batch' })
        // What is safe, or was told lost, is fresh no more.
        const open = this.fresh.filter((n) => this.buffer.has(n))
        this.fresh = [...open.slice(step.supersedes), sequence]
        this.send({ type: 'collected', sequence, fresh: this.fresh })
        return
      }
      case 'ack':
        this.ack([...this.way.keys()].slice(0, 2))
        return
      case 'ack twice':
        if (first === undefined) return
        this.ack([first])
        this.hears([[first, first]], { success: true, retryable: false, retryAfterMs: 0 })
        return
      case 'old ack':
        this.hears(this.formerAcks.slice(0, 3), { success: true, retryable: false, retryAfterMs: 0 })
        return
      case 'refuse':
        if (first === undefined || !this.registered) return
        this.way.delete(first)
        this.hears([[first, first]], { success: false, retryable: false, retryAfterMs: 0 })
        return
      case 'retry':
        if (first === undefined || !this.registered) return
        this.way.delete(first)
        this.pausedUntil = Math.max(this.pausedUntil, this.now + 3_000)
        this.hears([[first, first]], { success: false, retryable: true, retryAfterMs: 3_000 })
        return
      case 'resync':
        if (!this.registered) return
        for (const [sequence, sent] of this.way) {
          if (sent.base > 0) this.way.delete(sequence)
          // It went as live, which the window of the backlog does not count.
          else this.way.set(sequence, { ...sent, as: 'backlog', bytes: 0 })
        }
        this.needComplete = true
        this.ackedLive.clear()
        this.send({ type: 'resync' })
        return
      case 'cut':
        if (!this.open) return
        this.open = false
        this.registered = false
        this.send({ type: 'closed', reason: 'cut' })
        return
      case 'goodbye':
        if (!this.registered) return
        this.earliestOpen = this.now + step.retryAfterMs
        this.send({ type: 'goodbye', reason: 'because', retryAfterMs: step.retryAfterMs })
        return
      case 'block':
        this.send({ type: 'blocked' })
        return
      case 'free':
        this.send({ type: 'writable' })
        return
      case 'silence':
        this.answers = !this.answers
        return
      case 'wait':
        this.wait(step.ms)
        return
    }
  }

  wait(ms: number): void {
    const until = this.now + ms
    for (let at = wakeAt(this.state, this.now); at <= until; at = wakeAt(this.state, this.now)) {
      expect(at, 'no busy loop').toBeGreaterThan(this.now - 1)
      this.now = Math.max(this.now, at)
      const before = this.state
      this.send({ type: 'tick' })
      if (wakeAt(this.state, this.now) <= this.now && this.state === before) throw new Error('a tick leads nowhere')
    }
    this.now = until
  }
}

describe('the decisions of the uplink', () => {
  it('hold their invariants, whatever hub and network do', () =>
    fc.assert(
      fc.property(steps, (drawn) => {
        const world = new World()
        world.send({ type: 'start' })
        for (const step of drawn) world.take(step)
        // Nothing that was given out is forgotten.
        for (let n = 1; n <= world.used; n++) {
          expect(world.buffer.has(n) || inRanges(world.received, n) || inRanges(world.lost, n), `sequence ${n}`).toBe(
            true,
          )
        }
      }),
      { numRuns: 600 },
    ))

  it('end with every sequence acknowledged or declared lost, once hub and network are well', () =>
    fc.assert(
      fc.property(steps, (drawn) => {
        const world = new World()
        world.send({ type: 'start' })
        for (const step of drawn) world.take(step)
        world.answers = true
        world.take({ do: 'free' })
        for (let i = 0; i < 3_000 && world.buffer.size > 0; i++) {
          world.take({ do: 'wait', ms: 1_000 })
          if (world.registered) world.take({ do: 'ack' })
          // An original's protocol was chosen while the hub was silent: the stream must end for ours to be tried again.
          else if (i % 50 === 49) world.take({ do: 'cut' })
        }
        expect([...world.buffer.keys()]).toEqual([])
        for (let n = 1; n <= world.used; n++) expect(inRanges(world.received, n) || inRanges(world.lost, n)).toBe(true)
      }),
      { numRuns: 200 },
    ))

  it('wait longer after each failure up to a minute, and begin anew only after the first ack', () => {
    const waits: number[] = []
    let state: State = initial
    let now = 0
    const send = (event: Event) => {
      state = decide(state, event, { now, random: () => 1 }).state
    }
    send({ type: 'start' })
    for (let i = 0; i < 12; i++) {
      send({ type: 'opened' })
      send({
        type: 'welcome',
        capabilities: [],
        received: [],
        maxMessageBytes: 0,
        backlogBytesPerSecond: 0,
        maxUnacked: 4,
      })
      if (i === 11) {
        send({ type: 'collected', sequence: 7 })
        send({ type: 'ack', received: [[7, 7]], success: true, retryable: false, retryAfterMs: 0 })
      }
      send({ type: 'closed', reason: 'cut' })
      waits.push(wakeAt(state, now) - now)
      now = wakeAt(state, now)
      send({ type: 'tick' })
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000, 60_000, 1_000])
  })

  it('wait five seconds at most where nothing of the hub is there, and longer again once something is', () => {
    let now = 0
    let state = decide(initial, { type: 'start' }, { now, random: () => 1 }).state
    const waits: number[] = []
    const fails = (nowhere: boolean) => {
      state = decide(state, { type: 'closed', reason: 'refused', nowhere }, { now, random: () => 1 }).state
      const until = wakeAt(state, now)
      waits.push(until - now)
      now = until
      state = decide(state, { type: 'tick' }, { now, random: () => 1 }).state
    }
    while (now < 3_600_000) fails(true)
    expect(waits.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 5_000])
    expect(new Set(waits.slice(4))).toEqual(new Set([5_000]))
    waits.length = 0
    for (let i = 0; i < 5; i++) fails(false)
    expect(waits).toEqual([8_000, 16_000, 32_000, 60_000, 60_000])
    fails(true)
    expect(waits.at(-1)).toBe(5_000)
  })

  it('wait five seconds at most for about a minute where connections are cut off, and longer after it, until one is opened', () => {
    let now = 0
    let state = decide(initial, { type: 'start' }, { now, random: () => 1 }).state
    const send = (event: Event) => {
      state = decide(state, event, { now, random: () => 0.5 }).state
    }
    const cut = () => {
      send({ type: 'closed', reason: 'cut off', cut: true })
      const waitMs = wakeAt(state, now) - now
      now += waitMs
      send({ type: 'tick' })
      return waitMs
    }
    while (now < 45_000) expect(cut()).toBeLessThanOrEqual(2_500)
    while (now < 600_000) cut()
    expect(cut()).toBe(30_000)
    send({ type: 'opened' })
    expect(cut()).toBeLessThanOrEqual(2_500)
  })

  it('take a hub that is silent for an original after 5 s, but not one that spoke ours before', () => {
    const fresh = decide(
      { ...initial, phase: { kind: 'registering', failures: 0, since: 0 } },
      { type: 'tick' },
      { now: 5_000, random: () => 0 },
    )
    expect(fresh.state.phase).toMatchObject({ kind: 'live', protocol: 'original' })
    const known = decide(
      { ...initial, known: 0, phase: { kind: 'registering', failures: 0, since: 0 } },
      { type: 'tick' },
      { now: 5_000, random: () => 0 },
    )
    expect(known.state.phase.kind).toBe('registering')
  })
})
