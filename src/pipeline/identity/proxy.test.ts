import { describe, expect, it, vi } from 'vitest'
import { createLogger } from '#runtime'
import { UnsafeConfigurationError } from './errors.ts'
import { anIdentity, aRequest } from './test/requests.ts'
import type { IdentityConfig, ProxyConfig } from './types.ts'

const secret = 'a-secret-of-the-proxy'
const listed: ProxyConfig = { trustedPeers: ['127.0.0.1'] }
const sharing: ProxyConfig = { trustedPeers: [], sharedSecret: { header: 'X-Proxy', value: secret } }

const whoIs = async (proxy: ProxyConfig, headers: readonly string[], from?: string) => {
  await using identity = await anIdentity({ proxy })
  return (await identity.identify(aRequest(headers, from)))?.principal ?? null
}

describe('headers of a proxy', () => {
  it('that name nobody, though an address came, are refused, and the log says which setting to change', async () => {
    const logger = createLogger('silent')
    const said = vi.spyOn(logger, 'warn')
    const proxy = { ...listed, userHeader: 'X-Forwarded-Preferred-Username' }
    await using identity = await anIdentity({ proxy }, { logger })
    const request = aRequest(['X-Forwarded-User', 'CgVhbm4', 'X-Forwarded-Email', 'ann@example.org'])
    expect(await identity.identify(request)).toBeNull()
    expect(await identity.identify(request)).toBeNull()
    expect(said.mock.calls).toEqual([
      [{ reason: expect.stringMatching(/Preferred-Username is empty.*OAUTH_HEADER_USER/) }, expect.any(String)],
    ])
  })

  it('are believed from a listed peer, groups each once', async () => {
    const headers = [
      'X-Forwarded-User',
      'ann',
      'X-Forwarded-Email',
      'ann@example.org',
      'X-Forwarded-Groups',
      'dev, ops,,dev',
    ]
    expect(await whoIs(listed, headers)).toEqual({
      username: 'ann',
      email: 'ann@example.org',
      emailVerified: true,
      groups: ['dev', 'ops'],
      isServiceAccount: false,
      method: 'trusted-proxy',
    })
  })

  it.each([
    ['127.0.0.0/8', '::ffff:127.0.0.1', true],
    ['127.0.0.0/8', '128.0.0.1', false],
    ['fd00::/8', 'fd12::1', true],
    ['fd00::/8', '10.0.0.1', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['10.1.2.3', '10.1.2.4', false],
    ['0.0.0.0/0', 'no-address', false],
  ])('with %s trusted, a peer at %s is believed: %s', async (peer, from, believed) => {
    expect((await whoIs({ trustedPeers: [peer] }, ['X-Forwarded-User', 'ann'], from)) !== null).toBe(believed)
  })

  it('are believed from the holder of the shared secret, and from nobody with another, two or none', async () => {
    const ann = ['X-Forwarded-User', 'ann']
    expect(await whoIs(sharing, [...ann, 'X-Proxy', secret])).toMatchObject({ username: 'ann' })
    expect(await whoIs(sharing, [...ann, 'X-Proxy', `${secret}x`])).toBeNull()
    expect(await whoIs(sharing, [...ann, 'X-Proxy', ''])).toBeNull()
    expect(await whoIs(sharing, [...ann, 'X-Proxy', secret, 'x-proxy', secret])).toBeNull()
    expect(await whoIs(sharing, [...ann, 'X_Proxy', secret])).toBeNull()
    expect(await whoIs(sharing, ann)).toBeNull()
  })

  it('take everything that is configured: the secret does not make up for the address', async () => {
    const both = { ...sharing, trustedPeers: ['10.0.0.1'] }
    const headers = ['X-Forwarded-User', 'ann', 'X-Proxy', secret]
    expect(await whoIs(both, headers, '127.0.0.1')).toBeNull()
    expect(await whoIs(both, headers, '10.0.0.1')).toMatchObject({ username: 'ann' })
  })

  it.each([
    ['a user that came twice', ['X-Forwarded-User', 'admin', 'X-Forwarded-User', 'ann']],
    ['a user that came twice in other letters', ['X-Forwarded-User', 'admin', 'x-forwarded-USER', 'ann']],
    ['a user beside its underscore variant', ['X-Forwarded-User', 'ann', 'X_Forwarded_User', 'admin']],
    ['the underscore variant alone', ['X_Forwarded_User', 'admin']],
    ['a mixed variant', ['X-Forwarded_User', 'admin']],
    [
      'groups that came twice',
      ['X-Forwarded-User', 'ann', 'X-Forwarded-Groups', 'admins', 'X-FORWARDED-GROUPS', 'dev'],
    ],
    ['groups beside their variant', ['X-Forwarded-User', 'ann', 'X_Forwarded_Groups', 'admins']],
    ['an email that came twice', ['X-Forwarded-User', 'ann', 'X-Forwarded-Email', 'a@b', 'X-Forwarded-Email', 'c@d']],
    ['a control character', ['X-Forwarded-User', 'a\u0001nn']],
    ['a line break in a group', ['X-Forwarded-User', 'ann', 'X-Forwarded-Groups', 'dev\nadmins']],
    ['a bidirectional override', ['X-Forwarded-User', Buffer.from('ann\u202enimda').toString('latin1')]],
    ['a zero-width space', ['X-Forwarded-User', Buffer.from('ad\u200bmin').toString('latin1')]],
    ['full-width letters', ['X-Forwarded-User', Buffer.from('ａｄｍｉｎ').toString('latin1')]],
    ['bytes that are no UTF-8', ['X-Forwarded-User', 'ann\u00ff']],
    ['a byte behind the name that is no UTF-8 and looks like a blank', ['X-Forwarded-User', 'admin\u00a0']],
    [
      'a blank that is none of HTTP around a group',
      ['X-Forwarded-User', 'ann', 'X-Forwarded-Groups', Buffer.from('dev,admins\u2003').toString('latin1')],
    ],
    ['blanks alone', ['X-Forwarded-User', '  ']],
    ['groups without a user', ['X-Forwarded-Groups', 'admins']],
    ['an endless name', ['X-Forwarded-User', 'a'.repeat(10_000)]],
    [
      'more groups than anybody has',
      ['X-Forwarded-User', 'ann', 'X-Forwarded-Groups', Array.from({ length: 1001 }, (_, n) => n).join()],
    ],
  ])('are refused with %s', async (_, headers) => {
    expect(await whoIs(listed, headers)).toBeNull()
  })

  // The last byte of à is that of a blank in Latin-1.
  it.each(['josé', 'nicolà'])('give names as the proxy sent them in UTF-8: %s', async (username) => {
    const user = Buffer.from(username).toString('latin1')
    expect(await whoIs(listed, ['X-Forwarded-User', user])).toMatchObject({ username })
  })

  it('may have other names, and then the usual ones say nothing', async () => {
    const own = { ...listed, userHeader: 'X-Person' }
    expect(await whoIs(own, ['X-Forwarded-User', 'admin'])).toBeNull()
    expect(await whoIs(own, ['X-Forwarded-User', 'admin', 'X-Person', 'ann'])).toMatchObject({ username: 'ann' })
  })

  it('mark an address as unverified where the proxy does not vouch for it', async () => {
    const headers = ['X-Forwarded-User', 'ann', 'X-Forwarded-Email', 'boss@example.org']
    expect(await whoIs({ ...listed, emailVerified: false }, headers)).toMatchObject({ emailVerified: false })
  })

  it.each([
    ['system:serviceaccount:ns:reader', true],
    ['system:serviceaccount:ns', false],
    ['system:serviceaccount:ns:reader:more', false],
    ['xsystem:serviceaccount:ns:reader', false],
  ])('name %s a service account: %s', async (user, isServiceAccount) => {
    expect(await whoIs(listed, ['X-Forwarded-User', user])).toMatchObject({ isServiceAccount })
  })

  it('are not looked at where no proxy is configured', async () => {
    const headers = ['X-Forwarded-User', 'eve', 'X-Forwarded-Groups', 'admins']
    await using nothing = await anIdentity({})
    expect(await nothing.identify(aRequest(headers))).toBeNull()
    await using local = await anIdentity({ localAdministrator: {} })
    expect((await local.identify(aRequest(headers)))?.principal).toMatchObject({
      username: 'local-administrator',
      groups: [],
    })
  })
})

describe('the start', () => {
  it.each([
    [{ trustedPeers: [] }],
    [{ trustedPeers: ['everyone'] }],
    [{ trustedPeers: ['10.0.0.0/33'] }],
    [{ trustedPeers: ['10.0.0.0/8/9'] }],
    [{ trustedPeers: [''] }],
    [{ trustedPeers: [], sharedSecret: { header: 'x', value: 'short' } }],
    [{ trustedPeers: [], clientCa: { pem: 'no certificate' } }],
  ])('is refused with the proxy %j', async (proxy) => {
    await expect(anIdentity({ proxy })).rejects.toThrow(UnsafeConfigurationError)
  })

  it('is refused where the development user misses one of its three conditions', async () => {
    const met = { environment: 'development', proxyEnabled: false, developmentUserEnabled: true } as const
    await using identity = await anIdentity({ development: met })
    expect((await identity.identify(aRequest()))?.principal).toMatchObject({
      username: 'dev-user',
      email: 'dev@clusterpulse.local',
      groups: ['developers', 'cluster-viewers'],
      method: 'development',
    })
    for (const broken of [{ environment: 'production' }, { proxyEnabled: true }, { developmentUserEnabled: false }])
      await expect(anIdentity({ development: { ...met, ...broken } as typeof met })).rejects.toThrow(
        UnsafeConfigurationError,
      )
  })

  it('is refused where the open port and a way to sign in are both configured', async () => {
    await expect(anIdentity({ localAdministrator: {}, proxy: listed })).rejects.toThrow(UnsafeConfigurationError)
    const development = { environment: 'development', proxyEnabled: false, developmentUserEnabled: true } as const
    await expect(anIdentity({ localAdministrator: {}, development })).rejects.toThrow(UnsafeConfigurationError)
  })

  it.each<[IdentityConfig, string]>([
    [{ proxy: { trustedPeers: [] } }, 'TRUSTED_PROXIES'],
    [{ proxy: { trustedPeers: ['everyone'] } }, 'TRUSTED_PROXIES'],
    [{ proxy: { ...sharing, sharedSecret: { header: 'x', value: 'short' } } }, 'TRUSTED_PROXY_SECRET'],
    [{ proxy: { trustedPeers: [], clientCa: { pem: 'none' } } }, 'TRUSTED_PROXY_CA_FILE'],
    [{ localAdministrator: {}, proxy: listed }, 'TRUSTED_PROXIES'],
    [
      { localAdministrator: {}, password: { username: 'admin', secret: 'long enough for all' } },
      'LOCAL_ADMIN_PASSWORD',
    ],
    [{ password: { username: 'admin', secret: 'short' } }, 'LOCAL_ADMIN_PASSWORD'],
    [{ password: { username: '\n', secret: 'long enough for all' } }, 'LOCAL_ADMIN_USER'],
    [{ development: { environment: 'production' } as never }, 'ENABLE_DEV_AUTH'],
    [{ session: { secret: 'short' } }, 'SESSION_SECRET'],
    [{ publicUrl: 'pulse.example.com' }, 'PUBLIC_URL'],
    [{ bearer: [{ issuer: 'http://issuer.example', audience: 'a' }] }, 'JWT_ISSUER'],
    [{ tokenReview: {} }, 'TOKEN_REVIEW'],
    [{ openshiftGroups: {} }, 'OPENSHIFT_GROUPS'],
  ])('that is refused for %j names %s', async (config, setting) => {
    await expect(anIdentity(config)).rejects.toThrow(setting)
  })
})
