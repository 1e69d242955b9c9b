import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { type Batch, ORIGINAL_ORIGIN, systemClock } from '#model'
import { openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { all } from '../../../test/properties.ts'
import { openHoleOf } from '../api/history.ts'
import { spansOf } from '../history/spans.ts'
import { aBatch, aNode, anAgent, complete, facts, T0, west } from '../state/test/fleet-words.ts'
import { Ingester } from './ingester.ts'
import { FileHistory } from './test/file-history.ts'

/** As long as the interval of an original that nothing is known of yet. */
const EVERY = 60_000
const at = (tick: number) => T0 + tick * EVERY
/** of the random worlds; a few thousand find what is rare */
const RUNS = Number(process.env.MISSING_RUNS ?? 40)
const minutesOf = (time: number) => (time - T0) / EVERY

/** A hub on a folder, which it may be killed on: the next one begins with what was on the disk then. */
class Hub {
  now = T0
  readonly #root: string
  #firstRound: number | undefined
  #ends: (() => Promise<void>)[] = []
  #folder = 0
  #ingester!: Ingester
  #history!: FileHistory
  #state!: EmbeddedStateStore

  constructor(root: string) {
    this.#root = root
  }

  async start(): Promise<void> {
    const directory = join(this.#root, String(this.#folder))
    const log = await openLog({ directory: join(directory, 'log') })
    this.#state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 5 })
    this.#history = await FileHistory.open(join(directory, 'history'))
    const clock = { ...systemClock, now: () => this.now }
    const events = openEvents({ kind: 'in-process' })
    const common = { log, state: this.#state, history: this.#history, events, clock }
    this.#ingester = await Ingester.open({ ...common, random: () => 0.01 })
    await this.#ingester.connect(west, facts({ intervalMs: EVERY }))
    const parts = [this.#ingester, events, this.#history, this.#state, log]
    this.#ends = parts.map((part) => async () => part[Symbol.asyncDispose]())
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) await end()
  }

  async kill(): Promise<void> {
    const [here, next] = [this.#folder, ++this.#folder].map((folder) => join(this.#root, String(folder)))
    // The log last: no store is ahead of it. What is being written is not there yet.
    const filter = (path: string) => !/[/.](lock|new)$/.test(path)
    for (const part of ['state', 'history', 'log'])
      await cp(join(here ?? '', part), join(next ?? '', part), { recursive: true, filter })
    await this.stop()
  }

  async pull(): Promise<void> {
    await this.#take({ source: 'pull', sequence: this.#ingester.nextSequence(west) })
  }

  async push(origin: string, sequence: number, more: Partial<Batch> = {}): Promise<void> {
    await this.#take({ source: 'push', origin, sequence, ...more })
  }

  async agent(connected: boolean, protocol: 'original' | 1): Promise<void> {
    await this.#ingester.agent(west, anAgent({ connected, protocol, since: this.now }))
  }

  async unread(): Promise<void> {
    const { origin, sequence } = this.#state.cluster(west) ?? { origin: '', sequence: 0 }
    await this.#ingester.unread(west, { origin, sequence }, { code: 'agent_away', message: 'the agent is away' })
  }

  async #take(more: Partial<Batch> & { readonly sequence: number }): Promise<void> {
    this.#firstRound ??= more.backfill ? undefined : this.now
    const parts = [complete('node', aNode('n1'))]
    const batch = aBatch(west, more.sequence, parts, { collectedAt: this.now, durationMs: 0, ...more })
    await this.#ingester.accept({ batch })
  }

  /** What an answer says of all the time up to now, and the times of what is kept. */
  async told() {
    await this.#ingester.flushed()
    await this.#ingester.flushed('history')
    const kept = [...new Set(this.#history.timesOf('west'))].sort((a, b) => a - b)
    const batches = kept.map((time) => ({ from: time, to: time }))
    const marks = { runs: [], losses: this.#history.lossesOf('west'), pushes: true, batches }
    const spans = spansOf(marks, { from: 0, to: this.now })
    const state = this.#state.cluster(west)
    const open = state && openHoleOf(state, this.now)
    // What an agent collected before the hub heard of the cluster is nothing that the hub misses.
    const first = this.#firstRound ?? 0
    const since = (open ? [...spans, open] : spans).filter(({ to }) => to > first)
    return { kept: kept.filter((time) => time >= first), spans: since }
  }
}

interface Stretch {
  readonly who: 'nobody' | 'hub' | 'original' | 'agent'
  readonly ticks: number
  /** of an agent: what it collects arrives at once, with the first that arrives at once after it, or never */
  readonly arrives: 'at once' | 'late' | 'never'
  readonly hub: 'runs' | 'stops' | 'is killed'
}
const stretches = fc.array(
  fc.record<Stretch>({
    who: fc.constantFrom('nobody', 'hub', 'original', 'agent', 'agent'),
    ticks: fc.integer({ min: 1, max: 5 }),
    arrives: fc.constantFrom('at once', 'at once', 'late', 'never'),
    hub: fc.constantFrom('runs', 'runs', 'runs', 'stops', 'is killed'),
  }),
  { minLength: 2, maxLength: 9 },
)

/**
 * What a collector of the original is seen of tells its interval: that of one which is seen alone again and again may be longer,
 * and up to now the rounds of others before it count, too.
 */
function tellsInterval(story: readonly Stretch[]): boolean {
  const seen = story.filter(({ who, arrives, hub }) => {
    const isSent = who === 'hub' || who === 'original' || (who === 'agent' && arrives === 'at once')
    return isSent && hub === 'runs'
  })
  const alone = seen.filter(({ who, ticks }) => who === 'original' && ticks === 1)
  return alone.length <= 2 && (seen.length <= 1 || seen.at(-1) !== alone.at(-1))
}

/** Lives through all of it. While the hub is away, what a collector of the original or the hub would see is nothing. */
async function live(hub: Hub, story: readonly Stretch[]): Promise<void> {
  const numbers = { agent: 0, original: 0 }
  const backlog: { readonly sequence: number; readonly at: number }[] = []
  let tick = 0
  for (const { who, ticks, arrives, hub: fate } of story) {
    const isAway = fate !== 'runs'
    if (fate === 'stops') await hub.stop()
    if (fate === 'is killed') await hub.kill()
    if (!isAway && (who === 'agent' || who === 'original')) {
      await hub.agent(who === 'original' || arrives === 'at once', who === 'original' ? 'original' : 1)
    }
    for (let n = 0; n < ticks; n++) {
      hub.now = at(++tick)
      if (who === 'agent') {
        const sequence = ++numbers.agent
        if (isAway || arrives !== 'at once') {
          if (isAway || arrives === 'late') backlog.push({ sequence, at: hub.now })
          continue
        }
        await hub.push('agent', sequence)
        for (const late of backlog.splice(0))
          await hub.push('agent', late.sequence, { collectedAt: late.at, backfill: true })
      } else if (!isAway && who === 'original') await hub.push(ORIGINAL_ORIGIN, ++numbers.original)
      else if (!isAway && who === 'hub') await hub.pull()
    }
    if (isAway) await hub.start()
  }
}

/** From one sample to the next, and to now, as often as that is longer than two intervals. */
function missing(kept: readonly number[], now: number) {
  return kept.flatMap((time, i) => {
    const next = kept[i + 1] ?? now
    return next - time > 2 * EVERY ? [[minutesOf(time), minutesOf(next)]] : []
  })
}

/** As one, where they touch without a sample between. */
function joined(spans: readonly { readonly from: number; readonly to: number }[], kept: readonly number[]) {
  const sorted = [...spans].sort((a, b) => a.from - b.from || a.to - b.to)
  const whole: { from: number; to: number }[] = []
  for (const { from, to } of sorted) {
    const last = whole.at(-1)
    if (last && from <= last.to && !kept.includes(from)) last.to = Math.max(last.to, to)
    else whole.push({ from, to })
  }
  return whole.map(({ from, to }) => [minutesOf(from), minutesOf(to)])
}

async function withHub(use: (hub: Hub) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'missing-'))
  const hub = new Hub(root)
  try {
    await hub.start()
    await use(hub)
  } finally {
    await hub.stop()
    await rm(root, { recursive: true, force: true })
  }
}

describe('what history has nothing of', () => {
  it(
    'is named, and nothing else is, whoever reads the cluster and whatever becomes of agent and hub',
    { timeout: 3_000 * RUNS },
    () =>
      fc.assert(
        fc.asyncProperty(stretches.filter(tellsInterval), (story) =>
          withHub(async (hub) => {
            await live(hub, story)
            const { kept, spans } = await hub.told()
            expect(joined(spans, kept)).toEqual(missing(kept, hub.now))
          }),
        ),
        all({ numRuns: RUNS }),
      ),
  )

  const causes = async (hub: Hub) =>
    (await hub.told()).spans.map(({ cause, from, to, count }) => [cause, minutesOf(from), minutesOf(to), count])

  it('is the time of a hub that did not run, for a collector of the original', () =>
    withHub(async (hub) => {
      await live(hub, [
        { who: 'original', ticks: 3, arrives: 'at once', hub: 'runs' },
        { who: 'nobody', ticks: 9, arrives: 'at once', hub: 'is killed' },
        { who: 'original', ticks: 3, arrives: 'at once', hub: 'runs' },
      ])
      expect(await causes(hub)).toEqual([['hub_down', 3, 13, 9]])
    }))

  it('is what a collector of the original did not send while the hub ran', () =>
    withHub(async (hub) => {
      await live(hub, [
        { who: 'original', ticks: 3, arrives: 'at once', hub: 'runs' },
        { who: 'nobody', ticks: 9, arrives: 'at once', hub: 'runs' },
      ])
      expect(await causes(hub), 'it grows').toEqual([['not_received', 3, 12, 9]])
      hub.now = at(13)
      await hub.push(ORIGINAL_ORIGIN, 4)
      expect(await causes(hub)).toEqual([['not_received', 3, 13, 9]])
    }))

  it('is the time between a collector of the original and the agent that is installed instead of it', () =>
    withHub(async (hub) => {
      await live(hub, [
        { who: 'original', ticks: 1, arrives: 'at once', hub: 'runs' },
        { who: 'nobody', ticks: 2, arrives: 'at once', hub: 'runs' },
        { who: 'agent', ticks: 1, arrives: 'at once', hub: 'runs' },
      ])
      expect(await causes(hub)).toEqual([['agent_down', 1, 4, 2]])
    }))

  it('is what follows two rounds of a collector of the original with one missed between them', () =>
    withHub(async (hub) => {
      const [once, pause] = [{ who: 'original', ticks: 1 } as const, { who: 'nobody', ticks: 1 } as const]
      const story = [once, pause, once, pause, pause].map(
        (one) => ({ ...one, arrives: 'at once', hub: 'runs' }) as const,
      )
      await live(hub, story)
      hub.now = at(6)
      expect(await causes(hub), 'up to now').toEqual([['not_received', 3, 6, 3]])
      await hub.push(ORIGINAL_ORIGIN, 3)
      expect(await causes(hub), 'to the next').toEqual([['not_received', 3, 6, 2]])
    }))

  it('is what an agent that never comes back took with it: up to now, or to the one that reads the cluster next', () =>
    withHub(async (hub) => {
      await live(hub, [
        { who: 'agent', ticks: 3, arrives: 'at once', hub: 'runs' },
        { who: 'agent', ticks: 9, arrives: 'never', hub: 'runs' },
      ])
      expect(await causes(hub)).toEqual([['not_received', 3, 12, 9]])
      hub.now = at(13)
      await hub.pull()
      expect(await causes(hub)).toEqual([['not_received', 3, 13, 9]])
    }))

  it('shrinks to what is missing when an agent delivers late', () =>
    withHub(async (hub) => {
      await live(hub, [
        { who: 'agent', ticks: 2, arrives: 'at once', hub: 'runs' },
        { who: 'agent', ticks: 5, arrives: 'never', hub: 'runs' },
        { who: 'agent', ticks: 5, arrives: 'late', hub: 'runs' },
      ])
      hub.now = at(13)
      await hub.push('agent', 13)
      expect(await causes(hub)).toEqual([['not_received', 2, 13, 10]])
      for (let n = 8; n <= 12; n++) await hub.push('agent', n, { collectedAt: at(n), backfill: true })
      expect(await causes(hub)).toEqual([['not_received', 2, 8, 5]])
      for (let n = 3; n <= 7; n++) await hub.push('agent', n, { collectedAt: at(n), backfill: true })
      expect(await causes(hub)).toEqual([])
    }))

  it('does not begin anew with every look of a hub that cannot read a cluster either', () =>
    withHub(async (hub) => {
      await live(hub, [{ who: 'agent', ticks: 2, arrives: 'at once', hub: 'runs' }])
      hub.now = at(9)
      await hub.unread()
      expect(await causes(hub)).toEqual([['not_received', 2, 9, 7]])
      await hub.kill()
      await hub.start()
      hub.now = at(10)
      await hub.push('agent', 9)
      expect(await causes(hub)).toEqual([['not_received', 2, 10, 7]])
    }))
})
