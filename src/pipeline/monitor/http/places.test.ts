import { describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { Places } from './places.ts'

const never = new AbortController().signal
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('places for large answers', () => {
  it('are two for one caller, whose next eight wait in line; beyond them there is none', async () => {
    const places = new Places(systemClock)
    const came: number[] = []
    const take = (at: number) => places.take('a', never).then((taken) => taken && came.push(at))
    for (let at = 0; at < 10; at++) void take(at)
    await settled()
    expect(came).toEqual([0, 1])
    expect(await places.take('a', never)).toBe(false)
    expect(await places.take('b', never)).toBe(true)
    for (let given = 0; given < 8; given++) {
      places.giveBack('a')
      await settled()
      expect(came.at(-1)).toBe(given + 2)
    }
  })

  it('are sixty-four for all, and given to who has waited longest', async () => {
    const places = new Places(systemClock)
    for (let at = 0; at < 64; at++) expect(await places.take(`user ${at}`, never)).toBe(true)
    const came: string[] = []
    for (const user of ['x', 'y']) void places.take(user, never).then(() => came.push(user))
    await settled()
    expect(came).toEqual([])
    places.giveBack('user 7')
    await settled()
    expect(came).toEqual(['x'])
  })

  it('are not kept for who went away, nor for longer than 20 seconds', async () => {
    const soon = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 1000, signal) }
    const places = new Places(soon)
    for (let at = 0; at < 2; at++) await places.take('a', never)
    expect(await places.take('a', AbortSignal.abort())).toBe(false)
    expect(await places.take('a', never)).toBe(false)
    places.giveBack('a')
    expect(await places.take('a', never)).toBe(true)
  })
})
