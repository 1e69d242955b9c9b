import { describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { turns } from './turns.ts'

/** A clock whose pauses end when the test says so, or with their signal. */
function aClock() {
  const pauses = new Set<() => void>()
  const clock = {
    ...systemClock,
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        pauses.add(resolve)
        signal?.addEventListener('abort', () => resolve())
      }),
  }
  const pass = () => {
    for (const end of pauses) end()
  }
  return { clock, pass }
}
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('turns', () => {
  it('lets as many work at once as there are places, and the next when one ends or fails', async () => {
    const { clock } = aClock()
    const turn = turns(2, clock)
    const ends: ((how: 'well' | 'badly') => void)[] = []
    const work = () =>
      turn(
        () =>
          new Promise<string>((resolve, reject) => ends.push((how) => (how === 'well' ? resolve('x') : reject(how)))),
      )
    const results = Promise.allSettled([work(), work(), work(), work()])
    await settled()
    expect(ends).toHaveLength(2)
    ends[0]?.('badly')
    await settled()
    expect(ends).toHaveLength(3)
    ends[1]?.('well')
    await settled()
    for (const end of ends.slice(2)) end('well')
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled', 'fulfilled'])
  })

  it('lends the places of who takes long, up to four times as many', async () => {
    const { clock, pass } = aClock()
    const turn = turns(2, clock)
    let working = 0
    const hang = () => turn(() => new Promise<void>(() => working++))
    for (let i = 0; i < 20; i++) void hang()
    const seen: number[] = []
    for (let i = 0; i < 6; i++) {
      await settled()
      seen.push(working)
      pass()
    }
    expect(seen).toEqual([2, 4, 6, 8, 8, 8])
  })
})
