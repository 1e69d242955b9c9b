import { describe, expect, it } from 'vitest'
import { ListPauses, PausesOfKind } from './list-pauses.ts'

/** Changes of one namespace that follow each other without a break. @returns when lists began */
function lists(pauses: ListPauses, tookMs: number, untilMs: number): readonly number[] {
  const space = {}
  const began: number[] = []
  for (let now = 0; now < untilMs; ) {
    const leftMs = pauses.leftMs([space], now)
    if (leftMs > 0) {
      now += leftMs
      continue
    }
    pauses.begin([space], now)
    began.push(now)
    now += tookMs
    pauses.ended({ endedAt: now, tookMs })
  }
  return began
}

describe('pauses between lists', () => {
  it('are as long as a list at first, and let one namespace have a tenth of the time in the long run', () => {
    const began = lists(new ListPauses(), 10_000, 3_600_000)
    const quick = [0, 20_000, 40_000, 60_000]
    expect(began.slice(0, 7).map(Math.round)).toEqual([...quick, 120_000, 220_000, 320_000])
    expect(began.length).toBeLessThanOrEqual(1 + 3 + 36)
  })

  it('leave half of the time free, however many namespaces change', () => {
    const pauses = new ListPauses()
    let [now, busyMs] = [0, 0]
    while (now < 3_600_000) {
      const leftMs = pauses.leftMs([{}], now)
      if (leftMs <= 0) {
        pauses.begin([{}], now)
        busyMs += 10_000
        pauses.ended({ endedAt: now + 10_000, tookMs: 10_000 })
      }
      now += Math.max(leftMs, 10_000)
    }
    expect(busyMs).toBeLessThanOrEqual(1_800_000)
  })

  it('let who was served because of another pay as well, and nobody owe more than one list', () => {
    const pauses = new ListPauses()
    const [often, seldom] = [{}, {}]
    pauses.begin([often, seldom], 0)
    pauses.ended({ endedAt: 10_000, tookMs: 10_000 })
    for (let turn = 0; turn < 20; turn++) pauses.begin([often, often], 10_000)
    pauses.begin([often, seldom], 10_000)
    expect([[often], [seldom], [often, seldom]].map((one) => pauses.leftMs(one, 10_000))).toEqual([
      100_000, 10_000, 10_000,
    ])
  })

  it('are of five minutes at most, and of ten times what it takes where a list is short', () => {
    const slow = lists(new ListPauses(), 200_000, 20_000_000)
    expect(Math.round(slow.at(-1)! - slow.at(-2)!)).toBe(400_000)
    const pauses = new ListPauses()
    pauses.ended({ endedAt: 0, tookMs: 40 })
    expect(pauses.leftMs([{}], 0)).toBe(400)
    pauses.ended({ endedAt: 0, tookMs: 400 })
    expect(pauses.leftMs([{}], 0)).toBe(1000)
  })

  it('are full ones for what nobody waits for', () => {
    const pauses = new ListPauses()
    expect(pauses.leftMs([], 0)).toBe(0)
    pauses.ended({ endedAt: 0, tookMs: 5_000 })
    expect([pauses.leftMs([], 0), pauses.leftMs([{}], 0)]).toEqual([50_000, 5_000])
  })

  it('get no shorter by lists that are broken off', () => {
    const pauses = new ListPauses()
    pauses.ended({ endedAt: 0, tookMs: 10_000 })
    pauses.brokenOff({ endedAt: 20_000, tookMs: 10 })
    expect(pauses.leftMs([{}], 20_000)).toBe(10_000)
  })

  it('outlive those who asked until they are over', () => {
    const kind = new PausesOfKind()
    kind.of('shop').ended({ endedAt: 0, tookMs: 10_000 })
    kind.of('bank')
    expect(kind.forget(299_999, () => false)).toBe(false)
    expect(kind.of('shop').leftMs([{}], 0)).toBe(10_000)
    expect(kind.forget(300_000, (namespace) => namespace === 'shop')).toBe(false)
    expect(kind.forget(300_000, () => false)).toBe(true)
  })
})
