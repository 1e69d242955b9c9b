import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { MemoryPolicies, openAccess, type Principal } from '#access'
import { routes } from '#http'
import {
  type Identified,
  type Identity,
  IdentityUnavailableError,
  openIdentity,
  SignInFailedError,
  TokenRefusedError,
} from '#identity'
import { Metrics, silentLogger } from '#runtime'
import { get, post } from './test/ask.ts'
import { allow, deny } from './test/policies.ts'
import { aNode, aWorld, complete, proxy, type World } from './test/world.ts'

const guarded = routes
  .filter(({ access, method }) => access !== 'public' && method === 'GET')
  .map(({ url }) => url.replace(':name', 'west').replace(':node', 'a').replace(':label', 'cluster'))
const about = (principal: Partial<Principal> & { readonly username: string }): Principal => ({
  email: '',
  groups: [],
  isServiceAccount: false,
  method: 'oidc',
  ...principal,
})

/** The real one, but for what the test says of who asks. */
async function anIdentity(identify: () => Promise<Identified | null>): Promise<Identity> {
  const metrics = new Metrics({}, { processMetrics: false })
  const clock = { now: () => 0, sleep: async () => undefined }
  return { ...(await openIdentity({ config: proxy, clock, logger: silentLogger, metrics })), identify }
}

const password = 'a long password of the administrator'
const withPassword = { password: { username: 'root', secret: password }, proxy: { trustedPeers: ['127.0.0.1'] } }
const signIn = (world: World) => post(world, '/api/v1/auth/password', { username: 'root', password })

async function fill(world: World): Promise<void> {
  for (const name of ['west', 'east']) {
    await world.connect(name)
    await world.batch(name, [complete('node', [aNode('a'), aNode('b')])])
  }
}

describe('where it cannot be found out who asks', () => {
  it('every guarded route is 503 with the time to wait, and so is the question who one is; probes answer', async () => {
    const identity = await anIdentity(async () => {
      throw new IdentityUnavailableError('the provider at idp.inside does not answer')
    })
    await using world = await aWorld({ identity: proxy }, { identity })
    for (const url of [...guarded, '/api/v1/session', '/api/v1/auth/status']) {
      const { status, body, headers } = await get(world, url)
      expect([status, body.code, headers['retry-after']], url).toEqual([503, 'identity_unavailable', '5'])
    }
    for (const url of ['/healthz', '/readyz', '/metrics', '/api/v1/openapi.json', '/'])
      expect((await get(world, url)).status, url).toBe(200)
  })

  it('a token that does not count is 401, and only the log knows why', async () => {
    const identity = await anIdentity(async () => {
      throw new TokenRefusedError('the signature was made with none')
    })
    await using world = await aWorld({ identity: proxy }, { identity })
    const { status, body, headers } = await get(world, '/api/v2/clusters')
    expect([status, body.code]).toEqual([401, 'token_refused'])
    expect(headers['www-authenticate']).toBe('Bearer realm="clusterpulse", error="invalid_token"')
    expect(JSON.stringify(body)).not.toContain('signature')
    expect((await get(world, '/api/v1/auth/status')).body).toMatchObject({ authenticated: false })
    expect((await get(world, '/api/v1/session')).body).toMatchObject({ authenticated: false, user: null })
  })

  it('a stranger is 401 and told how to prove who they are', async () => {
    await using world = await aWorld({ identity: proxy })
    for (const url of guarded) {
      const { status, headers } = await get(world, url)
      expect([status, headers['www-authenticate']], url).toEqual([401, 'Bearer realm="clusterpulse"'])
    }
  })
})

describe('a stranger with a body', () => {
  it('is refused before it comes, or by the bound of what anybody may send', async () => {
    await using world = await aWorld({ identity: proxy })
    const base = new URL(await world.server.start())
    const ask = (method: string, path: string, length: number) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': length, 'x-clusterpulse-request': '1' }
        const asked = request(new URL(path, base), { method, agent: false, headers }, (answer) => {
          resolve(answer.statusCode)
          asked.destroy()
        })
        asked.on('error', reject).flushHeaders() // and no byte of the body
      })
    const guardedWrites = routes.filter(({ access, method }) => access !== 'public' && method !== 'GET')
    expect(guardedWrites.length).toBeGreaterThan(5)
    for (const { method, url } of guardedWrites) {
      const path = url.replaceAll(/:\w+/g, 'west')
      expect(await ask(method, path, 4_000_000), `${method} ${path}`).toBe(401)
    }
    expect(await ask('POST', '/api/v1/auth/password', 4_000_000)).toBe(413)
    expect(await ask('POST', '/nothing', 4_000_000)).toBe(413)
  })
})

describe('where policies cannot be read', () => {
  it('nobody is answered about the fleet, and nobody sees an empty one; administrators mend it', async () => {
    const access = openAccess({
      source: new MemoryPolicies(),
      semantics: 'strict',
      administrators: { users: ['admin'], groups: [] },
      clock: { now: () => 0, sleep: async () => undefined },
    })
    await using world = await aWorld({ identity: proxy }, { access })
    await fill(world)
    const filtered = routes.filter((route) => route.access === 'filtered' && route.method === 'GET')
    for (const { url, contentType } of filtered) {
      const path = url.replace(':name', 'west').replace(':node', 'a').replace(':label', 'cluster')
      const { status, body, headers } = await get(world, path, { as: 'ann' })
      expect([status, body.code, headers['retry-after']], `${path} ${contentType}`).toEqual([
        503,
        'policies_unavailable',
        '5',
      ])
    }
    expect((await get(world, '/api/v1/auth/policies', { as: 'ann' })).status).toBe(503)
    expect((await get(world, '/api/v1/session', { as: 'ann' })).body).toMatchObject({ authenticated: true })
    expect((await get(world, '/api/v2/clusters', { as: 'admin' })).body).toMatchObject({ total: 2 })
  })
})

describe('a session', () => {
  it('begins with a password, is who one is, and ends with signing out', async () => {
    await using world = await aWorld({ identity: withPassword })
    await fill(world)
    const { status, cookies, headers } = await signIn(world)
    expect(status).toBe(200)
    expect(String(headers['set-cookie'])).toMatch(/HttpOnly/i)
    expect((await get(world, '/api/v1/session', { cookies })).body).toMatchObject({
      authenticated: true,
      user: { username: 'root', administrator: true, method: 'password' },
      actor: null,
      sessionEndsAt: expect.any(Number),
      signIn: [{ method: 'password' }],
    })
    expect((await get(world, '/api/v2/clusters', { cookies })).body).toMatchObject({ total: 2 })
    const out = await post(world, '/api/v1/auth/logout', {}, { cookies })
    expect(out.body).toMatchObject({ message: 'Logout successful' })
    expect((await get(world, '/api/v2/clusters', { cookies })).status).toBe(401)
  })

  it('does not begin with a wrong one, nor with a form of another site', async () => {
    await using world = await aWorld({ identity: withPassword })
    const wrong = await post(world, '/api/v1/auth/password', { username: 'root', password: 'no' })
    expect([wrong.status, wrong.body.code, wrong.cookies]).toEqual([401, 'sign_in_failed', []])
    const body = { username: 'root', password }
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'x-clusterpulse-request': '' },
    ]) {
      const forged = await post(world, '/api/v1/auth/password', body, { headers })
      expect([forged.status, forged.cookies], JSON.stringify(headers)).toEqual([403, []])
    }
    const form = await world.server.app.inject({
      method: 'POST',
      url: '/api/v1/auth/password',
      headers: { 'content-type': 'text/plain', 'x-clusterpulse-request': '1' },
      payload: JSON.stringify(body),
    })
    expect([form.statusCode, form.json<{ code: string }>().code]).toEqual([400, 'bad_request'])
  })

  it('by a provider that is not configured is not there', async () => {
    await using world = await aWorld({ identity: withPassword })
    expect((await get(world, '/api/v1/auth/login')).body).toMatchObject({ code: 'sign_in_off' })
    expect((await get(world, '/api/v1/auth/callback?code=x&state=y')).body).toMatchObject({ code: 'sign_in_off' })
  })

  it('that fails between us and the provider is explained to a person, and to a program as JSON', async () => {
    const told = '<script>alert(1)</script> & "more"'
    const fake = {
      ...(await anIdentity(async () => null)),
      methods: () => [{ method: 'oidc' as const, title: 'Provider' }],
      begin: async () => {
        throw new IdentityUnavailableError('the provider does not answer')
      },
      callback: async () => {
        throw new SignInFailedError(told, { cookies: ['state=; Max-Age=0'] })
      },
    }
    await using world = await aWorld({ identity: proxy }, { identity: fake })
    const ask = (url: string, accept: string) => world.server.app.inject({ url, headers: { accept } })
    const page = await ask('/api/v1/auth/callback?code=a&state=b', 'text/html,application/xhtml+xml')
    expect([page.statusCode, page.headers['content-type'], page.headers['set-cookie']]).toEqual([
      401,
      'text/html; charset=utf-8',
      ['state=; Max-Age=0'],
    ])
    expect(page.body).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;')
    expect(page.body).not.toContain('<script')
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
    expect((await ask('/api/v1/auth/login', 'text/html')).statusCode).toBe(503)
    const program = await ask('/api/v1/auth/callback?code=a&state=b', '*/*')
    expect([program.statusCode, program.json()]).toMatchObject([401, { code: 'sign_in_failed', error: told }])
  })

  it.each([
    ['/clusters/west?tab=nodes', '/clusters/west?tab=nodes'],
    ['//evil.example', '/'],
    ['https://evil.example', '/'],
    ['/\\\\evil.example', '/'],
    ['javascript:alert(1)', '/'],
    ['/a b', '/'],
    [undefined, '/'],
  ])('comes back from the provider to %s as %s: nowhere but here', async (asked, expected) => {
    const asking: string[] = []
    const fake: Identity = {
      ...(await anIdentity(async () => null)),
      methods: () => [{ method: 'oidc', title: 'Provider' }],
      begin: async (returnTo) => {
        asking.push(returnTo)
        return { status: 302, location: 'https://idp.example/auth', cookies: ['state=x'] }
      },
    }
    await using world = await aWorld({ identity: proxy }, { identity: fake })
    const query = asked === undefined ? '' : `?returnTo=${encodeURIComponent(asked)}`
    const { status, headers } = await get(world, `/api/v1/auth/login${query}`)
    expect([status, headers.location, headers['set-cookie'], asking]).toEqual([
      302,
      'https://idp.example/auth',
      ['state=x'],
      [expected],
    ])
  })

  it('moves nothing without the word of our own page', async () => {
    await using world = await aWorld({ identity: withPassword, corsOrigins: ['https://listed.example'] })
    const { cookies } = await signIn(world)
    const changing = routes.filter(
      ({ method, access, schema }) => method === 'POST' && access !== 'public' && !schema.form,
    )
    expect(changing.length).toBeGreaterThan(4)
    // What pages of others post as well goes by the browser's word, too (gate.test.ts).
    const word = (url: string) => (/(logout|cache\/clear)$/.test(url) ? { origin: 'null' } : {})
    for (const { url } of changing) {
      for (const headers of [
        { 'x-clusterpulse-request': '', ...word(url) },
        { 'x-clusterpulse-request': 'yes', ...word(url) },
        { origin: 'https://evil.example' },
        { origin: 'https://listed.example' },
        { origin: 'null' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site', origin: 'https://listed.example' },
      ]) {
        const { status, body } = await post(world, url, {}, { cookies, headers })
        expect([status, String(body.code)], `${url} ${JSON.stringify(headers)}`).toEqual([
          403,
          expect.stringMatching(/^(csrf|cross_site)_refused$/),
        ])
      }
    }
    expect((await get(world, '/api/v1/auth/me', { cookies })).status).toBe(200)
  })

  it('comes back from a proxy that gives us another host, by the address people use', async () => {
    await using world = await aWorld({ identity: { ...withPassword, publicUrl: 'https://pulse.example' } })
    const body = { username: 'root', password }
    const from = (origin: string) =>
      post(world, '/api/v1/auth/password', body, { headers: { origin, host: 'api.inside:8080' } })
    expect((await from('https://pulse.example')).status).toBe(200)
    expect((await from('https://pulse.example.evil')).status).toBe(403)
  })
})

describe('looking through the eyes of another', () => {
  const identity = withPassword
  const policies = [allow('ann', { clusters: ['west'] }), deny('bob')]
  const looking = async (world: World, subject: object = { username: 'ann', groups: ['dev'] }) => {
    const { cookies } = await signIn(world)
    const { status, cookies: view } = await post(world, '/api/v2/access/view-as', subject, { cookies })
    expect(status).toBe(200)
    return { own: cookies, through: [...cookies, ...view] }
  }

  it('shows what they see, says who looks, and ends', async () => {
    await using world = await aWorld({ identity, policies })
    await fill(world)
    const { through } = await looking(world)
    const names = async (cookies: readonly string[]) =>
      ((await get(world, '/api/v2/clusters', { cookies })).body.items as { name: string }[]).map(({ name }) => name)
    expect(await names(through)).toEqual(['west'])
    expect((await get(world, '/api/v2/clusters/east', { cookies: through })).status).toBe(404)
    expect((await get(world, '/api/v1/session', { cookies: through })).body).toMatchObject({
      user: { username: 'ann', groups: ['dev'], administrator: false },
      actor: 'root',
    })
    const end = await post(world, '/api/v2/access/view-as/end', {}, { cookies: through })
    expect(end.status).toBe(200)
    expect(String(end.headers['set-cookie'])).toMatch(/Max-Age=0|Expires=Thu, 01 Jan 1970/i)
  })

  it('is for reading: nothing can be changed but that one looks', async () => {
    await using world = await aWorld({ identity, policies })
    await fill(world)
    const { through: cookies } = await looking(world)
    for (const url of [
      '/api/v1/auth/cache/clear',
      '/api/v2/access/seen',
      '/api/v2/access/view-as',
      '/api/v2/access/preview',
    ]) {
      const { status, body } = await post(world, url, { username: 'bob', manifest: '' }, { cookies })
      expect([status, body.code], url).toEqual([403, 'viewing_as'])
    }
    expect((await get(world, '/api/v2/access/policies', { cookies })).body.code).toBe('administrators_only')
    const question = await world.server.app.inject({
      method: 'POST',
      url: '/api/v1/query',
      headers: { cookie: cookies.join('; '), 'content-type': 'application/x-www-form-urlencoded' },
      payload: 'query=up',
    })
    expect(question.statusCode).toBe(200)
    expect((await post(world, '/api/v1/auth/logout', {}, { cookies })).status).toBe(200)
  })

  it('is for administrators, and for no one through a cookie of theirs', async () => {
    await using world = await aWorld({ identity, policies })
    await fill(world)
    const begin = await post(world, '/api/v2/access/view-as', { username: 'bob' }, { as: 'ann' })
    expect([begin.status, begin.body.code]).toEqual([403, 'administrators_only'])
    const { own, through } = await looking(world)
    const view = through.slice(own.length)
    expect((await get(world, '/api/v1/auth/me', { as: 'bob', cookies: view })).body).toMatchObject({ username: 'bob' })
  })

  it('ends when the one who looks is no administrator any more', async () => {
    const actor = about({ username: 'ann' })
    const principal = about({ username: 'bob', actor: 'ann' })
    const fake = await anIdentity(async () => ({ principal, actor, byCookie: true }))
    await using world = await aWorld({ identity: proxy, policies }, { identity: fake })
    await fill(world)
    expect((await get(world, '/api/v1/session')).body).toMatchObject({ user: { username: 'ann' }, actor: null })
    expect((await get(world, '/api/v2/clusters')).body).toMatchObject({ total: 1 })
  })

  it('never makes one who looks as the local administrator would an administrator', async () => {
    await using world = await aWorld({ policies })
    await fill(world)
    const headers = { host: 'localhost', origin: 'http://localhost' }
    const { cookies } = await post(world, '/api/v2/access/view-as', { username: 'ann' }, { headers })
    expect((await get(world, '/api/v2/clusters', { cookies, headers: { host: 'localhost' } })).body).toMatchObject({
      total: 1,
    })
  })
})

describe('what answers depend on', () => {
  it('is said to caches, and answers about people are not kept', async () => {
    await using world = await aWorld({ identity: proxy, corsOrigins: ['https://a.example'] })
    await fill(world)
    const list = await get(world, '/api/v2/clusters', { as: 'admin' })
    expect(list.headers.vary).toBe('Accept-Encoding, Cookie, Authorization, Origin')
    expect(list.headers['cache-control']).toBe('private, no-cache')
    for (const url of ['/api/v1/auth/me', '/api/v1/session', '/api/v2/access/policies', '/api/v2/clusters/none'])
      expect((await get(world, url, { as: 'admin' })).headers['cache-control'], url).toBe('private, no-store')
  })

  it('is a safe connection for good, once a proxy of ours or the known address says there was one', async () => {
    const strict = 'strict-transport-security'
    const https = { 'x-forwarded-proto': 'https' }
    await using world = await aWorld({ identity: proxy })
    expect((await get(world, '/api/v1/auth/me', { as: 'ann', headers: https })).headers[strict]).toContain('max-age=')
    expect((await get(world, '/api/v1/auth/me', { as: 'ann' })).headers[strict]).toBeUndefined()
    expect((await get(world, '/api/v1/auth/me', { headers: https })).headers[strict]).toBeUndefined()
    await using known = await aWorld({ identity: { ...withPassword, publicUrl: 'https://pulse.example' } })
    expect((await get(known, '/healthz', { headers: https })).headers[strict]).toContain('max-age=')
  })
})
