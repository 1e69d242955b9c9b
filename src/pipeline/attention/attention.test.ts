import { describe, expect, it } from 'vitest'
import type { RedisMarks } from '#redis'
import { silentLogger } from '#runtime'
import { VirtualTime } from '../agent/testing/virtual-time.ts'
import { LOOK_MS, Looks } from './attention.ts'
import { usageRates } from './usage-rates.ts'

const settled = async () => {
  for (let i = 0; i < 12; i++) await new Promise((resolve) => setImmediate(resolve))
}

function someLooks(marks?: RedisMarks) {
  const time = new VirtualTime(1_000_000)
  const looks = new Looks({ clock: time, logger: silentLogger, ...(marks && { marks }) })
  const told: string[] = []
  looks.onChange((cluster) => told.push(`${cluster} ${looks.isLookedAt(cluster)}`))
  return { time, looks, told, advance: (ms: number) => time.advance(ms, settled) }
}

/** Marks of one Redis, as several processes see them. */
function sharedMarks() {
  const listeners = new Set<(text: string) => void>()
  const set: string[] = []
  return {
    set,
    marks: () =>
      ({
        set: async (key: string) => {
          set.push(key)
        },
        publish: async (text: string) => {
          for (const listener of listeners) listener(text)
        },
        subscribe: (listener: (text: string) => void) => {
          listeners.add(listener)
          return () => listeners.delete(listener)
        },
        [Symbol.asyncDispose]: async () => undefined,
      }) as unknown as RedisMarks,
  }
}

describe('a look', () => {
  it('holds for half a minute after the last, and is told when it begins and when it is over', async () => {
    const { looks, told, advance } = someLooks()
    looks.look('west')
    expect([looks.isLookedAt('west'), looks.isLookedAt('east')]).toEqual([true, false])
    await advance(20_000)
    looks.look('west')
    await advance(LOOK_MS - 1)
    expect([looks.isLookedAt('west'), told]).toEqual([true, ['west true']])
    await advance(2)
    expect([looks.isLookedAt('west'), looks.clusters(), told]).toEqual([false, [], ['west true', 'west false']])
    looks.look('west')
    expect(told).toHaveLength(3)
    await looks[Symbol.asyncDispose]()
  })

  it('reaches the other processes of a hub, which are told it no more often than every ten seconds', async () => {
    const { marks, set } = sharedMarks()
    const api = someLooks(marks())
    const owner = someLooks(marks())
    for (let i = 0; i < 50; i++) api.looks.look('west')
    await settled()
    expect(owner.looks.isLookedAt('west')).toBe(true)
    expect(set).toEqual(['west'])
    await api.advance(10_000)
    api.looks.look('west')
    await settled()
    expect(set).toEqual(['west', 'west'])
    await Promise.all([api.looks[Symbol.asyncDispose](), owner.looks[Symbol.asyncDispose]()])
    api.looks.look('east')
    expect(api.looks.isLookedAt('east')).toBe(false)
  })

  it('counts here also while the others cannot be told', async () => {
    const failing = {
      set: async () => {
        throw new Error('Redis is away')
      },
      subscribe: () => () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    } as unknown as RedisMarks
    const { looks } = someLooks(failing)
    looks.look('west')
    await settled()
    expect(looks.isLookedAt('west')).toBe(true)
    await looks[Symbol.asyncDispose]()
  })
})

describe('how often usage is read', () => {
  const rated = (pods: Readonly<Record<string, number>>) => {
    const world = someLooks()
    const rates = usageRates({ attention: world.looks, refreshMs: 5_000, podsOf: (cluster) => pods[cluster] })
    return { ...world, rates }
  }

  it('is the round where nobody looks, and five seconds where somebody does', async () => {
    const { rates, looks, advance } = rated({ west: 1_000, east: 1_000 })
    expect(rates.of('west', 30_000)).toBe(30_000)
    looks.look('west')
    expect([rates.of('west', 30_000), rates.of('east', 30_000), rates.of('east', 60_000)]).toEqual([
      5_000, 30_000, 60_000,
    ])
    await advance(LOOK_MS + 1)
    expect(rates.of('west', 30_000)).toBe(30_000)
    await looks[Symbol.asyncDispose]()
  })

  it.each([
    [20_000, 5_000],
    [20_001, 10_000],
    [60_000, 15_000],
    [120_000, 30_000],
    [1_000_000, 30_000],
  ])('is slower the more pods are looked at: of %d every %d ms', async (pods, everyMs) => {
    const { rates, looks } = rated({ west: pods / 2, east: pods / 2 })
    looks.look('west')
    looks.look('east')
    expect([rates.of('west', 30_000), rates.of('east', 30_000)]).toEqual([everyMs, everyMs])
    await looks[Symbol.asyncDispose]()
  })

  it('changes for all that are looked at when one more is, and never for clusters of others', async () => {
    const { rates, looks } = rated({ west: 20_000, east: 20_000 })
    const changed: string[] = []
    rates.onChange((cluster) => changed.push(cluster))
    looks.look('west')
    looks.look('elsewhere')
    changed.length = 0
    looks.look('east')
    expect(changed.sort()).toEqual(['east', 'west'])
    expect(rates.of('west', 30_000)).toBe(10_000)
    await looks[Symbol.asyncDispose]()
  })
})
