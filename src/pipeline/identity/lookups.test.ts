import { describe, expect, it } from 'vitest'
import { IdentityUnavailableError } from './errors.ts'
import { Lookups } from './lookups.ts'
import { TestClock } from './test/clock.ts'

const never = () => new Promise<string>(() => undefined)

function aWorld(options: { readonly staleMs?: number; readonly max?: number; readonly timeoutMs?: number } = {}) {
  const clock = new TestClock()
  return { clock, lookups: new Lookups<string>({ clock, ttlMs: () => 100, ...options }) }
}

describe('what is looked up elsewhere', () => {
  it('is not kept where it was forgotten while it was being loaded', async () => {
    const { lookups } = aWorld()
    let finish: (value: string) => void = () => undefined
    const before = lookups.get('a', () => new Promise<string>((resolve) => (finish = resolve)))
    lookups.forget('a')
    const after = lookups.get('a', async () => 'new')
    finish('old')
    expect((await before).value).toBe('old')
    expect((await after).value).toBe('new')
    expect((await lookups.get('a', never)).value).toBe('new')
  })

  it('stands in no longer for what was forgotten meanwhile', async () => {
    const { lookups, clock } = aWorld({ staleMs: 1000 })
    await lookups.get('a', async () => 'old')
    clock.pass(100)
    let fail: (error: Error) => void = () => undefined
    const asked = lookups.get('a', () => new Promise<string>((_, reject) => (fail = reject)))
    lookups.forget('a')
    fail(new Error('away'))
    await expect(asked).rejects.toThrow(IdentityUnavailableError)
  })

  it('is stale when the clock is set back', async () => {
    const { lookups, clock } = aWorld()
    await lookups.get('a', async () => 'old')
    clock.pass(-1)
    expect((await lookups.get('a', async () => 'new')).value).toBe('new')
  })

  it('is bounded: the least recently used goes first, and too many at once are refused', async () => {
    const { lookups } = aWorld({ max: 2 })
    for (const key of ['a', 'b', 'c']) await lookups.get(key, async () => key)
    expect((await lookups.get('a', async () => 'anew')).value).toBe('anew')
    expect((await lookups.get('c', never)).value).toBe('c')
    const waiting = Array.from({ length: 256 }, (_, n) => lookups.get(`waiting ${n}`, never))
    expect(waiting).toHaveLength(256)
    await expect(lookups.get('one more', never)).rejects.toThrow(IdentityUnavailableError)
  })

  it('is waited for only so long', async () => {
    const { lookups } = aWorld({ timeoutMs: 20 })
    const obedient = (signal: AbortSignal) =>
      new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await expect(lookups.get('a', obedient)).rejects.toThrow(IdentityUnavailableError)
  })

  it('is given up when the lookups are closed', async () => {
    const { lookups } = aWorld()
    const asked = lookups.get(
      'a',
      (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    lookups.close()
    await expect(asked).rejects.toThrow(IdentityUnavailableError)
  })
})
