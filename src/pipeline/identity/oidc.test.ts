import type { IncomingMessage } from 'node:http'
import { inspect } from 'node:util'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Logger, Metrics } from '#runtime'
import { SignInFailedError, UnsafeConfigurationError } from './errors.ts'
import { Browser } from './test/browser.ts'
import { TestClock } from './test/clock.ts'
import { clientSecret, OpenIdProvider, type ProviderOptions } from './test/provider.ts'
import { anIdentity, aRequest } from './test/requests.ts'
import type { Identity, IdentityConfig, IdentityOptions, OidcConfig, SignInAnswer } from './types.ts'

const callback = 'https://pulse.example/api/v1/auth/callback'
const ann = { email: 'ann@example.org', email_verified: true, preferred_username: 'ann', groups: ['dev', 'ops'] }

interface World extends AsyncDisposable {
  readonly provider: OpenIdProvider
  readonly identity: Identity
  readonly clock: TestClock
}

const worlds: World[] = []
beforeAll(() => {
  // The provider says at length that this is no way to run it in production.
  for (const method of ['info', 'warn'] as const) vi.spyOn(console, method).mockImplementation(() => undefined)
})
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]()
})

async function aWorld(
  provided: Partial<ProviderOptions> = {},
  oidc: Partial<OidcConfig> = {},
  more: { config?: Partial<IdentityConfig>; options?: Partial<IdentityOptions> } = {},
): Promise<World> {
  const provider = await OpenIdProvider.start({ people: { ann }, ...provided })
  const clock = new TestClock()
  const config = {
    oidc: { issuer: provider.issuer, clientId: 'fleet', clientSecret, publicUrl: 'https://pulse.example', ...oidc },
    ...more.config,
  }
  const identity = await anIdentity(config, { clock, ...more.options })
  const world = {
    provider,
    identity,
    clock,
    async [Symbol.asyncDispose]() {
      await identity[Symbol.asyncDispose]()
      await provider[Symbol.asyncDispose]()
    },
  }
  worlds.push(world)
  return world
}

const requestOf = (browser: Browser, path = '/'): IncomingMessage => {
  const cookies = browser.cookieHeader(path)
  return aRequest(cookies ? ['Cookie', cookies] : [])
}

/** To the provider and back: the address that the provider sends the browser to. */
async function toProviderAndBack({ identity }: World, browser: Browser, returnTo = '/', login = 'ann'): Promise<URL> {
  const begun = await identity.begin(returnTo, requestOf(browser))
  browser.take(begun.cookies)
  return new URL(await browser.signIn(begun.location ?? '', login, callback))
}

async function signIn(world: World, browser: Browser, returnTo = '/', login = 'ann'): Promise<SignInAnswer> {
  const url = await toProviderAndBack(world, browser, returnTo, login)
  const answer = await world.identity.callback(url, requestOf(browser, '/api/v1/auth/callback'))
  browser.take(answer.cookies)
  return answer
}

const whoIs = async ({ identity }: World, browser: Browser) => await identity.identify(requestOf(browser))

describe('signing in at an OpenID provider', () => {
  it('ends in a session with the name, the proved address and the groups the provider tells', async () => {
    const world = await aWorld()
    const browser = new Browser()
    expect(await whoIs(world, browser)).toBeNull()
    const answer = await signIn(world, browser, '/clusters/east?tab=nodes')
    expect(answer).toMatchObject({ status: 302, location: '/clusters/east?tab=nodes', principal: { username: 'ann' } })
    expect(await whoIs(world, browser)).toMatchObject({
      byCookie: true,
      principal: {
        username: 'ann',
        email: 'ann@example.org',
        emailVerified: true,
        groups: ['dev', 'ops'],
        method: 'oidc',
      },
    })
    expect(world.identity.methods()).toEqual([{ method: 'oidc', title: new URL(world.provider.issuer).host }])
  })

  it('asks with PKCE, a state and a nonce, and with scopes that the provider knows', async () => {
    const world = await aWorld()
    const { location, cookies } = await world.identity.begin('/', aRequest())
    const asked = new URL(location ?? '').searchParams
    expect(asked.get('code_challenge_method')).toBe('S256')
    expect(asked.get('code_challenge')).toHaveLength(43)
    expect(asked.get('state')?.length).toBeGreaterThan(20)
    expect(asked.get('nonce')?.length).toBeGreaterThan(20)
    expect(asked.get('scope')).toBe('openid profile email groups')
    expect(asked.get('redirect_uri')).toBe(callback)
    // Nothing of what must stay secret can be read from the cookie.
    expect(cookies).toHaveLength(1)
    expect(cookies[0]).not.toContain(asked.get('state') ?? '')
  })

  it('asks for no groups where the provider knows none, unless told to', async () => {
    const claims = { openid: ['sub'], email: ['email', 'email_verified'], profile: ['preferred_username'] }
    const scopesOf = async (oidc: Partial<OidcConfig>) => {
      const world = await aWorld({ configuration: { claims } }, oidc)
      return new URL((await world.identity.begin('/', aRequest())).location ?? '').searchParams.get('scope')
    }
    expect(await scopesOf({})).toBe('openid profile email')
    expect(await scopesOf({ scopes: ['profile', 'teams'] })).toBe('openid profile teams')
  })

  it('keeps its cookies from scripts, from other sites and from plain connections', async () => {
    const world = await aWorld()
    const browser = new Browser()
    const begun = await world.identity.begin('/', aRequest())
    browser.take(begun.cookies)
    const url = new URL(await browser.signIn(begun.location ?? '', 'ann', callback))
    const done = await world.identity.callback(url, requestOf(browser, '/api/v1/auth/callback'))
    const all = [...begun.cookies, ...done.cookies]
    for (const cookie of all)
      expect(cookie).toMatch(/^__(Host|Secure)-clusterpulse-.*; HttpOnly; SameSite=Lax; .*Secure$/)
    expect(all.filter((cookie) => cookie.startsWith('__Host-')).every((cookie) => cookie.includes('; Path=/;'))).toBe(
      true,
    )
    browser.take(done.cookies)
    // What was begun is done: its cookie is gone.
    expect(browser.names.filter((name) => name.includes('sign-in'))).toEqual([])
  })

  it('works without a secret of the client, by PKCE alone', async () => {
    const world = await aWorld({ client: { token_endpoint_auth_method: 'none', client_secret: undefined } }, {})
    const identity = await anIdentity(
      { oidc: { issuer: world.provider.issuer, clientId: 'fleet', publicUrl: 'https://pulse.example' } },
      { clock: world.clock },
    )
    const browser = new Browser()
    await signIn({ ...world, identity }, browser)
    expect((await identity.identify(requestOf(browser)))?.principal.username).toBe('ann')
  })

  it('works after the provider changed its keys, and at once', async () => {
    const world = await aWorld()
    await signIn(world, new Browser())
    await world.provider.rotate()
    const browser = new Browser()
    await signIn(world, browser)
    expect((await whoIs(world, browser))?.principal.username).toBe('ann')
  })

  it('sends nobody anywhere but to a page of ours', async () => {
    const world = await aWorld()
    for (const foreign of [
      'https://evil.example/',
      '//evil.example',
      '/\\evil.example',
      '/\t/evil.example',
      '/a/..//evil.example',
      '/api/v1/auth/login',
      'javascript:alert(1)',
      '',
    ])
      expect((await signIn(world, new Browser(), foreign)).location).toBe('/')
  })

  describe('fails', () => {
    const fails = (world: World, url: URL, browser: Browser) =>
      expect(world.identity.callback(url, requestOf(browser, '/api/v1/auth/callback'))).rejects.toThrow(
        SignInFailedError,
      )

    it('in another browser than the one it was begun in', async () => {
      const world = await aWorld()
      await fails(world, await toProviderAndBack(world, new Browser()), new Browser())
    })

    it('in another browser, even one that has begun a sign-in of its own', async () => {
      const world = await aWorld()
      const [mine, theirs] = [new Browser(), new Browser()]
      const url = await toProviderAndBack(world, mine)
      theirs.take((await world.identity.begin('/', aRequest())).cookies)
      await fails(world, url, theirs)
    })

    it('when the state is used a second time, the cookie kept or not', async () => {
      const world = await aWorld()
      const browser = new Browser()
      const url = await toProviderAndBack(world, browser)
      const request = requestOf(browser, '/api/v1/auth/callback')
      await world.identity.callback(url, request)
      const asked = world.provider.seen.filter((path) => path === '/token').length
      await expect(world.identity.callback(url, request)).rejects.toThrow(/done already/)
      // The code did not even reach the provider again.
      expect(world.provider.seen.filter((path) => path === '/token')).toHaveLength(asked)
    })

    it('when a code is used again under another state', async () => {
      const world = await aWorld()
      const browser = new Browser()
      const first = await toProviderAndBack(world, browser)
      await world.identity.callback(first, requestOf(browser, '/api/v1/auth/callback'))
      const second = await toProviderAndBack(world, browser)
      second.searchParams.set('code', first.searchParams.get('code') ?? '')
      await fails(world, second, browser)
    })

    it('when the code of another person is put in its place', async () => {
      const world = await aWorld({ people: { ann, eve: { preferred_username: 'eve' } } })
      const [anns, eves] = [new Browser(), new Browser()]
      const own = await toProviderAndBack(world, anns)
      const evil = await toProviderAndBack(world, eves, '/', 'eve')
      own.searchParams.set('code', evil.searchParams.get('code') ?? '')
      await fails(world, own, anns)
    })

    it('when it took longer than ten minutes', async () => {
      const world = await aWorld()
      const browser = new Browser()
      const url = await toProviderAndBack(world, browser)
      world.clock.pass(10 * 60_000)
      await fails(world, url, browser)
    })

    it.each([
      ['without a state', (url: URL) => url.searchParams.delete('state')],
      ['with two states', (url: URL) => url.searchParams.append('state', url.searchParams.get('state') ?? '')],
      ['with two codes', (url: URL) => url.searchParams.append('code', 'another')],
      ['as from another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
      ['with a code that nobody gave', (url: URL) => url.searchParams.set('code', 'made-up')],
    ])('%s', async (_, change) => {
      const world = await aWorld()
      const browser = new Browser()
      const url = await toProviderAndBack(world, browser)
      change(url)
      await fails(world, url, browser)
      expect(await whoIs(world, browser)).toBeNull()
    })

    it('when the provider refuses, and clears what was begun', async () => {
      const world = await aWorld()
      const browser = new Browser()
      const begun = await world.identity.begin('/', aRequest())
      browser.take(begun.cookies)
      const state = new URL(begun.location ?? '').searchParams.get('state') ?? ''
      const url = new URL(
        `${callback}?${new URLSearchParams({ error: 'access_denied', state, iss: world.provider.issuer })}`,
      )
      const error = await world.identity
        .callback(url, requestOf(browser, '/api/v1/auth/callback'))
        .catch((e: unknown) => e)
      expect(error).toMatchObject({ code: 'sign_in_failed', message: expect.stringContaining('refused') })
      browser.take((error as SignInFailedError).cookies)
      expect(browser.names).toEqual([])
    })

    it('when the provider is away', async () => {
      const world = await aWorld()
      const browser = new Browser()
      const url = await toProviderAndBack(world, browser)
      world.provider.trouble = (_, response) => response.writeHead(500).end()
      await fails(world, url, browser)
    })

    it.each([
      ['a person without a plain name', { preferred_username: 'ad\u200bmin' }],
      ['a person under a name of Kubernetes', { preferred_username: 'system:serviceaccount:kube-system:admin' }],
      ['groups that are no names', { preferred_username: 'ann', groups: ['dev\n'] }],
      ['more groups than a session can hold', { preferred_username: 'ann', groups: manyGroups(1000) }],
    ])('for %s', async (_, person) => {
      const world = await aWorld({ people: { ann: person } })
      const browser = new Browser()
      await fails(world, await toProviderAndBack(world, browser), browser)
    })
  })

  it('does not begin while the provider is away, and says so', async () => {
    const world = await aWorld()
    world.provider.trouble = (_, response) => response.writeHead(500).end()
    await expect(world.identity.begin('/', aRequest())).rejects.toMatchObject({ code: 'identity_unavailable' })
    world.provider.trouble = undefined
    world.clock.pass(2000)
    expect((await world.identity.begin('/', aRequest())).status).toBe(302)
  })

  it('holds hundreds of groups in one session', async () => {
    const groups = manyGroups(250)
    const world = await aWorld({ people: { ann: { ...ann, groups } } })
    const browser = new Browser()
    await signIn(world, browser)
    expect((await whoIs(world, browser))?.principal.groups).toEqual(groups)
  })

  it('counts the address only where the provider vouches for it', async () => {
    const world = await aWorld({ people: { ann: { ...ann, email_verified: false } } })
    const browser = new Browser()
    await signIn(world, browser)
    expect((await whoIs(world, browser))?.principal.emailVerified).toBe(false)
  })

  it('does not pile up what other pages begin in a browser', async () => {
    const world = await aWorld()
    const browser = new Browser()
    for (let time = 0; time < 20; time++) browser.take((await world.identity.begin('/', requestOf(browser))).cookies)
    expect(browser.names.length).toBeLessThanOrEqual(5)
    await signIn(world, browser)
    expect(await whoIs(world, browser)).not.toBeNull()
  })

  it('tells the log and the metrics how it went, and neither of them a secret', async () => {
    const lines: string[] = []
    const write = (facts: object, sentence: string) => void lines.push(`${sentence} ${inspect(facts, { depth: 10 })}`)
    const logger: Logger = { trace: write, debug: write, info: write, warn: write, error: write, child: () => logger }
    const metrics = new Metrics({}, { processMetrics: false })
    const world = await aWorld({}, {}, { options: { logger, metrics } })
    const browser = new Browser()
    const url = await toProviderAndBack(world, browser)
    const request = requestOf(browser, '/api/v1/auth/callback')
    browser.take((await world.identity.callback(url, request)).cookies)
    const second = await toProviderAndBack(world, browser)
    second.searchParams.set('code', 'made-up-code')
    await world.identity.callback(second, requestOf(browser, '/api/v1/auth/callback')).catch(() => null)
    await whoIs(world, browser)

    expect(lines.join('\n')).toContain('somebody signed in')
    expect(lines.join('\n')).toContain('invalid_grant')
    const cookies = browser.cookieHeader('/api/v1/auth/logout').split('; ')
    const secrets = [
      clientSecret,
      'made-up-code',
      ...[url, second].flatMap(({ searchParams }) => searchParams.getAll('state')),
      ...url.searchParams.getAll('code'),
      ...cookies.map((pair) => pair.slice(pair.indexOf('=') + 1).slice(0, 40)),
    ]
    expect(secrets.length).toBeGreaterThan(6)
    for (const secret of secrets) expect(lines.join('\n')).not.toContain(secret)
    const counted = await metrics.registry.metrics()
    expect(counted).toContain('clusterpulse_sign_ins_total{method="oidc",result="ok"} 1')
    expect(counted).toContain('clusterpulse_sign_ins_total{method="oidc",result="refused"} 1')
    expect(counted).toContain('clusterpulse_identifications_total{method="oidc",result="ok"} 1')
  })

  it('is off where it is not configured', async () => {
    await using identity = await anIdentity({})
    await expect(identity.begin('/', aRequest())).rejects.toMatchObject({ code: 'sign_in_off' })
    await expect(identity.callback(new URL(callback), aRequest())).rejects.toMatchObject({ code: 'sign_in_off' })
  })

  it('is never configured with an issuer on a plain connection', async () => {
    const oidc = { issuer: 'http://id.example', clientId: 'fleet', publicUrl: 'https://pulse.example' }
    await expect(anIdentity({ oidc })).rejects.toThrow(UnsafeConfigurationError)
  })
})

describe('signing out', () => {
  it('ends the session, wherever its cookie was copied to, and at the provider', async () => {
    const world = await aWorld()
    const browser = new Browser()
    await signIn(world, browser)
    const copied = requestOf(browser)
    const ended: string[] = []
    world.identity.onEnded((id) => ended.push(id))
    const session = (await whoIs(world, browser))?.session
    const answer = await world.identity.signOut(requestOf(browser, '/api/v1/auth/logout'))
    browser.take(answer.cookies)
    expect(browser.names.filter((name) => name.includes('clusterpulse'))).toEqual([])
    expect(await world.identity.identify(copied)).toBeNull()
    expect(ended).toContain(session?.id)

    const away = new URL(answer.redirect ?? '')
    expect(away.origin).toBe(world.provider.issuer)
    expect(away.searchParams.get('post_logout_redirect_uri')).toBe('https://pulse.example/')
    expect(away.searchParams.get('id_token_hint')).toMatch(/^ey/)
    // With the hint the provider knows whose session to end, and takes the address to come back to.
    expect((await browser.send(away.href)).status).toBe(200)
  })

  it('sends nobody to a provider that has no place for it', async () => {
    const world = await aWorld({
      configuration: { features: { rpInitiatedLogout: { enabled: false }, devInteractions: { enabled: true } } },
    })
    const browser = new Browser()
    await signIn(world, browser)
    const answer = await world.identity.signOut(requestOf(browser))
    expect(answer.redirect).toBeUndefined()
  })

  it('works also while the provider is away', async () => {
    const world = await aWorld()
    const browser = new Browser()
    await signIn(world, browser)
    const copied = requestOf(browser)
    world.provider.trouble = (_, response) => response.writeHead(500).end()
    world.clock.pass(50 * 60_000)
    await world.identity.signOut(requestOf(browser))
    expect(await world.identity.identify(copied)).toBeNull()
  })
})

function manyGroups(count: number): readonly string[] {
  // Names that do not compress to nothing.
  return Array.from(
    { length: count },
    (_, n) => `team-${((n + 1) * 2654435761).toString(36)}-${(n * 40503).toString(16)}-${(n * n * 7919).toString(36)}`,
  )
}
