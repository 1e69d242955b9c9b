import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { samplesOf } from '#history'
import {
  type Batch,
  type Clock,
  type ClusterName,
  type Loss,
  type Part,
  parseClusterName,
  type SampleSet,
} from '#model'
import { batchFromOriginal, encodeRequest, originalFromBatch, readOriginal } from '#wire'
import { all } from '../../../test/properties.ts'
import {
  aBatch,
  aNode,
  anAgent,
  complete,
  facts,
  partial,
  seen,
  seenSince,
  sizes,
  T0,
  unseen,
} from '../state/test/fleet-words.ts'
import type { Ingester } from './ingester.ts'
import { Owners, type Reach, wordOf } from './test/owners.ts'

/** DIVISION_RUNS=500 for the long run. */
const RUNS = Number(process.env.DIVISION_RUNS ?? 8)
const EVERY = 30_000
const NOW = T0 + 1_000 * EVERY
const names = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'].map((name) => parseClusterName(name))

const whats = [
  'connect',
  'pull',
  'pull fails',
  'whole',
  'difference',
  'between',
  'sources',
  'sources differ',
  'original',
  'lost',
  'remove',
  'agent',
  'remove source',
] as const
interface Seed {
  readonly what: (typeof whats)[number]
  readonly cluster: ClusterName
  readonly origin: string
  /** of the origin, as from a buffer: in any order, with repeats */
  readonly sequence: number
  /** shall be the newest */
  readonly isNew: boolean
  readonly size: number
}

const weights: Partial<Record<Seed['what'], number>> = {
  connect: 3,
  whole: 6,
  difference: 8,
  pull: 3,
  original: 3,
  lost: 3,
  remove: 1,
}
const seeds = fc.array(
  fc.record({
    what: fc.oneof(...whats.map((what) => ({ weight: weights[what] ?? 2, arbitrary: fc.constant(what) }))),
    cluster: fc.constantFrom(...names),
    origin: fc.constantFrom('a', 'b'),
    sequence: fc.integer({ min: 1, max: 40 }),
    isNew: fc.boolean(),
    size: fc.nat(5),
  }),
  { minLength: 20, maxLength: 90 },
)
const share = fc.oneof(fc.constant(0), fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true }))
const reaches = fc.array(fc.record({ state: share, history: share }), { minLength: 1, maxLength: 3 })
const stages = fc.array(
  fc.record({ seeds, reaches, count: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 5 }) }),
  { minLength: 2, maxLength: 4 },
)

/** The same, whomever it is asked of. */
type Deed = (of: (cluster: ClusterName) => Ingester) => Promise<string>

/** What agents and rounds would do next, as far as they know. */
class Senders {
  readonly #newest = new Map<string, number>()
  /** the last batch of a cluster, where differences may follow */
  readonly #live = new Map<ClusterName, { readonly origin: string; readonly sequence: number; readonly rows: number }>()

  deed({ what, cluster, origin, sequence: any, isNew, size }: Seed): Deed {
    const node = aNode(`n${size}`)
    const accept = (batch: Batch, samples?: SampleSet, told?: Uint8Array): Deed => {
      const rows = batch.tables?.some(({ outcome }) => outcome === 'complete' || outcome === 'changed')
      return async (of) => {
        const word = await wordOf(of(cluster).accept({ batch, samples, message: told }))
        const live = { origin: batch.origin ?? '', sequence: batch.sequence, rows: rows ? size : -1 }
        const isWhole = batch.parts.some(({ outcome }) => outcome === 'complete')
        if (word === 'accepted' && !batch.backfill && (isWhole || this.#live.has(cluster)))
          this.#live.set(cluster, live)
        return word
      }
    }
    const live = this.#live.get(cluster)
    const sequence = isNew ? this.#next(cluster, origin) : any
    const late = isNew ? {} : { backfill: true }
    const pushed = (parts: Part[], more: Partial<Batch> = {}) =>
      aBatch(cluster, sequence, parts, { origin, source: 'push', ...timeOf(origin, sequence), ...late, ...more })
    // Without a whole batch before it there is nothing to differ from, and nothing to be between.
    const whole = (more: Partial<Batch> = {}) => accept(pushed([complete('node', node, aNode('always'))], more))
    switch (what) {
      case 'connect':
        return connecting(cluster, size)
      case 'pull':
        return accept(aBatch(cluster, this.#next(cluster, ''), [complete('node', node)], timeOf('', any)))
      case 'pull fails': {
        const failure = { code: 'timeout', message: 'no answer' }
        return accept(aBatch(cluster, this.#next(cluster, ''), [], { ...timeOf('', any), failure }))
      }
      case 'whole':
        return whole()
      case 'difference': {
        if (!live) return whole()
        const put = {
          type: 'node',
          collector: 'nodes',
          durationMs: 1,
          outcome: 'changed',
          put: [node],
          removed: ['n0'],
        } as const
        const next = this.#next(cluster, live.origin || origin)
        const head = { origin: live.origin || origin, base: live.sequence, ...timeOf(live.origin || origin, next) }
        const samples = samplesOf(pushed([complete('node', node)], head))
        return accept({ ...pushed([put], head), sequence: next }, samples && { ...samples, at: head.collectedAt })
      }
      case 'sources':
        return whole({ tables: [seen(sizes({ a: size, b: 2 })), unseen('no', 'team/other')] })
      case 'between':
        if (!live) return whole()
        return accept(
          partial(cluster, sequence, [seen(sizes({ a: size }))], {
            origin,
            source: 'push',
            ...timeOf(origin, sequence),
          }),
        )
      case 'sources differ': {
        if (!live || live.rows < 0) return whole({ tables: [seen(sizes({ a: size }))] })
        const custom = [seenSince(sizes({ a: size + 1 }), sizes({ a: live.rows }))]
        const next = this.#next(cluster, live.origin)
        return accept(
          partial(cluster, next, custom, {
            origin: live.origin,
            base: live.sequence,
            source: 'push',
            ...timeOf(live.origin, next),
          }),
        )
      }
      case 'original': {
        const message = originalFromBatch(pushed([complete('node', node), complete('namespace')]))
        const told = encodeRequest({ payload: { case: 'metrics', value: message } })
        const read = readOriginal(told)
        if (!read) throw new Error('it is one')
        const head = { cluster, origin: 'original', sequence: this.#next(cluster, 'original'), collectedAt: NOW - size }
        return accept(batchFromOriginal(read.metrics, head, undefined, read.nodes), undefined, told)
      }
      case 'lost': {
        const lost: Loss = {
          ...{ origin, sequence, lost: [[any, any + size]], from: T0, to: T0 + size * EVERY },
          ...{ cause: 'thinned', count: size, keptEveryMs: 0 },
        }
        return (of) => wordOf(of(cluster).lost(cluster, lost))
      }
      case 'remove':
        return (of) => {
          this.#live.delete(cluster)
          return wordOf(of(cluster).remove(cluster))
        }
      case 'agent':
        // A batch that came later would be a sign of life, of which a repeat knows or does not, as state is far.
        return (of) => wordOf(of(cluster).agent(cluster, anAgent({ bufferedBatches: size, heartbeatAt: 2 * NOW })))
      case 'remove source':
        return (of) => wordOf(of(cluster).removeSource(cluster, size > 2 ? 'team/sizes' : 'team/other'))
    }
  }

  #next(cluster: ClusterName, origin: string): number {
    const key = `${cluster} ${origin}`
    const next = (this.#newest.get(key) ?? 40) + 1
    this.#newest.set(key, next)
    return next
  }
}

function connecting(cluster: ClusterName, size: number): Deed {
  const connection = facts({ mode: 'push', displayName: `${cluster} ${size}`, intervalMs: size > 3 ? 60_000 : EVERY })
  return (of) => wordOf(of(cluster).connect(cluster, connection))
}

/** Spans of the origins lie over each other in part. */
const timeOf = (origin: string, sequence: number) => ({
  collectedAt: T0 + sequence * EVERY + (origin === 'b' ? 10 * EVERY + 7_000 : 0),
})

const received = (of: (cluster: ClusterName) => Ingester) =>
  names.map((name) => ['', 'a', 'b', 'original'].map((origin) => of(name).received(name, origin)))

describe('a fleet that is divided anew, at any moment and again', () => {
  it('acknowledges, knows and keeps what it would have undivided', { timeout: 60_000 + RUNS * 10_000 }, async () => {
    let carried = 0
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), stages, async (first, all) => {
        const directory = await mkdtemp(join(tmpdir(), 'division-'))
        try {
          carried += await compare(directory, first, all)
        } finally {
          await rm(directory, { recursive: true, force: true })
        }
      }),
      // A failure is told as far as it was made smaller by then.
      all({ numRuns: RUNS, interruptAfterTimeLimit: 20_000 + RUNS * 3_000 }),
    )
    expect(carried).toBeGreaterThan(0)
  })
})

interface Stage {
  readonly seeds: readonly Seed[]
  readonly reaches: readonly Reach[]
  readonly count: number | undefined
}

/** @returns how many records were carried over */
async function compare(directory: string, first: number, all: readonly Stage[]): Promise<number> {
  let now = NOW
  const clock: Clock = {
    now: () => now,
    // Looks at what another part does come at once; what takes longer takes for ever.
    sleep: (ms, signal) =>
      ms < 1_000
        ? setImmediate()
        : new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true })),
  }
  await using divided = new Owners(join(directory, 'divided'), clock, { segmentBytes: 4096, retainBytes: 0 })
  await using alone = new Owners(join(directory, 'alone'), clock)
  await divided.begin(first)
  await alone.begin(1)
  const ofDivided = (cluster: ClusterName) => divided.of(cluster)
  const ofAlone = (cluster: ClusterName) => alone.of(cluster)
  const done: Deed[] = []
  const both = async (deed: Deed) => {
    now += 1_000
    const expected = await deed(ofAlone)
    expect(await deed(ofDivided)).toBe(expected)
  }
  const senders = new Senders()
  for (const name of names) await both(connecting(name, 0))
  let carried = 0
  for (const { seeds, reaches, count } of all) {
    for (const seed of seeds) {
      const deed = senders.deed(seed)
      if (seed.what !== 'remove' && seed.what !== 'remove source') done.push(deed)
      await both(deed)
    }
    carried += (await divided.endAndGoOn(reaches, count))?.records ?? 0
    await alone.endAndGoOn([{ state: 1, history: 1 }])
    expect(received(ofDivided)).toEqual(received(ofAlone))
  }
  for (const deed of done) await both(deed)
  await divided.settle()
  await alone.settle()
  expect(received(ofDivided)).toEqual(received(ofAlone))
  expect(divided.stored()).toEqual(alone.stored())
  expect(divided.samples()).toEqual(alone.samples())
  for (const name of names) {
    const newest = ofDivided(name).received(name, '').at(-1)?.[1] ?? 0
    expect(ofDivided(name).nextSequence(name)).toBeGreaterThan(newest)
  }
  return carried
}
