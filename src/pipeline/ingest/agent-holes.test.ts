import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, type Loss, ownerOf } from '#model'
import { aBatch, connected, T0, west } from '../state/test/fleet-words.ts'
import { isForHistory, isForState } from './choose-use.ts'
import { decodeSnapshot, dividedBooks, encodeSnapshot, Ledger } from './ledger.ts'
import type { LogEntry } from './log-record.ts'
import { HUB_ORIGIN, PULL } from './origins.ts'

const EVERY = 30_000
const LOG = '00000000-0000-4000-8000-000000000000'
const noHole = () => {
  throw new Error('no hole was to be closed')
}

/** The hub's log and what it says of holes; a kill may come between a batch and the hole that it shows. */
class Hub {
  ledger = new Ledger(noHole)
  readonly log: LogEntry[] = []
  #kept = encodeSnapshot(this.ledger.snapshot(), LOG)

  constructor(intervalMs = EVERY) {
    this.take({ record: connected(west, { intervalMs }) })
  }

  take(entry: LogEntry): void {
    this.log.push(entry)
    this.ledger.note(entry, this.log.length - 1)
  }

  batch(batch: Batch): void {
    const { origin = PULL, sequence, collectedAt: at } = batch
    if (this.ledger.has(west, origin, sequence)) return
    const offered = { origin, sequence, at, hasSamples: !batch.partial && !batch.failure }
    const known = this.ledger.known(west, EVERY)
    const names = [isForState(known, offered) ? 'state' : '', isForHistory(known, offered) ? 'history' : '']
    this.take({ record: { kind: 'batch', batch, receivedAt: at }, audience: new Set(names.filter(Boolean)) })
  }

  lost(loss: Loss): void {
    if (!this.ledger.has(west, loss.origin, loss.sequence))
      this.take({ record: { kind: 'lost', cluster: west, loss, at: loss.to } })
  }

  tell(): void {
    for (const loss of this.ledger.untold(west))
      this.take({ record: { kind: 'lost', cluster: west, loss, at: loss.to }, audience: new Set(['history']) })
  }

  keep(): void {
    this.#kept = encodeSnapshot(this.ledger.snapshot(), LOG)
  }

  kill(): void {
    this.ledger = new Ledger(noHole, decodeSnapshot(this.#kept, LOG))
    for (const [index, entry] of this.log.entries()) this.ledger.note(entry, index)
  }

  divide(owners: number): void {
    const { position } = this.ledger.snapshot()
    const books = dividedBooks([this.ledger.snapshot()], owners, noHole)[ownerOf(west, owners) - 1] ?? new Map()
    this.ledger = new Ledger(noHole, { position, books })
    this.keep()
  }

  holes(): readonly [cause: string, from: number, to: number][] {
    return this.log
      .flatMap(({ record }) => (record.kind === 'lost' && record.loss.origin === HUB_ORIGIN ? [record.loss] : []))
      .sort((a, b) => a.from - b.from)
      .map(({ cause, from, to }) => [cause, (from - T0) / EVERY, (to - T0) / EVERY])
  }
}

const at = (tick: number) => T0 + tick * EVERY
const round = (origin: string, sequence: number, tick: number, more: Partial<Batch> = {}): Batch =>
  aBatch(west, sequence, [], { origin, source: 'push', collectedAt: at(tick), durationMs: 0, ...more })

interface Tick {
  /** the agent reads the cluster; its batch is lost, and that is declared; the hub reads it; a MetricSource was seen besides */
  readonly sees: 'nothing' | 'agent' | 'lost' | 'hub'
  readonly between: boolean
  /** ticks until the batch arrives */
  readonly late: number
  readonly twice: boolean
  readonly afterwards: 'go on' | 'kill before telling' | 'keep and kill before telling' | 'kill' | 'keep' | 'divide'
}
const stretch = fc
  .tuple(fc.constantFrom('nothing', 'agent', 'agent', 'lost', 'hub'), fc.integer({ min: 1, max: 6 }))
  .chain(([sees, length]) =>
    fc.array(
      fc.record<Tick>({
        sees: fc.constant(sees as Tick['sees']),
        between: fc.boolean(),
        late: fc.oneof(fc.constant(0), fc.nat(12)),
        twice: fc.boolean(),
        afterwards: fc.constantFrom(
          'go on',
          'go on',
          'go on',
          'kill before telling',
          'keep and kill before telling',
          'kill',
          'keep',
          'divide',
        ),
      }),
      { minLength: length, maxLength: length },
    ),
  )
const worlds = fc.record({
  ticks: fc.array(stretch, { minLength: 2, maxLength: 14 }).map((stretches) => stretches.flat()),
  reinstalledAt: fc.nat(60),
})

interface Arrival {
  readonly at: number
  readonly tick: Tick
  readonly give: (hub: Hub) => void
}

/** What the hub gets, and when; and what it is to say: the stretches of two ticks or more that nobody saw nor declared. */
function story(ticks: readonly Tick[], reinstalledAt: number) {
  const arrivals: Arrival[] = []
  const seen: number[] = []
  const numbers = new Map<string, number>()
  const next = (origin: string) => {
    const number = (numbers.get(origin) ?? 0) + 1
    numbers.set(origin, number)
    return number
  }
  const losses: { readonly origin: string; readonly sequence: number; readonly place: number; readonly tick: Tick }[] =
    []
  let pulls = 0
  for (const [place, tick] of ticks.entries()) {
    if (tick.sees === 'nothing') continue
    seen.push(place)
    if (tick.sees === 'hub') {
      const pull = round(PULL, ++pulls, place, { source: 'pull' })
      arrivals.push({ at: place, tick, give: (hub) => hub.batch(pull) })
      continue
    }
    const origin = place < reinstalledAt ? 'former' : 'agent'
    // The buffer of the former agent is gone with it: what it had to say it said before.
    const latest = origin === 'former' ? reinstalledAt - 1 : Number.POSITIVE_INFINITY
    const arrivesAt = Math.max(place, Math.min(place + tick.late, latest))
    const sequence = next(origin)
    // Told between two rounds of agents: so neither the last nor the first of all is lost here.
    const isLast = !ticks.some(
      (one, later) => later > place && one.sees === 'agent' && later < reinstalledAt === (origin === 'former'),
    )
    if (tick.sees === 'lost' && (sequence > 1 || (origin === 'agent' && numbers.has('former'))) && !isLast)
      losses.push({ origin, sequence, place, tick })
    else {
      const batch = round(origin, sequence, place)
      arrivals.push({ at: arrivesAt, tick, give: (hub) => hub.batch(batch) })
    }
    if (!tick.between) continue
    const partial = round(origin, next(origin), place + 0.3, { partial: true })
    arrivals.push({ at: arrivesAt, tick, give: (hub) => hub.batch(partial) })
  }
  for (const { origin, sequence, place, tick } of losses) {
    const loss: Loss = {
      ...{ origin, sequence: next(origin), lost: [[sequence, sequence]], from: at(place), to: at(place) },
      ...{ cause: 'dropped', count: 1, keptEveryMs: 0 },
    }
    const arrivesAt = origin === 'former' ? reinstalledAt - 1 : ticks.length
    arrivals.push({ at: Math.max(place, arrivesAt), tick, give: (hub) => hub.lost(loss) })
  }
  const holes = seen.flatMap((place, i) => {
    const before = seen[i - 1]
    return before !== undefined && place - before > 2 ? [['agent_down', before, place]] : []
  })
  return { arrivals: arrivals.sort((a, b) => a.at - b.at), holes, seen }
}

describe('the holes of a cluster with an agent', () => {
  it('are each told once, and none that is not there, however batches come and whatever becomes of the hub', () =>
    fc.assert(
      fc.property(worlds, ({ ticks, reinstalledAt }) => {
        const { arrivals, holes, seen } = story(ticks, reinstalledAt)
        const hub = new Hub()
        for (const { tick, give } of arrivals) {
          give(hub)
          if (tick.afterwards === 'keep and kill before telling') hub.keep()
          if (tick.afterwards.endsWith('kill before telling')) hub.kill()
          hub.tell()
          if (tick.afterwards === 'keep') hub.keep()
          if (tick.afterwards === 'kill') hub.kill()
          if (tick.afterwards === 'divide') hub.divide(3)
          if (tick.twice) give(hub)
          hub.tell()
        }
        // What only the hub saw last, an agent that comes later is to tell of.
        const lastOfAgents = Math.max(-1, ...seen.filter((place) => ticks[place]?.sees !== 'hub'))
        const firstOfAgents = Math.min(...seen.filter((place) => ticks[place]?.sees !== 'hub'))
        const between = holes.filter(([, , to]) => Number(to) <= lastOfAgents && Number(to) >= firstOfAgents)
        expect(hub.holes()).toEqual(between)
      }),
      { numRuns: 400 },
    ))

  it('are none where the interval became shorter and the agent has not heard of it', () => {
    const hub = new Hub(10 * EVERY)
    for (const n of [1, 2, 3]) hub.batch(round('agent', n, 10 * n))
    hub.take({ record: connected(west, { intervalMs: EVERY }) })
    for (const n of [4, 5]) hub.batch(round('agent', n, 10 * n))
    hub.batch(round('agent', 6, 51))
    hub.tell()
    expect(hub.holes()).toEqual([])
    // Now it has.
    hub.batch(round('agent', 7, 61))
    hub.tell()
    expect(hub.holes()).toEqual([['agent_down', 51, 61]])
  })

  it('do not hide behind each other where each is twice as long as the one before', () => {
    const hub = new Hub()
    for (const [n, tick] of [1, 2, 3, 6, 12, 24].entries()) hub.batch(round('agent', n + 1, tick))
    hub.tell()
    expect(hub.holes().map(([, from, to]) => [from, to])).toEqual([
      [3, 6],
      [6, 12],
      [12, 24],
    ])
  })

  it.each([
    ['the hub', PULL],
    ['a collector of the original', 'original'],
    ['a former agent', 'former'],
  ])('are told between %s and a new agent, though its first number is no round', (_, origin) => {
    for (const isLost of [true, false]) {
      const hub = new Hub()
      hub.batch(round(origin, 1, 1))
      hub.batch(round('agent', 2, 9))
      expect(hub.ledger.untold(west), 'the first may still come').toEqual([])
      const loss = { origin: 'agent', sequence: 3, lost: [[1, 1] as const], from: at(8), to: at(8) }
      if (isLost) hub.lost({ ...loss, cause: 'dropped', count: 1, keptEveryMs: 0 })
      else hub.batch(round('agent', 1, 8.9, { partial: true }))
      hub.tell()
      expect(hub.holes()).toEqual([['agent_down', 1, isLost ? 8 : 9]])
    }
  })

  it('are of a cluster that could not be read where the agent ran', () => {
    const hub = new Hub()
    const failure = { code: 'kube_timeout', message: 'nothing' }
    hub.batch(round('agent', 1, 1))
    for (const n of [2, 3]) hub.batch(round('agent', n, n, { failure }))
    hub.tell()
    hub.batch(round('agent', 4, 4))
    hub.tell()
    expect(hub.holes()).toEqual([
      ['unreachable', 1, 2],
      ['unreachable', 2, 3],
      ['unreachable', 3, 4],
    ])
  })

  it('are none while a round takes long, nor of collectors that the hub numbers itself', () => {
    const hub = new Hub()
    hub.batch(round('agent', 1, 1, { durationMs: 5 * EVERY }))
    hub.batch(round('agent', 2, 7))
    hub.batch(round('original', 1, 7))
    hub.batch(round('original', 2, 17))
    hub.batch(round('original', 3, 9))
    hub.tell()
    expect(hub.holes()).toEqual([])
  })

  it('are found beside a ledger that a former version wrote', () => {
    const hub = new Hub()
    hub.batch(round('agent', 1, 1))
    const [, text = ''] = encodeSnapshot(hub.ledger.snapshot(), LOG).split('\n')
    const value = JSON.parse(text) as { clusters: unknown[][] }
    const [cluster = []] = value.clusters
    expect(cluster).toHaveLength(5)
    const origins = cluster[3] as unknown[][]
    value.clusters = [[...cluster.slice(0, 3), origins.map((origin) => origin.slice(0, 4))]]
    const old = JSON.stringify(value)
    const file = `${createHash('sha256').update(old).digest('base64')}\n${old}\n`
    hub.ledger = new Ledger(noHole, decodeSnapshot(file, LOG))
    for (const [n, tick] of [2, 3, 9].entries()) hub.batch(round('agent', n + 2, tick))
    hub.tell()
    expect(hub.holes()).toEqual([['agent_down', 3, 9]])
  })
})
