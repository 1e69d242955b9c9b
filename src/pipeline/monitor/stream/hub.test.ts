import { describe, expect, it } from 'vitest'
import { Metrics, Turns } from '#runtime'
import { Pictures } from '../pictures.ts'
import { Tenancy } from '../tenancy.ts'
import { monitored } from '../testing/monitored.ts'
import { config, GivenState } from '../testing/serving.ts'
import type { Sink } from './client.ts'
import type { Frame } from './frame.ts'
import { StreamHub } from './hub.ts'

class GivenSink implements Sink {
  isBusy = false
  beats = 0
  isEnded = false
  readonly frames: Frame[] = []
  readonly #listeners: (() => void)[] = []

  write(frame: Frame): void {
    this.frames.push(frame)
  }
  beat(): void {
    this.beats++
  }
  end(): void {
    this.isEnded = true
  }
  onDrain(listener: () => void): void {
    this.#listeners.push(listener)
  }
  drain(): void {
    this.isBusy = false
    for (const listener of this.#listeners) listener()
  }
}

const caller = (userId: string) => ({ userId, isAdmin: true, expiresAt: Number.POSITIVE_INFINITY })

function opened(maxStreams = 100) {
  const time = { now: Date.UTC(2026, 0, 1) }
  const clock = { now: () => time.now, sleep: () => Promise.resolve() }
  const cluster = (at: number) =>
    monitored({ usage: { n1: {} }, pods: [{ namespace: 'core', name: 'api', node: 'n1' }], at })
  const state = new GivenState([cluster(time.now)])
  const { tenancy, refreshMs } = config({ refreshMs: 1000 })
  const pictures = new Pictures({ state, wants: () => true, firstNamespace: 'core', refreshMs, clock })
  const hub = new StreamHub({
    ...{ state, pictures, refreshMs, maxStreams, clock },
    tenancy: new Tenancy(tenancy, clock),
    band: { points: 0, maxMs: 60_000 },
    metrics: new Metrics({}, { processMetrics: false }),
    turns: new Turns(),
  })
  const begin = (userId: string, sink: Sink) => {
    const topic = { name: 'all', clusters: () => state.clusters(), kinds: ['pods' as const], form: 'bare' as const }
    return hub.open({ caller: caller(userId), topic, protocol: 1 }, sink)
  }
  const open = async (userId = 'a', sink = new GivenSink()) => {
    await begin(userId, sink).begun
    return sink
  }
  const pass = async (ms: number, isRead = false) => {
    time.now += ms
    if (isRead) state.set(cluster(time.now))
    await hub.tick()
  }
  return { hub, begin, open, pass }
}

describe('open streams', () => {
  it('get a sign of life every fifteen seconds, and nothing else while nothing is new', async () => {
    const { hub, open, pass } = opened()
    await using _hub = hub
    const sink = await open()
    for (let second = 0; second < 46; second++) await pass(1000)
    expect([sink.frames.length, sink.beats]).toEqual([1, 3])
  })

  it('share one encoded body among all who see alike', async () => {
    const { hub, open, pass } = opened()
    await using _hub = hub
    const [one, other] = [await open('a'), await open('b')]
    await pass(1000, true)
    expect(one.frames).toHaveLength(2)
    expect(one.frames.map(({ body }) => body)).toEqual(other.frames.map(({ body }) => body))
    expect(one.frames.every(({ body }, at) => body === other.frames[at]?.body)).toBe(true)
  })

  it('keep the newest alone for who takes nothing, and end it after half a minute of that', async () => {
    const { hub, open, pass } = opened()
    await using _hub = hub
    const [late, stuck] = [await open(), await open()]
    late.isBusy = true
    stuck.isBusy = true
    for (let second = 1; second <= 10; second++) await pass(1000, true)
    expect(late.frames).toHaveLength(1)
    late.drain()
    expect(late.frames).toHaveLength(2)
    expect(JSON.parse(late.frames[1]?.body.data ?? '').timestamp).toBe('2026-01-01T00:00:10Z')
    for (let second = 1; second <= 60; second++) await pass(1000, true)
    expect([late.isEnded, stuck.isEnded]).toEqual([false, true])
  })

  it('say nothing to who went before anything was made, and hold no place for it', async () => {
    const { hub, begin } = opened(4)
    await using _hub = hub
    const sink = new GivenSink()
    const { begun, end } = begin('a', sink)
    expect(hub.hasRoom(caller('a'))).toBe(false)
    end()
    await begun
    expect([sink.frames.length, hub.hasRoom(caller('a'))]).toEqual([0, true])
  })

  it('leave room for others: a user has a quarter of them at most', async () => {
    const { hub, open } = opened(8)
    await using _hub = hub
    const room = () => ['a', 'b'].map((userId) => hub.hasRoom(caller(userId)))
    expect(room()).toEqual([true, true])
    for (let count = 0; count < 2; count++) await open('a')
    expect(room()).toEqual([false, true])
    for (const userId of ['b', 'b', 'c', 'c', 'd', 'd']) await open(userId)
    expect(room()).toEqual([false, false])
  })
})
