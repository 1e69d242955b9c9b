import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import {
  IdentityUnavailableError,
  SignInFailedError,
  SignInThrottledError,
  UnsafeConfigurationError,
} from './errors.ts'
import { localRevocations, revocationsOver } from './revocations.ts'
import { sealer } from './sealed.ts'
import { Browser } from './test/browser.ts'
import { TestClock } from './test/clock.ts'
import { anIdentity, aRequest } from './test/requests.ts'
import type { Identity, IdentityConfig, RevocationStore, SharedMarks } from './types.ts'

const admin = { username: 'admin', secret: 'correct horse battery' }
const secret = 'thirty-two bytes or more of secret text'
const minute = 60_000

const requestOf = (browser: Browser): IncomingMessage => {
  const cookies = browser.cookieHeader('/')
  return aRequest(cookies ? ['Cookie', cookies] : [])
}

async function aWorld(config: Partial<IdentityConfig> = {}, revocations?: RevocationStore) {
  const clock = new TestClock()
  const identity = await anIdentity(
    { password: admin, session: { secret }, publicUrl: 'https://pulse.example', ...config },
    { clock, ...(revocations && { revocations }) },
  )
  const browser = new Browser()
  const signIn = async (from?: string) => {
    browser.take((await identity.password(admin.username, admin.secret, aRequest([], from))).cookies)
  }
  const who = async () => (await identity.identify(requestOf(browser)))?.principal.username ?? null
  return { clock, identity, browser, signIn, who }
}

describe('a session', () => {
  it('begins with a password and says who asks', async () => {
    const { identity, signIn, who, browser } = await aWorld()
    expect(await who()).toBeNull()
    await signIn()
    expect(await identity.identify(requestOf(browser))).toMatchObject({
      principal: { username: 'admin', method: 'password', groups: [] },
      byCookie: true,
    })
  })

  it('ends after an hour without a request', async () => {
    const { signIn, who, clock } = await aWorld()
    await signIn()
    clock.pass(60 * minute - 1)
    expect(await who()).toBe('admin')
    clock.pass(1)
    expect(await who()).toBeNull()
  })

  it('goes on while it is used, until its whole life is over', async () => {
    const { identity, signIn, browser, clock } = await aWorld({ session: { secret, lifetimeMs: 120 * minute } })
    await signIn()
    const begun = clock.now()
    let last: number | undefined
    for (;;) {
      clock.pass(30 * minute)
      const found = await identity.identify(requestOf(browser))
      if (!found) break
      expect(found.renewal).toBeDefined()
      browser.take(found.renewal ?? [])
      last = found.session?.expiresAt
    }
    expect(clock.now() - begun).toBe(120 * minute)
    expect(last).toBe(begun + 120 * minute)
  })

  it('is written anew once a minute at most', async () => {
    const { identity, signIn, browser, clock } = await aWorld()
    await signIn()
    expect(await identity.identify(requestOf(browser))).not.toHaveProperty('renewal')
    clock.pass(minute)
    expect((await identity.identify(requestOf(browser)))?.renewal).toHaveLength(1)
  })

  it('is not made longer by a clock that jumps back, nor ended by the clock of another replica', async () => {
    const { signIn, who, clock } = await aWorld()
    await signIn()
    clock.pass(-minute)
    expect(await who()).toBe('admin')
    clock.pass(-1)
    expect(await who()).toBeNull()
  })

  it('ends everywhere at sign-out, on every replica and for every copy of its cookie', async () => {
    const revocations = localRevocations(new TestClock())
    const one = await aWorld({}, revocations)
    const two = await aWorld({}, revocations)
    await one.signIn()
    const copy = requestOf(one.browser)
    expect((await two.identity.identify(copy))?.principal.username).toBe('admin')
    const ended: string[] = []
    two.identity.onEnded((id) => ended.push(id))
    const { cookies } = await one.identity.signOut(copy)
    expect(await two.identity.identify(copy)).toBeNull()
    expect(ended).toHaveLength(1)
    one.browser.take(cookies)
    expect(one.browser.names).toEqual([])
  })

  it('ends when the password or the name of the administrator changes', async () => {
    const { signIn, browser } = await aWorld()
    await signIn()
    for (const password of [
      { ...admin, secret: 'another long password' },
      { ...admin, username: 'root' },
    ]) {
      const changed = await aWorld({ password })
      expect(await changed.identity.identify(requestOf(browser))).toBeNull()
    }
  })

  it('of another secret, or of a hub that has none of its own, does not count', async () => {
    const { signIn, browser } = await aWorld()
    await signIn()
    const other = await aWorld({ session: { secret: 'x'.repeat(32) } })
    expect(await other.identity.identify(requestOf(browser))).toBeNull()
    const random = await aWorld({ session: {} })
    expect(await random.identity.identify(requestOf(browser))).toBeNull()
  })

  it('does not survive a single changed character of its cookie', async () => {
    const { identity, signIn, browser } = await aWorld()
    await signIn()
    const [name = '', value = ''] = browser.cookieHeader('/').split(/=(.*)/s)
    expect(await identity.identify(aRequest(['Cookie', `${name}=${value}`]))).not.toBeNull()
    for (let at = 0; at < value.length; at++) {
      const changed = value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1)
      expect(await identity.identify(aRequest(['Cookie', `${name}=${changed}`]))).toBeNull()
    }
    for (const broken of ['', '1.', '3.AAAA', '9.AAAA', `${value}A`, `${value}=`, value.slice(0, -1), '1.\u0000'])
      expect(await identity.identify(aRequest(['Cookie', `${name}=${broken}`]))).toBeNull()
  })

  it('does not count where its cookie came twice, or under the name for plain connections', async () => {
    const { identity, signIn, browser } = await aWorld()
    await signIn()
    const cookie = browser.cookieHeader('/')
    expect(await identity.identify(aRequest(['Cookie', `${cookie}; ${cookie}`]))).toBeNull()
    expect(await identity.identify(aRequest(['Cookie', cookie, 'Cookie', cookie]))).toBeNull()
    expect(await identity.identify(aRequest(['Cookie', cookie.replace('__Host-', '')]))).toBeNull()
    expect(await identity.identify(aRequest(['Cookie', `other=1; ${cookie}; more=2`]))).not.toBeNull()
  })

  it('has no plain name on https, and the plain name alone on http', async () => {
    const { browser, signIn } = await aWorld()
    await signIn()
    expect(browser.names).toEqual(['__Host-clusterpulse-session'])
    const plain = await aWorld({ publicUrl: 'http://127.0.0.1:8080' })
    const { cookies } = await plain.identity.password(admin.username, admin.secret, aRequest())
    expect(cookies[0]).toMatch(/^clusterpulse-session=.*; HttpOnly; SameSite=Lax/)
    expect(cookies[0]).not.toContain('Secure')
  })

  it('cannot be checked while the store of sign-outs is away: nobody is let in', async () => {
    const away: RevocationStore = {
      revoke: () => Promise.reject(new Error('away')),
      isRevoked: () => Promise.reject(new Error('away')),
      onRevoked: () => () => undefined,
    }
    const { identity, signIn, browser } = await aWorld({}, away)
    await signIn()
    await expect(identity.identify(requestOf(browser))).rejects.toThrow(IdentityUnavailableError)
  })

  it('takes a secret of 32 bytes at least', async () => {
    await expect(anIdentity({ session: { secret: 'short' } })).rejects.toThrow(UnsafeConfigurationError)
  })
})

describe('sealed text', () => {
  it('opens for its own purpose alone', () => {
    const seal = sealer(secret)
    expect(seal.open('session', seal.seal('session', { a: 1 }))).toEqual({ a: 1 })
    expect(seal.open('session', seal.seal('view-as', { a: 1 }))).toBeUndefined()
  })
  it('is different every time, and shows nothing of what it holds', () => {
    const seal = sealer(secret)
    const texts = [seal.seal('session', { user: 'ann' }), seal.seal('session', { user: 'ann' })]
    expect(texts[0]).not.toBe(texts[1])
    for (const text of texts) expect(Buffer.from(text, 'base64url').toString('latin1')).not.toContain('ann')
  })
})

describe('a look through the eyes of another', () => {
  const bob = { username: 'bob', email: 'bob@example.org', groups: ['dev'] }
  const looking = async () => {
    const world = await aWorld()
    await world.signIn()
    const found = await world.identity.identify(requestOf(world.browser))
    const answer = world.identity.viewAs(found!.principal, bob)
    world.browser.take(answer.cookies)
    return { ...world, cookies: answer.cookies, real: found!.principal }
  }

  it('shows what that person is, and who looks', async () => {
    const { identity, browser } = await looking()
    const found = await identity.identify(requestOf(browser))
    expect(found?.principal).toEqual({
      username: 'bob',
      email: 'bob@example.org',
      emailVerified: true,
      groups: ['dev'],
      isServiceAccount: false,
      method: 'oidc',
      actor: 'admin',
    })
    expect(found?.actor).toMatchObject({ username: 'admin', method: 'password' })
  })

  it('never has the sign-in method of the administrator, which opens everything', async () => {
    const local = await anIdentity({ localAdministrator: {} })
    const browser = new Browser()
    const found = await local.identify(aRequest())
    browser.take(local.viewAs(found!.principal, { ...bob, isServiceAccount: true }).cookies)
    const seen = await local.identify(requestOf(browser))
    expect(seen?.principal).toMatchObject({ username: 'bob', actor: 'local-administrator' })
    expect(['local-administrator', 'password']).not.toContain(seen?.principal.method)
  })

  it('ends after 15 minutes, and streams that stand on it with it', async () => {
    const { identity, browser, clock, who } = await looking()
    const found = await identity.identify(requestOf(browser))
    expect(found?.session?.expiresAt).toBe(clock.now() + 15 * minute)
    clock.pass(15 * minute - 1)
    expect(await who()).toBe('bob')
    clock.pass(1)
    expect(await who()).toBe('admin')
  })

  it('ends when asked to, and at sign-out', async () => {
    const { identity, browser, who } = await looking()
    browser.take(identity.endViewAs().cookies)
    expect(await who()).toBe('admin')
    const again = await looking()
    again.browser.take((await again.identity.signOut(requestOf(again.browser))).cookies)
    expect(again.browser.names).toEqual([])
  })

  it('is nothing in the hands of somebody else', async () => {
    const { cookies } = await looking()
    const other = await aWorld({ proxy: { trustedPeers: ['127.0.0.1'] } })
    const browser = new Browser()
    browser.take(cookies)
    const asEve = aRequest(['X-Forwarded-User', 'eve', 'Cookie', browser.cookieHeader('/')])
    const found = await other.identity.identify(asEve)
    expect(found?.principal).toMatchObject({ username: 'eve' })
    expect(found?.principal).not.toHaveProperty('actor')
    // And alone it is nobody.
    expect(await other.identity.identify(aRequest(['Cookie', browser.cookieHeader('/')]))).toBeNull()
  })

  it('is never looked at where a token decides', async () => {
    const { browser } = await looking()
    const tokens = await aWorld({ bearer: [{ issuer: 'https://issuer.example', audience: 'fleet' }] })
    const request = aRequest(['Cookie', browser.cookieHeader('/'), 'Authorization', 'Bearer a.b.c'])
    await expect(tokens.identity.identify(request)).rejects.toMatchObject({ code: 'token_refused' })
  })
})

describe('the password', () => {
  const attempt = (identity: Identity, name = 'admin', password = 'wrong', from = '10.0.0.1') =>
    identity.password(name, password, aRequest([], from))

  it('is refused in the same words whether the name or the password is wrong', async () => {
    const { identity } = await aWorld()
    const wrong = await Promise.all([
      attempt(identity).catch((error: Error) => error.message),
      attempt(identity, 'nobody', admin.secret).catch((error: Error) => error.message),
    ])
    expect(wrong).toEqual(['name or password is wrong', 'name or password is wrong'])
  })

  it('may be wrong five times, then every further try waits twice as long, up to five minutes', async () => {
    const { identity, clock } = await aWorld()
    for (let time = 0; time < 5; time++) await expect(attempt(identity)).rejects.toThrow(SignInFailedError)
    const waits: number[] = []
    for (let time = 0; time < 12; time++) {
      const refused = await attempt(identity).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(SignInThrottledError)
      waits.push((refused as SignInThrottledError).retryAfterMs)
      clock.pass(waits.at(-1)!)
      await expect(attempt(identity)).rejects.toThrow(SignInFailedError)
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300].map((seconds) => seconds * 1000))
  })

  it('does not count while it must wait, even if it is right', async () => {
    const { identity } = await aWorld()
    for (let time = 0; time < 5; time++) await attempt(identity).catch(() => null)
    await expect(attempt(identity, 'admin', admin.secret, '10.0.0.2')).rejects.toThrow(SignInThrottledError)
  })

  it('is throttled by address as well, whatever names are tried, and by network for IPv6', async () => {
    const { identity } = await aWorld()
    for (let time = 0; time < 5; time++) await attempt(identity, `name-${time}`).catch(() => null)
    await expect(attempt(identity, 'fresh')).rejects.toThrow(SignInThrottledError)
    await expect(attempt(identity, 'fresh', 'wrong', '10.0.0.2')).rejects.toThrow(SignInFailedError)
    for (let time = 0; time < 5; time++)
      await attempt(identity, `v6-${time}`, 'wrong', `2001:db8::${time}`).catch(() => null)
    await expect(attempt(identity, 'fresh', 'wrong', '2001:db8:0:0:ffff::1')).rejects.toThrow(SignInThrottledError)
    await expect(attempt(identity, 'fresh', 'wrong', '2001:db8:0:1::1')).rejects.toThrow(SignInFailedError)
    // As a socket that listens on both says of IPv4: each of them by itself.
    for (let time = 0; time < 5; time++)
      await attempt(identity, `both-${time}`, 'wrong', '::ffff:192.0.2.1').catch(() => null)
    await expect(attempt(identity, 'fresh', 'wrong', '::ffff:192.0.2.1')).rejects.toThrow(SignInThrottledError)
    await expect(attempt(identity, 'fresh', 'wrong', '::ffff:192.0.2.2')).rejects.toThrow(SignInFailedError)
  })

  it('cannot be guessed by many tries at once', async () => {
    const { identity } = await aWorld()
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => attempt(identity, 'admin', `guess ${n}`)),
    )
    const tried = results.filter((one) => one.status === 'rejected' && one.reason instanceof SignInFailedError)
    expect(tried.length).toBeLessThanOrEqual(5)
  })

  it('is free again after it was right', async () => {
    const { identity } = await aWorld()
    for (let time = 0; time < 4; time++) await attempt(identity).catch(() => null)
    await attempt(identity, 'admin', admin.secret)
    for (let time = 0; time < 5; time++) await expect(attempt(identity)).rejects.toThrow(SignInFailedError)
  })

  it('is throttled by the address that our proxy saw, not by what the client says of itself', async () => {
    const { identity } = await aWorld({ proxy: { trustedPeers: ['10.9.9.9'] } })
    const through = (told: string, n: number) =>
      identity.password(`name-${n}`, 'wrong', aRequest(['X-Forwarded-For', told], '10.9.9.9'))
    for (let n = 0; n < 5; n++) await through(`1.1.1.${n}, 192.0.2.1`, n).catch(() => null)
    await expect(through('1.1.1.9, 192.0.2.1', 10)).rejects.toThrow(SignInThrottledError)
    await expect(through('1.1.1.9, 192.0.2.2', 11)).rejects.toThrow(SignInFailedError)
    // From anybody else the header says nothing.
    const direct = (n: number) =>
      identity.password(`direct-${n}`, 'wrong', aRequest(['X-Forwarded-For', `3.3.3.${n}`], '10.1.1.1'))
    for (let n = 0; n < 5; n++) await direct(n).catch(() => null)
    await expect(direct(6)).rejects.toThrow(SignInThrottledError)
  })

  it('needs twelve characters, and is off where there is none', async () => {
    await expect(anIdentity({ password: { username: 'admin', secret: 'short' } })).rejects.toThrow(
      UnsafeConfigurationError,
    )
    const off = await anIdentity({})
    await expect(attempt(off)).rejects.toMatchObject({ code: 'sign_in_off' })
    expect(off.methods()).toEqual([])
  })
})

describe('sign-outs over a shared store', () => {
  it('count and are told on every replica, as long as they must', async () => {
    const clock = new TestClock()
    const marks = sharedMarks()
    const [one, two] = [revocationsOver(marks, clock), revocationsOver(marks, clock)]
    const heard: string[] = []
    const stop = two.onRevoked((id) => heard.push(id))
    await one.revoke('session:a', clock.now() + 5000)
    await one.revoke('session:over', clock.now() - 1)
    expect(await two.isRevoked('session:a')).toBe(true)
    expect(await two.isRevoked('session:b')).toBe(false)
    expect(heard).toEqual(['session:a'])
    expect([...marks.kept]).toEqual([['revoked:session:a', 5000]])
    stop()
    await one.revoke('session:c', clock.now() + 1)
    expect(heard).toEqual(['session:a'])
  })

  it('in one process are forgotten when they no longer matter', async () => {
    const clock = new TestClock()
    const store = localRevocations(clock)
    await store.revoke('a', clock.now() + 10)
    expect(await store.isRevoked('a')).toBe(true)
    clock.pass(10)
    expect(await store.isRevoked('a')).toBe(false)
  })
})

function sharedMarks(): SharedMarks & { readonly kept: Map<string, number> } {
  const kept = new Map<string, number>()
  const listeners = new Set<(text: string) => void>()
  return {
    kept,
    set: async (key, ttlMs) => void kept.set(key, ttlMs),
    has: async (key) => kept.has(key),
    publish: async (text) => {
      for (const listener of listeners) listener(text)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
