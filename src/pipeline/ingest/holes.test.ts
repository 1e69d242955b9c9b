import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { openHistory } from '#history'
import { type Batch, metricPrefix, systemClock } from '#model'
import { openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { smallDisk } from '../../../test/small-disk.ts'
import { aBatch, aNode, complete, facts, T0, west } from '../state/test/fleet-words.ts'
import { Holes } from './holes.ts'
import { Ingester } from './ingester.ts'

const S = 1000
const hub = { intervalMs: 30 * S, startedAt: 0 }
const round = (at: number, hasSamples = true) => {
  const by = { reader: 'hub', isAwaited: false } as const
  return { sequence: 1, at: at * S, durationMs: 0, hasSamples, ...by }
}

describe('holes', () => {
  /** Rounds by their seconds; minus: one without samples; `!`: refused. @returns what was told of, in seconds */
  function told(rounds: readonly (number | string)[], startedAt = 0, coveredTo?: number) {
    const holes = new Holes(coveredTo === undefined ? undefined : coveredTo * S)
    return rounds.flatMap((one) => {
      if (one === '!') {
        holes.refused('disk_full')
        return []
      }
      const at = round(Math.abs(Number(one)), Number(one) >= 0)
      const loss = holes.before(at, { ...hub, startedAt: startedAt * S })
      holes.after(at)
      return loss ? [[loss.cause, loss.from / S, loss.to / S, loss.count]] : []
    })
  }
  it.each([
    ['none, with a round now and then late', [0, 30, 75, 105], []],
    ['none before the first round', [1000], []],
    ['a round that did not come', [0, 30, 150], [['not_kept', 30, 150, 3]]],
    ['rounds the hub refused', [0, '!', '!', 120], [['disk_full', 0, 120, 3]]],
    ['one refusal, made good in time', [0, '!', 45, 75], []],
    [
      'a cluster that could not be read, from the last samples to the next',
      [0, -30, -60, 90, 120],
      [
        ['unreachable', 0, 30, 1],
        ['unreachable', 30, 60, 1],
        ['unreachable', 60, 90, 1],
      ],
    ],
    ['one that never could: from when it was first tried', [-30, -60], [['unreachable', 30, 60, 1]]],
  ])('are %s', (_, rounds, holes) => expect(told(rounds)).toEqual(holes))

  it('are of the hub where it began in between', () => {
    expect(told([600, 630], 590, 30)).toEqual([['hub_down', 30, 600, 18]])
    expect(told([-600, -630], 590, 30)).toEqual([
      ['hub_down', 30, 600, 19],
      ['unreachable', 600, 630, 1],
    ])
    expect(told([60, 90], 45, 30), 'a restart that nobody missed').toEqual([])
  })
})

describe('the holes of a hub', () => {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function aHub(
    directory: string,
    now: () => number,
    logAt = join(directory, 'log'),
    sizes: { segmentBytes?: number; retainBytes?: number } = {},
  ) {
    const clock = { ...systemClock, now }
    const log = await openLog({ directory: logAt, ...sizes })
    const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 20 })
    const events = openEvents({ kind: 'in-process' })
    const retentionMs = 86_400_000 * 36_500
    const history = await openHistory({ kind: 'duckdb', directory: join(directory, 'history'), retentionMs })
    const ingester = await Ingester.open({ log, state, events, history, clock, random: () => 0.01 })
    await ingester.connect(west, facts({ intervalMs: 30 * S }))
    const close = async () => {
      for (const part of [ingester, events, history, state, log]) await part[Symbol.asyncDispose]()
    }
    const spans = async (to: number) => {
      await ingester.flushed('history')
      const found = await history.spans({ cluster: 'west', from: T0, to })
      return found.map(({ cause, from, to, count }) => [cause, (from - T0) / S, (to - T0) / S, count])
    }
    return { ingester, close, spans, log, history }
  }
  const read = (second: number, more: Partial<Batch> = {}) =>
    aBatch(west, second + 1, [complete('node', aNode('n1'))], { collectedAt: T0 + second * S, ...more })

  it('are told of the time it did not run, and of a cluster it could not read', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'holes-'))
    ends.push(() => rm(directory, { recursive: true, force: true }))
    let now = T0
    const first = await aHub(directory, () => now)
    for (const second of [0, 30]) {
      now = T0 + second * S
      await first.ingester.accept({ batch: read(second) })
    }
    await first.close()
    now = T0 + 600 * S
    const second = await aHub(directory, () => now)
    ends.push(second.close)
    await second.ingester.accept({ batch: read(600) })
    for (const at of [630, 660]) {
      now = T0 + at * S
      const failure = { code: 'kube_timeout', message: 'nothing' }
      await second.ingester.accept({ batch: read(at, { parts: [], failure }) })
    }
    now = T0 + 690 * S
    await second.ingester.accept({ batch: read(690) })
    expect(await second.spans(now)).toEqual([
      ['hub_down', 30, 600, 18],
      ['unreachable', 600, 690, 3],
    ])
  })

  it('are told of what a history lacks that was put back alone, and that the log cannot give it again', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'holes-'))
    ends.push(() => rm(directory, { recursive: true, force: true }))
    let now = T0
    const sizes = { segmentBytes: 4_000, retainBytes: 10_000 }
    const open = () => aHub(directory, () => now, undefined, sizes)
    const run = async ({ ingester }: Awaited<ReturnType<typeof open>>, from: number, to: number) => {
      for (let round = from; round < to; round++) {
        now = T0 + round * 30 * S
        await ingester.accept({ batch: read(round * 30) })
        await ingester.flushed()
        await ingester.flushed('history')
      }
    }
    const first = await open()
    await run(first, 0, 20)
    await first.close()
    await cp(join(directory, 'history'), join(directory, 'copy'), { recursive: true })
    const second = await open()
    await run(second, 20, 120)
    const position = second.history.position()
    await second.close()
    await rm(join(directory, 'history'), { recursive: true })
    await cp(join(directory, 'copy'), join(directory, 'history'), { recursive: true })

    for (const start of ['the first', 'the next']) {
      const hub = await open()
      const spans = await hub.spans(now)
      expect(hub.history.position(), start).toBeGreaterThanOrEqual(position)
      const oldest = Number(spans[0]?.[2])
      expect(spans, start).toEqual([['restored', 19 * 30 + 0.001, oldest, 1]])
      // What the log still had is there again, from the end of the loss on.
      const query = {
        cluster: 'west',
        scope: 'cluster',
        metrics: [`${metricPrefix.cluster}nodes_total`],
        stepMs: 30 * S,
        maxSeries: 1,
      } as const
      const { series } = await hub.history.range({ ...query, from: T0, to: T0 + 119 * 30 * S })
      const known = (series[0]?.values ?? []).flatMap((value, i) => (value === null ? [] : [i]))
      const rounds = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
      expect(oldest / 30, 'the log was cut').toBeGreaterThan(40)
      expect(known, start).toEqual([...rounds(0, 20), ...rounds(Math.ceil(oldest / 30), 120)])
      await hub.close()
    }
  })

  it('are told of the time in which an agent did not run, once, whatever comes again and whoever starts again', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'holes-'))
    ends.push(() => rm(directory, { recursive: true, force: true }))
    let now = T0
    const pushed = (sequence: number, second: number) => {
      now = Math.max(now, T0 + second * S)
      return read(second, { sequence, origin: 'agent', source: 'push', backfill: now > T0 + second * S })
    }
    const first = await aHub(directory, () => now)
    for (const [sequence, second] of [[1, 0] as const, [2, 30] as const]) {
      await first.ingester.accept({ batch: pushed(sequence, second) })
    }
    await first.close()
    const second = await aHub(directory, () => now)
    await second.ingester.accept({ batch: pushed(4, 630) })
    expect(await second.spans(now), 'the third may still come').toEqual([['not_received', 30, 630, 19]])
    for (const _ of ['once', 'again']) await second.ingester.accept({ batch: pushed(3, 600) })
    const hole = ['agent_down', 30, 600, 18]
    expect((await second.spans(now)).filter(([cause]) => cause !== '')).toEqual([hole])
    await second.close()
    const third = await aHub(directory, () => now)
    ends.push(third.close)
    await third.ingester.accept({ batch: pushed(5, 660) })
    expect((await third.spans(now)).filter(([cause]) => cause !== '')).toEqual([hole])
  })

  const disk = smallDisk()
  it.skipIf(typeof disk === 'string')(
    `are told of a full disk${typeof disk === 'string' ? ` (${disk})` : ''}`,
    async () => {
      if (typeof disk === 'string') return
      ends.push(async () => disk.unmount())
      const directory = await mkdtemp(join(tmpdir(), 'holes-'))
      ends.push(() => rm(directory, { recursive: true, force: true }))
      let now = T0
      const { ingester, close, spans } = await aHub(directory, () => now, join(disk.path, 'log'))
      ends.push(close)
      await ingester.accept({ batch: read(0) })
      disk.fill()
      // What is left of the last block still takes a few.
      const kept: number[] = []
      const refused: number[] = []
      for (let second = 30; refused.length < 3 && second < 9000; second += 30) {
        now = T0 + second * S
        await ingester.accept({ batch: read(second) }).then(
          () => kept.push(second),
          (error: unknown) => {
            expect(error).toMatchObject({ code: 'store_unavailable' })
            refused.push(second)
          },
        )
      }
      disk.empty()
      const last = kept.at(-1) ?? 0
      expect(refused).toEqual([last + 30, last + 60, last + 90])
      now = T0 + (last + 120) * S
      await ingester.accept({ batch: read(last + 120) })
      expect(await spans(now)).toEqual([['disk_full', last, last + 120, 3]])
    },
  )
})
