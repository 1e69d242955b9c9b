import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { DirtySet } from './dirty-set.ts'

describe('DirtySet', () => {
  it('tells all that changed once, when it is quiet for 50 ms', async () => {
    const clock = new ManualClock()
    const told: string[][] = []
    await using dirty = new DirtySet((all) => told.push([...all]), clock)
    dirty.add('a')
    await clock.advance(30)
    dirty.add('b')
    dirty.add('a')
    await clock.advance(49)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toEqual([['a', 'b']])
    dirty.add('c')
    await clock.advance(50)
    expect(told).toEqual([['a', 'b'], ['c']])
  })

  it('tells once a second while it is never quiet, and loses nothing', async () => {
    const clock = new ManualClock()
    const told: string[][] = []
    await using dirty = new DirtySet((all) => told.push([...all]), clock)
    for (let at = 0; at < 300; at++) {
      dirty.add(String(at))
      await clock.advance(10)
    }
    expect(told.length).toBeGreaterThanOrEqual(2)
    expect(told.length).toBeLessThanOrEqual(4)
    await clock.advance(1000)
    expect(
      told
        .flat()
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 300 }, (_, at) => at))
  })

  it('does not wait longer where the clock is set back', async () => {
    let now = 10_000_000
    const told: string[][] = []
    const clock = { now: () => now, sleep: () => Promise.resolve() }
    await using dirty = new DirtySet((all) => told.push([...all]), clock)
    dirty.add('a')
    now -= 3_600_000
    await expect.poll(() => told).toEqual([['a']])
  })

  it('tells nothing after its end', async () => {
    const clock = new ManualClock()
    const told: string[][] = []
    const dirty = new DirtySet((all) => told.push([...all]), clock)
    dirty.add('a')
    await dirty[Symbol.asyncDispose]()
    await clock.advance(5000)
    dirty.add('b')
    await clock.advance(5000)
    expect(told).toEqual([])
  })
})
