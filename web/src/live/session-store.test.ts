import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { SessionView } from '../contract.ts'
import { SessionStore } from './session-store.ts'

const minute = 60_000
const user = { username: 'alice', email: '', groups: [], method: 'oidc', administrator: false }
const signedIn = (sessionEndsAt: number | null, actor: string | null = null): SessionView => ({
  authenticated: true,
  user,
  actor,
  sessionEndsAt,
  signIn: [],
  provisional: null,
  version: '1',
})
const signedOut: SessionView = { ...signedIn(null), authenticated: false, user: null }

describe('SessionStore', () => {
  let answer: SessionView
  let asked: number
  let renewed: number
  let store: SessionStore
  beforeEach(() => {
    vi.useFakeTimers()
    asked = 0
    renewed = 0
    store = new SessionStore({
      ask: async () => {
        asked++
        return answer
      },
      onRenewed: () => renewed++,
    })
  })
  afterEach(() => {
    store.stop()
    vi.useRealTimers()
  })
  const ask = async () => {
    store.ask()
    await vi.advanceTimersByTimeAsync(0)
  }

  it('asks again when the session ends, and says that somebody was there', async () => {
    answer = signedIn(Date.now() + 10 * minute)
    await ask()
    expect(store.current()).toBe(answer)
    answer = signedOut
    await vi.advanceTimersByTimeAsync(10 * minute)
    expect(store.current()?.authenticated).toBe(true)
    await vi.advanceTimersByTimeAsync(2000)
    expect(store.current()?.authenticated).toBe(false)
    expect(store.hadUser()).toBe(true)
  })

  it('renews a session that is used, once half of it has gone', async () => {
    answer = signedIn(Date.now() + 60 * minute)
    await ask()
    store.use()
    await vi.advanceTimersByTimeAsync(29 * minute)
    expect(asked).toBe(1)
    answer = signedIn(Date.now() + 60 * minute)
    await vi.advanceTimersByTimeAsync(2 * minute)
    expect([asked, renewed]).toEqual([2, 1])
  })

  it('renews at the first use after half of it, however long that takes', async () => {
    answer = signedIn(Date.now() + 60 * minute)
    await ask()
    await vi.advanceTimersByTimeAsync(50 * minute)
    expect(asked).toBe(1)
    store.use()
    await vi.advanceTimersByTimeAsync(0)
    expect(asked).toBe(2)
  })

  it('lets a session end that nobody uses', async () => {
    answer = signedIn(Date.now() + 60 * minute)
    await ask()
    await vi.advanceTimersByTimeAsync(59 * minute)
    expect([asked, renewed]).toEqual([1, 0])
  })

  it('leaves with another tab of the browser, and believes no later answer', async () => {
    answer = signedIn(null)
    store.leave()
    await ask()
    expect(store.current()).toBe(answer)
    store.leave()
    expect(store.current()).toMatchObject({ authenticated: false, user: null })
    await ask()
    expect([store.current()?.authenticated, store.hadUser(), asked]).toEqual([false, true, 1])
  })

  it('does not hammer a hub whose clock runs ahead', async () => {
    answer = signedIn(Date.now() - minute)
    await ask()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(asked).toBeLessThanOrEqual(11)
  })

  it('asks until it is answered, more and more rarely, and no longer', async () => {
    let answers = false
    store = new SessionStore({
      ask: async () => {
        asked++
        if (!answers) throw new TypeError('fetch failed')
        return signedOut
      },
      random: () => 1,
    })
    await ask()
    expect([asked, store.current()]).toEqual([1, null])
    await vi.advanceTimersByTimeAsync(3_000)
    expect(asked).toBe(3)
    await vi.advanceTimersByTimeAsync(57_000)
    expect(asked).toBeLessThanOrEqual(8)
    answers = true
    await vi.advanceTimersByTimeAsync(15_000)
    expect(store.current()).toBe(signedOut)
    const until = asked
    await vi.advanceTimersByTimeAsync(minute)
    expect(asked).toBe(until)
  })

  it('does not ask again once it has stopped', async () => {
    store = new SessionStore({
      ask: async () => {
        asked++
        throw new TypeError('fetch failed')
      },
    })
    await ask()
    store.stop()
    await vi.advanceTimersByTimeAsync(minute)
    expect(asked).toBe(1)
  })

  it('takes only the newest answer', async () => {
    let tellLate: (session: SessionView) => void = () => undefined
    const late = new Promise<SessionView>((resolve) => {
      tellLate = resolve
    })
    let first = true
    store = new SessionStore({
      ask: () => {
        if (!first) return Promise.resolve(signedOut)
        first = false
        return late
      },
    })
    store.ask()
    await ask()
    tellLate(signedIn(null))
    await vi.advanceTimersByTimeAsync(0)
    expect(store.current()).toBe(signedOut)
  })
})
