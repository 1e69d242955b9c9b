import { describe, expect, it } from 'vitest'
import { parseClusterName } from '#model'
import { silentLogger } from '#runtime'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { type Holder, Places } from './places.ts'

const cluster = parseClusterName('edge')
const MINUTE_MS = 60_000

function aTable() {
  const clock = new ManualClock(Date.parse('2026-01-01T00:00:00Z'))
  const told: { readonly who: string; readonly message: string; readonly retryAfterMs: number }[] = []
  let contested = 0
  const places = new Places({
    ...{ clock, logger: silentLogger, received: () => [] },
    onContested: () => {
      contested++
    },
  })
  const enter = (who: string, address = `10.0.0.${who.length}`, instance = '', key?: string) => {
    const holder: Holder = {
      isDelivering: true,
      facts: () => undefined,
      replaced: (message, retryAfterMs) => told.push({ who, message, retryAfterMs }),
      changed: () => undefined,
      disconnect: () => undefined,
    }
    return places.enter(cluster, { identity: who, instance, address, key }, holder)
  }
  return { clock, told, enter, contested: () => contested }
}

describe('the place of a cluster', () => {
  it('goes to the newest stream; one that moved once is no second agent', () => {
    const { told, enter, contested } = aTable()
    expect(enter('a').doubt).toBeUndefined()
    expect(enter('bb').doubt).toBeUndefined()
    expect(told).toEqual([{ who: 'a', message: 'a newer stream of this cluster has come', retryAfterMs: 0 }])
    expect(contested()).toBe(0)
  })

  it('is doubtful when one takes it back: both are named with where they are, and the other waits longer each time', () => {
    const { clock, told, enter } = aTable()
    const waits: number[] = []
    let last = enter('a')
    for (let n = 1; n < 8; n++) {
      last = enter(n % 2 === 1 ? 'bb' : 'a')
      waits.push(told.at(-1)?.retryAfterMs ?? 0)
    }
    expect(last.doubt?.message).toBe('two agents use the identity of this cluster: a at 10.0.0.1 and bb at 10.0.0.2')
    expect(waits[0]).toBe(0)
    expect(waits.slice(1)).toEqual(waits.slice(1).toSorted((a, b) => a - b))
    expect(waits[1]).toBeGreaterThanOrEqual(30_000)
    expect(waits.at(-1)).toBe(300_000)
    // To the peer itself it is not said who the other is.
    expect(told.map(({ message }) => message).join()).not.toMatch(/10\.0\.0/)
    // It is said for as long as the other may still be waiting.
    expect((last.doubt?.until ?? 0) - clock.now()).toBeGreaterThan(300_000)
  })

  it('is contested by a copy of an agent with its folder: each start of one is told from every other', () => {
    const { told, enter, contested } = aTable()
    const original = () => enter('a', '10.0.0.1', 'first-start')
    const copy = () => enter('a', '10.0.0.2', 'start-of-the-copy')
    original()
    expect(copy().doubt).toBeUndefined()
    expect(original().doubt?.message).toBe(
      'two agents use the identity of this cluster: start-of-the-copy at 10.0.0.2 and first-start at 10.0.0.1; one runs on a copy of the folder of the other',
    )
    expect(told.at(-1)).toMatchObject({ message: expect.stringMatching(/^another agent uses .*: stop one of the two/) })
    expect(told.at(-1)?.retryAfterMs).toBeGreaterThanOrEqual(30_000)
    expect(contested()).toBe(1)
  })

  it('is in doubt no longer than the other is waited for, where that one says when it comes back', () => {
    const { clock, enter } = aTable()
    const takes = (instance: string) => enter('a', '10.0.0.1', instance).doubt
    takes('original')
    takes('copy')
    const leftMs = (takes('original')?.until ?? 0) - clock.now()
    // It was told to wait for a minute; its next try comes within another.
    expect(leftMs).toBeGreaterThan(2 * MINUTE_MS)
    expect(leftMs).toBeLessThan(3 * MINUTE_MS)
  })

  it('is told by names that people find: that of the log, and the key that the request showed', () => {
    const { enter } = aTable()
    const shop = () => enter('a', '10.0.0.1', 'shop-1-0a1b2c3d', '3f9a'.repeat(16))
    shop()
    enter('b', '10.0.0.2', '1f0c9a3e-0000-4000-8000-000000000000')
    expect(shop().doubt?.message).toBe(
      'two agents use the identity of this cluster: 1f0c9a3e at 10.0.0.2 and shop-1-0a1b2c3d with key 3f9a3f9a3f9a3f9a at 10.0.0.1',
    )
  })

  it('is contested by nobody where one agent is started again and again, or its stream is opened anew', () => {
    const { enter, contested } = aTable()
    for (const instance of ['one', 'two', 'two', 'three', 'three', 'four'])
      expect(enter('a', '10.0.0.1', instance).doubt).toBeUndefined()
    expect(contested()).toBe(0)
  })

  it('is beyond doubt again when only one has come for ten minutes', async () => {
    const { clock, enter } = aTable()
    for (const who of ['a', 'bb', 'a']) enter(who)
    await clock.advance(11 * MINUTE_MS)
    expect(enter('bb').doubt).toBeUndefined()
  })
})
