import { describe, expect, it } from 'vitest'
import { UnsafeConfigurationError } from '#identity'
import { cors, hostCheck } from './gate.ts'
import { aWorld, localAdministrator, proxy } from './test/world.ts'

const loopback = { host: '127.0.0.1', port: 0, identity: localAdministrator } as const
const behindProxy = { host: '0.0.0.0', port: 0, identity: proxy } as const

describe('the gate', () => {
  it.each(['0.0.0.0', '::', '192.168.1.5', 'hub.example.org'])(
    'refuses to serve %s without a sign-in method',
    (host) => {
      expect(() => hostCheck({ ...loopback, host })).toThrow(UnsafeConfigurationError)
    },
  )

  it.each([
    ['localhost', true],
    ['localhost:8080', true],
    ['127.0.0.1:8080', true],
    ['127.0.0.2', true],
    ['[::1]:8080', true],
    ['my-hub.test:8080', true],
    ['evil.example:8080', false],
    ['127.0.0.1.evil.example', false],
    ['localhost.evil.example', false],
    [':8080', false],
  ])('on loopback, a browser that was led here as %s is answered: %s', async (host, answered) => {
    await using world = await aWorld({ allowedHosts: ['my-hub.test'] })
    const { status, body } = await world.get('/api/v2/clusters', { host })
    expect(status).toBe(answered ? 200 : 403)
    if (!answered) expect(body).toMatchObject({ code: 'host_refused' })
  })

  it('lets a foreign origin read only where it is listed, spaces and all', async () => {
    await using world = await aWorld({
      identity: proxy,
      corsOrigins: [' https://a.example ', 'https://*.b.example'],
    })
    const allowed = async (origin: string) =>
      (await world.get('/healthz', { origin })).headers['access-control-allow-origin']
    expect(await allowed('https://a.example')).toBe('https://a.example')
    expect(await allowed('https://x.b.example')).toBe('https://x.b.example')
    expect(await allowed('https://evil.example/.b.example')).toBeUndefined()
    expect(await allowed('https://a.example.evil')).toBeUndefined()
    expect(await allowed('null')).toBeUndefined()
  })

  it('answers a preflight without asking who it is', async () => {
    await using world = await aWorld({ identity: proxy, corsOrigins: ['https://a.example'] })
    const response = await world.server.app.inject({
      method: 'OPTIONS',
      url: '/api/v1/clusters',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' },
    })
    expect(response.statusCode).toBe(200)
    expect(response.headers).toMatchObject({
      'access-control-allow-origin': 'https://a.example',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-max-age': '300',
    })
    expect(response.headers['access-control-allow-headers']).not.toMatch(/forwarded/i)
  })

  it('gives no credentials to anyone, and not even that without a sign-in method', () => {
    expect(cors({ ...behindProxy, corsOrigins: ['*'] }).credentials).toBe(false)
    expect(() => cors({ ...loopback, corsOrigins: ['*'] })).toThrow(UnsafeConfigurationError)
    expect(() => cors({ ...behindProxy, corsOrigins: ['https://*.*.example'] })).toThrow(UnsafeConfigurationError)
  })

  it.each([
    [{ ...loopback, corsOrigins: ['*'] }, /^CORS_ORIGINS .*OIDC_ISSUER/],
    [{ ...loopback, corsOrigins: ['*', 'https://a.example'] }, /CORS_ORIGINS/],
    [{ ...behindProxy, corsOrigins: ['https://*.*.example'] }, /CORS_ORIGINS/],
    [{ ...loopback, host: '0.0.0.0' }, /API_HOST=0\.0\.0\.0.*TRUSTED_PROXIES/],
  ])('names the setting that refuses the start, and what to do: %#', (config, said) => {
    expect(() => [hostCheck(config), cors(config)]).toThrow(said)
  })

  it.each([[['https://a.example', '*']], [['*', 'https://a.example']], [['https://a.example', ' * ']], [['*', '*']]])(
    'refuses to start with a star beside other origins: %j',
    (corsOrigins) => {
      expect(() => cors({ ...behindProxy, corsOrigins })).toThrow(/"\*" beside other origins/)
    },
  )

  it('takes a logout from its own page and from a command line that says so, not from another site', async () => {
    await using world = await aWorld({
      identity: { proxy: { trustedPeers: ['127.0.0.1'], signOutUrl: '/oauth2/sign_out' } },
    })
    const logout = (headers: Record<string, string>) =>
      world.server.app.inject({
        method: 'POST',
        url: '/api/v1/auth/logout',
        headers: { host: 'hub.example', 'x-forwarded-user': 'ann', 'x-clusterpulse-request': '1', ...headers },
      })
    expect((await logout({})).json()).toEqual({ message: 'Logout successful', redirect: '/oauth2/sign_out' })
    expect((await logout({ origin: 'https://hub.example' })).statusCode).toBe(200)
    expect((await logout({ origin: 'https://hub.example', host: 'hub.example:443' })).statusCode).toBe(200)
    expect((await logout({ origin: 'https://evil.example' })).statusCode).toBe(403)
    expect((await logout({ origin: 'https://hub.example:8443' })).statusCode).toBe(403)
    expect((await logout({ origin: 'https://evil.example', host: 'hub.example/@evil.example' })).statusCode).toBe(403)
    expect((await logout({ origin: 'https://evil.example', host: 'x@evil.example' })).statusCode).toBe(403)
    expect((await logout({ 'sec-fetch-site': 'cross-site' })).statusCode).toBe(403)
    expect((await logout({ 'sec-fetch-site': 'same-site' })).json()).toMatchObject({ code: 'csrf_refused' })
    expect((await logout({ 'x-clusterpulse-request': '' })).json()).toMatchObject({ code: 'csrf_refused' })
  })

  const page = 'https://hub.example'
  it.each<[taken: boolean, what: string, headers: Record<string, string>, identity?: object]>([
    [false, 'that say nothing', {}],
    [true, 'that the browser calls its own', { 'sec-fetch-site': 'same-origin' }],
    [true, 'that the browser calls its own, with their origin', { 'sec-fetch-site': 'same-origin', origin: page }],
    [false, 'of a sibling', { 'sec-fetch-site': 'same-site' }],
    [false, 'of a sibling, whatever its origin', { 'sec-fetch-site': 'same-site', origin: page }],
    [false, 'of another site', { 'sec-fetch-site': 'cross-site' }],
    [false, 'of no page', { 'sec-fetch-site': 'none' }],
    [false, 'of two minds', { 'sec-fetch-site': 'same-origin, cross-site' }],
    [false, 'in other letters', { 'sec-fetch-site': 'Same-Origin' }],
    [false, 'that contradict themselves', { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }],
    [true, 'of our host', { origin: page }],
    [true, 'of our host, its port said', { origin: page, host: 'hub.example:443' }],
    [true, 'of our host and port', { origin: `${page}:8443`, host: 'hub.example:8443' }],
    [false, 'of another port', { origin: `${page}:8443` }],
    [true, 'in the clear, as it came', { origin: 'http://hub.example' }],
    [false, 'in the clear to a proxy that speaks TLS', { origin: 'http://hub.example', 'x-forwarded-proto': 'https' }],
    [false, 'of no origin', { origin: 'null' }],
    [false, 'of no origin, called its own', { origin: 'null', 'sec-fetch-site': 'same-origin' }],
    [false, 'of no web page', { origin: 'chrome-extension://hub.example' }],
    [false, 'of a longer name', { origin: 'https://hub.example.evil' }],
    [false, 'of a listed origin', { origin: 'https://listed.example' }],
    [true, 'of the host that our proxy tells', { origin: page, host: 'api:8080', 'x-forwarded-host': 'hub.example' }],
    [
      false,
      'of one of several hosts told',
      { origin: page, host: 'api', 'x-forwarded-host': 'hub.example, evil.example' },
    ],
    [true, 'of the address people use', { origin: page, host: 'api:8080' }, { publicUrl: page }],
    [
      false,
      'in the clear of an https address',
      { origin: 'http://hub.example', 'x-forwarded-proto': 'https' },
      { publicUrl: page },
    ],
  ])('taken without our header: %s, of posts %s', async (taken, _what, headers, identity) => {
    await using world = await aWorld({
      identity: { ...proxy, ...identity },
      corsOrigins: ['https://listed.example'],
    })
    const from = { host: 'hub.example', 'x-forwarded-user': 'ann', ...headers }
    const statusOf = async (url: string) =>
      (await world.server.app.inject({ method: 'POST', url, headers: from })).statusCode
    expect(await statusOf('/api/v1/auth/cache/clear')).toBe(taken ? 200 : 403)
    expect(await statusOf('/api/v1/auth/logout')).toBe(taken ? 200 : 403)
    expect(await statusOf('/api/v2/access/view-as/end'), 'what no original client posts').toBe(403)
  })

  it('believes the host it was asked by from its proxy alone', async () => {
    const secret = 'a long password of the administrator'
    await using world = await aWorld({ identity: { password: { username: 'root', secret } } })
    const headers = { origin: page, host: 'api:8080', 'x-forwarded-host': 'hub.example', 'x-clusterpulse-request': '1' }
    const payload = { username: 'root', password: secret }
    const answer = await world.server.app.inject({ method: 'POST', url: '/api/v1/auth/password', headers, payload })
    expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([403, 'cross_site_refused'])
  })

  it('puts the security headers on every sort of answer', async () => {
    await using world = await aWorld()
    for (const url of ['/healthz', '/api/v2/clusters', '/api/v2/clusters/none', '/nothing', '/api/nothing', '/%ff']) {
      const { headers } = await world.get(url)
      expect(headers, url).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' })
      expect(headers['content-security-policy'], url).toContain("frame-ancestors 'none'")
      expect(headers['content-security-policy'], url).not.toContain('unsafe')
      expect(headers['x-request-id'], url).toMatch(/^[\w-]{36}$/)
    }
  })

  it('takes over a request id that is one, and no other', async () => {
    await using world = await aWorld()
    expect((await world.get('/healthz', { 'x-request-id': 'abc-1.2' })).headers['x-request-id']).toBe('abc-1.2')
    expect((await world.get('/healthz', { 'x-request-id': 'a b{}' })).headers['x-request-id']).not.toBe('a b{}')
  })
})
