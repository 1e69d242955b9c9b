import { describe, expect, it } from 'vitest'
import { authenticator, UnsafeConfigurationError } from './authentication.ts'
import { aWorld, proxy } from './test/world.ts'

const secret = 'a-secret-of-the-proxy'
const withSecret = {
  mode: 'trusted-proxy',
  trustedPeers: [],
  sharedSecret: { header: 'X-Proxy', value: secret },
} as const

describe('who asks', () => {
  it('believes identity headers of a trusted peer', async () => {
    await using world = await aWorld({ authentication: proxy })
    const { body } = await world.get('/api/v1/auth/me', {
      'x-forwarded-user': 'ann',
      'x-forwarded-email': 'ann@example.org',
      'x-forwarded-groups': 'dev, ops,,dev',
    })
    expect(body).toEqual({ username: 'ann', email: 'ann@example.org', groups: ['dev', 'ops'] })
  })

  it.each(['/api/v1/auth/me', '/api/v1/clusters', '/api/v2/clusters', '/api/v1/stream', '/api/v2/unknown'])(
    'answers 401 on %s to whoever carries no user',
    async (url) => {
      await using world = await aWorld({ authentication: proxy })
      const { status, body } = await world.get(url)
      expect(status).toBe(401)
      expect(body).toMatchObject({ error: 'authentication required', code: 'unauthenticated' })
    },
  )

  it('ignores identity headers of a peer that is not listed', async () => {
    await using world = await aWorld({ authentication: { ...proxy, trustedPeers: ['10.0.0.0/8', '::1'] } })
    expect((await world.get('/api/v1/auth/me', { 'x-forwarded-user': 'admin' })).status).toBe(401)
  })

  it.each([
    ['127.0.0.0/8', '::ffff:127.0.0.1', true],
    ['127.0.0.0/8', '128.0.0.1', false],
    ['fd00::/8', 'fd12::1', true],
    ['fd00::/8', '10.0.0.1', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['10.1.2.3', '10.1.2.4', false],
    ['0.0.0.0/0', 'no-address', false],
  ])('with %s trusted, a peer at %s is believed: %s', async (peer, remoteAddress, believed) => {
    await using world = await aWorld({ authentication: { ...proxy, trustedPeers: [peer] } })
    const response = await world.server.app.inject({
      url: '/api/v1/auth/me',
      remoteAddress,
      headers: { 'x-forwarded-user': 'ann' },
    })
    expect(response.statusCode).toBe(believed ? 200 : 401)
  })

  it('believes the holder of the shared secret, and nobody with another or none', async () => {
    await using world = await aWorld({ authentication: withSecret })
    const me = async (headers: Record<string, string>) =>
      (await world.get('/api/v1/auth/me', { 'x-forwarded-user': 'ann', ...headers })).status
    expect(await me({ 'x-proxy': secret })).toBe(200)
    expect(await me({ 'x-proxy': `${secret}x` })).toBe(401)
    expect(await me({ 'x-proxy': '' })).toBe(401)
    expect(await me({})).toBe(401)
  })

  it('asks for both, listed peer and secret, where both are configured', async () => {
    await using world = await aWorld({ authentication: { ...withSecret, trustedPeers: ['10.0.0.1'] } })
    const { status } = await world.get('/api/v1/auth/me', { 'x-forwarded-user': 'ann', 'x-proxy': secret })
    expect(status).toBe(401)
  })

  it('refuses a request whose identity header came twice: one of them is not from the proxy', () => {
    const authenticate = authenticator(proxy)
    const request = (rawHeaders: string[]) =>
      authenticate({ rawHeaders, socket: { remoteAddress: '127.0.0.1' } } as unknown as Parameters<
        typeof authenticate
      >[0])
    expect(request(['X-Forwarded-User', 'ann'])?.username).toBe('ann')
    expect(request(['X-Forwarded-User', 'admin', 'x-forwarded-user', 'ann'])).toBeNull()
    expect(request(['X-Forwarded-User', 'ann', 'X-Forwarded-Groups', 'admins', 'X-FORWARDED-GROUPS', 'dev'])).toBeNull()
    expect(request(['X-Forwarded-User', 'a\u0001nn'])).toBeNull()
    expect(request(['X-Forwarded-User', '  '])).toBeNull()
  })

  it('does not look at identity headers in the other modes', async () => {
    await using local = await aWorld()
    const { body } = await local.get('/api/v1/auth/me', { 'x-forwarded-user': 'eve', 'x-forwarded-groups': 'admins' })
    expect(body).toMatchObject({ username: 'local-administrator', groups: [] })
    await using development = await aWorld({
      authentication: {
        mode: 'development',
        environment: 'development',
        proxyEnabled: false,
        developmentUserEnabled: true,
      },
    })
    const answer = await development.get('/api/v1/auth/me', { 'x-forwarded-user': 'admin' })
    expect(answer.body).toEqual({
      username: 'dev-user',
      email: 'dev@clusterpulse.local',
      groups: ['developers', 'cluster-viewers'],
    })
  })

  it.each([
    [{ mode: 'trusted-proxy', trustedPeers: [] }],
    [{ mode: 'trusted-proxy', trustedPeers: ['everyone'] }],
    [{ mode: 'trusted-proxy', trustedPeers: ['10.0.0.0/33'] }],
    [{ mode: 'trusted-proxy', trustedPeers: ['10.0.0.0/8/9'] }],
    [{ mode: 'trusted-proxy', trustedPeers: [], sharedSecret: { header: 'x', value: 'short' } }],
  ] as const)('refuses to start with %j', (config) => {
    expect(() => authenticator(config)).toThrow(UnsafeConfigurationError)
  })

  it('recognises service accounts by the name the proxy sent', () => {
    const principal = authenticator(proxy)({
      rawHeaders: ['X-Forwarded-User', 'system:serviceaccount:ns:reader'],
      socket: { remoteAddress: '127.0.0.1' },
    } as unknown as Parameters<ReturnType<typeof authenticator>>[0])
    expect(principal).toMatchObject({ isServiceAccount: true, method: 'trusted-proxy' })
  })
})
