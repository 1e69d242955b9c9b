import { createHmac, createPublicKey, type JsonWebKey, sign } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { CompactSign, type CryptoKey, exportJWK, exportSPKI, importJWK } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { IdentityUnavailableError, TokenRefusedError, UnsafeConfigurationError } from './errors.ts'
import { TestClock } from './test/clock.ts'
import { aKey, aToken, Issuer, type SigningKey } from './test/issuer.ts'
import { anIdentity, aRequest } from './test/requests.ts'
import type { BearerConfig, Identity } from './types.ts'

const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('a bearer token', () => {
  let key: SigningKey
  let rsa: SigningKey
  let stranger: SigningKey
  let issuer: Issuer
  let clock: TestClock
  let identity: Identity

  beforeAll(async () => {
    key = await aKey('k1')
    rsa = await aKey('rsa', 'RS256')
    stranger = await aKey('k1')
    issuer = await Issuer.start(key, rsa)
  })
  afterAll(() => issuer[Symbol.asyncDispose]())
  beforeEach(async () => {
    issuer.keys = [key.jwk, rsa.jwk]
    issuer.trouble = undefined
    clock = new TestClock()
    identity = await identityWith({})
  })

  const identityWith = (more: Partial<BearerConfig>): Promise<Identity> =>
    anIdentity({ bearer: [{ issuer: issuer.url, audience: 'fleet', ...more }] }, { clock })
  const show = (token: string, more: readonly string[] = []) =>
    identity.identify(aRequest(['Authorization', `Bearer ${token}`, ...more]))
  const token = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}, by = key) =>
    aToken(by, { issuer: issuer.url, clock, claims, header })
  const signed = async (header: unknown, payload: Uint8Array | string, by = key): Promise<string> => {
    const head = typeof header === 'string' ? header : text(header)
    const body = Buffer.from(payload).toString('base64url')
    const secret = { ...(await exportPrivate(by)), dsaEncoding: 'ieee-p1363' as const }
    return `${head}.${body}.${sign('sha256', Buffer.from(`${head}.${body}`), secret).toString('base64url')}`
  }
  const exportPrivate = async (by: SigningKey) => {
    return { key: (await exportJWK(by.privateKey)) as JsonWebKey, format: 'jwk' as const }
  }
  const goodClaims = () => {
    const now = Math.floor(clock.now() / 1000)
    return { iss: issuer.url, aud: 'fleet', sub: 'ann', iat: now, exp: now + 3600 }
  }

  it('of the configured issuer says who asks, until it ends', async () => {
    const found = await show(
      await token({
        preferred_username: 'ann',
        groups: ['dev', 'ops'],
        email: 'ann@example.org',
        email_verified: true,
      }),
    )
    expect(found).toMatchObject({
      byCookie: false,
      principal: {
        username: 'ann',
        groups: ['dev', 'ops'],
        email: 'ann@example.org',
        emailVerified: true,
        isServiceAccount: false,
        method: 'bearer-jwt',
      },
    })
    expect(found?.session?.expiresAt).toBe((Math.floor(clock.now() / 1000) + 3600) * 1000)
  })

  it.each(['RS256', 'RS512', 'PS256', 'ES384', 'ES512', 'EdDSA'])('counts when signed with %s', async (alg) => {
    const other = await aKey('other', alg)
    issuer.keys = [other.jwk]
    expect((await show(await token({}, {}, other)))?.principal.username).toBe('ann')
  })

  describe('is refused', () => {
    const forgeries: readonly [string, () => Promise<string> | string][] = [
      ['with algorithm none', () => `${text({ alg: 'none', kid: 'k1' })}.${text(goodClaims())}.`],
      ['with algorithm None and a signature', () => `${text({ alg: 'None', kid: 'k1' })}.${text(goodClaims())}.AAAA`],
      [
        'signed with HS256 by the text of the public key',
        async () => {
          const spki = await exportSPKI((await importJWK(rsa.jwk, 'RS256')) as CryptoKey)
          const body = `${text({ alg: 'HS256', kid: 'rsa', typ: 'JWT' })}.${text(goodClaims())}`
          return `${body}.${createHmac('sha256', spki).update(body).digest('base64url')}`
        },
      ],
      [
        'signed with HS256 by the bytes of the public key',
        () => {
          const der = createPublicKey({ key: rsa.jwk as JsonWebKey, format: 'jwk' }).export({
            type: 'spki',
            format: 'der',
          })
          const body = `${text({ alg: 'HS256', kid: 'rsa' })}.${text(goodClaims())}`
          return `${body}.${createHmac('sha256', der).update(body).digest('base64url')}`
        },
      ],
      ['of one algorithm under the key of another', () => token({}, { kid: 'rsa' })],
      ['by a stranger under a known key name', () => token({}, {}, stranger)],
      ['with its own key in the header (jwk)', () => token({}, { jwk: stranger.jwk }, stranger)],
      ['with the address of its own keys (jku)', () => token({}, { jku: 'http://127.0.0.1:1/keys' }, stranger)],
      ['with the address of its own certificate (x5u)', () => token({}, { x5u: 'http://127.0.0.1:1/c.pem' }, stranger)],
      ['with a key name that walks through paths', () => token({}, { kid: '../../../../dev/null' })],
      ['with a key name that asks a database', () => token({}, { kid: "k1' OR '1'='1" })],
      ['with a key name that objects have by themselves', () => token({}, { kid: '__proto__' })],
      ['with a key name that is no text', () => signed({ alg: 'ES256', kid: ['k1'] }, JSON.stringify(goodClaims()))],
      ['without a key name where there are several keys', () => token({}, { kid: undefined })],
      ['of another issuer', () => token({ iss: 'https://elsewhere.example' })],
      ['of an issuer with one slash more', () => token({ iss: `${issuer.url}/` })],
      ['of a list of issuers', () => token({ iss: [issuer.url] })],
      ['without an issuer', () => token({ iss: undefined })],
      ['for another audience', () => token({ aud: 'other' })],
      ['for an audience that merely begins alike', () => token({ aud: 'fleet2' })],
      ['without an audience', () => token({ aud: undefined })],
      ['that ended', () => token({ exp: clock.now() / 1000 - 31 })],
      ['without an end', () => token({ exp: undefined })],
      ['with an end as text', () => token({ exp: '99999999999' })],
      ['with an end beyond all time', () => signedClaims('"exp":1e999')],
      ['with an end beyond what a date can hold', () => token({ exp: 1e15 })],
      ['with an end that is null', () => token({ exp: null })],
      ['that does not count yet', () => token({ nbf: clock.now() / 1000 + 31 })],
      ['with a beginning as text', () => token({ nbf: '0' })],
      ['issued in the future', () => token({ iat: clock.now() / 1000 + 3600 })],
      ['with a duplicated subject', () => signedClaims('"sub":"ann","sub":"admin"')],
      ['with a duplicated subject in escapes', () => signedClaims('"sub":"ann","s\\u0075b":"admin"')],
      ['with a duplicated audience', () => signedClaims('"aud":"other","aud":"fleet"')],
      ['with duplicated keys deep inside', () => signedClaims('"sub":"ann","x":{"y":[{"z":1,"z":2}]}')],
      [
        'with a duplicated algorithm',
        () =>
          signed(
            Buffer.from('{"alg":"none","alg":"ES256","kid":"k1"}').toString('base64url'),
            JSON.stringify(goodClaims()),
          ),
      ],
      ['without a subject', () => token({ sub: undefined })],
      ['with an empty subject', () => token({ sub: '' })],
      ['with a list as subject', () => token({ sub: ['ann', 'admin'] })],
      ['with an object as subject', () => token({ sub: { name: 'admin' } })],
      ['with a number as subject', () => token({ sub: 1 })],
      ['with a subject in full-width letters', () => token({ sub: 'ａｄｍｉｎ' })],
      ['with a subject with a zero-width joiner', () => token({ sub: 'ad\u200dmin' })],
      ['with a subject written from right to left', () => token({ sub: '\u202enimda' })],
      ['with a subject that ends in NUL', () => token({ sub: 'admin\u0000x' })],
      ['with a subject in blanks', () => token({ sub: ' admin' })],
      ['with a subject of a lone surrogate', () => signedClaims('"sub":"\\ud800"')],
      ['with a subject without end', () => token({ sub: 'a'.repeat(2000) })],
      ['with a user name of Kubernetes', () => token({ preferred_username: 'system:admin' })],
      [
        'with a service account as a chosen name',
        () => token({ preferred_username: 'system:serviceaccount:kube-system:x' }),
      ],
      ['with a group that is no text', () => token({ groups: ['dev', { name: 'admins' }] })],
      ['with groups kept elsewhere', () => token({ _claim_names: { groups: 'src1' } })],
      [
        'with an extension that must be understood',
        () => signed({ alg: 'ES256', kid: 'k1', crit: ['exp'], exp: 1 }, JSON.stringify(goodClaims())),
      ],
      [
        'with an empty list of extensions',
        () => signed({ alg: 'ES256', kid: 'k1', crit: [] }, JSON.stringify(goodClaims())),
      ],
      [
        'with an unencoded payload',
        () => signed({ alg: 'ES256', kid: 'k1', b64: false }, JSON.stringify(goodClaims())),
      ],
      ['of another type', () => token({}, { typ: 'logout+jwt' })],
      ['larger than 16 KiB', () => token({ padding: 'x'.repeat(13_000) })],
      ['that is encrypted', () => `${text({ alg: 'dir', enc: 'A256GCM' })}..AAAA.AAAA.AAAA`],
      ['with a payload that is no object', () => signed({ alg: 'ES256', kid: 'k1' }, '["ann"]')],
      ['with bytes that are no UTF-8', () => signed({ alg: 'ES256', kid: 'k1' }, Buffer.from([0x7b, 0xff, 0x7d]))],
      ['nested without end', () => signed({ alg: 'ES256', kid: 'k1' }, `{"a":${'['.repeat(4000)}${']'.repeat(4000)}}`)],
      [
        'with a payload changed after signing',
        async () => {
          const [head, , signature] = (await token()).split('.')
          return `${head}.${text({ ...goodClaims(), sub: 'admin' })}.${signature}`
        },
      ],
      ['with its signature cut off', async () => (await token()).split('.').slice(0, 2).join('.')],
      ['that is no token', () => 'opaque'],
    ]
    const signedClaims = (claims: string): Promise<string> => {
      const rest = Object.entries(goodClaims()).filter(([name]) => !claims.includes(`"${name}"`))
      return signed(
        { alg: 'ES256', kid: 'k1' },
        `{${rest.map((pair) => `${JSON.stringify(pair[0])}:${JSON.stringify(pair[1])}`).join()},${claims}}`,
      )
    }

    it.each(forgeries)('%s', async (_, forge) => {
      await expect(show(await forge())).rejects.toThrow(TokenRefusedError)
    })

    it('nothing of the forgeries stems from the way they are made: the same way makes a good one', async () => {
      expect((await show(await signedClaims('"sub":"ann"')))?.principal.username).toBe('ann')
    })

    it('also beside a cookie and headers that would count, which then decide nothing', async () => {
      identity = await anIdentity(
        { bearer: [{ issuer: issuer.url, audience: 'fleet' }], proxy: { trustedPeers: ['127.0.0.1'] } },
        { clock },
      )
      expect((await identity.identify(aRequest(['X-Forwarded-User', 'bob'])))?.principal.username).toBe('bob')
      await expect(show('made-up', ['X-Forwarded-User', 'bob'])).rejects.toThrow(TokenRefusedError)
    })

    it.each([
      ['two headers', ['Authorization', 'Bearer a.b.c', 'Authorization', 'Bearer d.e.f']],
      ['a second header of another scheme', ['Authorization', 'Basic YTpi', 'Authorization', 'Bearer a.b.c']],
      ['two tokens in one header', ['Authorization', 'Bearer a.b.c d.e.f']],
      ['no token', ['Authorization', 'Bearer']],
    ])('in %s', async (_, headers) => {
      await expect(identity.identify(aRequest(headers))).rejects.toThrow(TokenRefusedError)
    })

    it('without telling a part of it', async () => {
      const forged = await token({ aud: 'other' })
      const error = await show(forged).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code: 'token_refused', reason: 'meant for another audience' })
      expect(JSON.stringify(error) + String((error as Error).message)).not.toContain(forged.slice(0, 20))
    })
  })

  it('counts 30 s around its bounds, as clocks differ', async () => {
    expect(await show(await token({ exp: clock.now() / 1000 - 29 }))).not.toBeNull()
    expect(await show(await token({ nbf: clock.now() / 1000 + 29, iat: clock.now() / 1000 }))).not.toBeNull()
  })

  it('that was verified counts no longer once it ended, though it is remembered', async () => {
    const short = await token({ exp: clock.now() / 1000 + 60 })
    await show(short)
    await show(short)
    clock.pass(91_000)
    await expect(show(short)).rejects.toThrow(TokenRefusedError)
  })

  it('does not come back after sign-out, as it is or with another signature of the same words', async () => {
    const ended: string[] = []
    identity.onEnded((id) => ended.push(id))
    const good = await token()
    const found = await show(good)
    await identity.signOut(aRequest(['Authorization', `Bearer ${good}`]))
    expect(ended).toEqual([found?.session?.id])
    await expect(show(good)).rejects.toThrow(TokenRefusedError)
    const [head = '', body = ''] = good.split('.')
    const again = await new CompactSign(Buffer.from(body, 'base64url'))
      .setProtectedHeader(JSON.parse(Buffer.from(head, 'base64url').toString()))
      .sign(key.privateKey)
    expect(again).not.toBe(good)
    await expect(show(again)).rejects.toThrow(TokenRefusedError)
    expect(await show(await token({ jti: 'another' }))).not.toBeNull()
  })

  it('of a service account names it, by its subject alone', async () => {
    const found = await show(await token({ sub: 'system:serviceaccount:ci:reader' }))
    expect(found?.principal).toMatchObject({ username: 'system:serviceaccount:ci:reader', isServiceAccount: true })
  })

  it('counts an address only where the issuer vouches for it', async () => {
    const address = { email: 'boss@example.org' }
    expect((await show(await token(address)))?.principal).toMatchObject({ username: 'ann', emailVerified: false })
    const claimed = await token({ ...address, email_verified: 'true' })
    expect((await show(claimed))?.principal.emailVerified).toBe(false)
    identity = await identityWith({ username: 'email' })
    await expect(show(await token(address))).rejects.toThrow(TokenRefusedError)
    const proved = await token({ ...address, email_verified: true })
    expect((await show(proved))?.principal.username).toBe('boss@example.org')
  })

  it('has its names where the configuration says, behind the prefix', async () => {
    identity = await identityWith({ username: 'sub', groups: 'realm_access.roles', prefix: 'corp:' })
    const claims = { sub: 'system:admin', realm_access: { roles: ['dev'] }, groups: ['no'], preferred_username: 'x' }
    expect((await show(await token(claims)))?.principal).toMatchObject({
      username: 'corp:system:admin',
      groups: ['corp:dev'],
      isServiceAccount: false,
    })
  })

  it('never brings groups of Kubernetes itself', async () => {
    expect((await show(await token({ groups: ['system:masters', 'dev'] })))?.principal.groups).toEqual(['dev'])
  })

  it('is forgotten with its holder, and then looked at again', async () => {
    const found = await show(await token())
    expect(identity.forget(found!.principal)).toBe(1)
    expect(identity.forget(found!.principal)).toBe(0)
  })

  describe('and the keys of its issuer', () => {
    const askedBy = async (work: () => Promise<unknown>): Promise<number> => {
      const before = issuer.asked
      await work()
      return issuer.asked - before
    }

    it('are asked for once, however many tokens come at once', async () => {
      const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => token({ jti: `${n}` })))
      expect(await askedBy(() => Promise.all(tokens.map((one) => show(one))))).toBe(1)
    })

    it('are asked for again when a new name comes, and then once per 30 s', async () => {
      await show(await token())
      const rotated = await aKey('k2')
      issuer.keys = [rotated.jwk]
      clock.pass(30_000)
      expect(await askedBy(async () => expect(await show(await token({}, {}, rotated))).not.toBeNull())).toBe(1)
      const unknown = await aKey('k3')
      const strange = () =>
        Promise.all([1, 2, 3].map(async (n) => show(await token({ jti: `${n}` }, {}, unknown)).catch(() => null)))
      expect(await askedBy(strange)).toBe(0)
      clock.pass(30_000)
      expect(await askedBy(strange)).toBe(1)
    })

    it('count no longer when they are rotated out, for remembered tokens too', async () => {
      const old = await token()
      await show(old)
      issuer.keys = [rsa.jwk]
      clock.pass(10 * 60_000)
      await expect(show(old)).rejects.toThrow(TokenRefusedError)
      await expect(show(await token())).rejects.toThrow(TokenRefusedError)
      expect(await show(await token({}, {}, rsa))).not.toBeNull()
    })

    it('are never older than 10 minutes: then it is unknown who asks, until the issuer is back', async () => {
      const good = await token()
      await show(good)
      issuer.trouble = (_, response) => response.writeHead(500).end()
      clock.pass(9 * 60_000)
      expect(await show(good)).not.toBeNull()
      clock.pass(60_000)
      await expect(show(good)).rejects.toThrow(IdentityUnavailableError)
      issuer.trouble = undefined
      clock.pass(2000)
      expect(await show(good)).not.toBeNull()
    })

    it.each([
      ['an answer without end', (response: ServerResponse) => response.end('x'.repeat(2 ** 20 + 1))],
      ['a redirect elsewhere', (response: ServerResponse) => response.writeHead(302, { location: '/other' }).end()],
      ['no JSON', (response: ServerResponse) => response.end('<html>')],
      ['a cut connection', (response: ServerResponse) => response.destroy()],
    ])('are not taken from %s', async (_, answer) => {
      issuer.trouble = (_request, response) => answer(response)
      await expect(show(await token())).rejects.toThrow(IdentityUnavailableError)
    })

    it.each([
      ['a shared secret', { kty: 'oct', k: 'c2VjcmV0', kid: 'k1', alg: 'HS256' }],
      ['a key for encryption', () => ({ ...key.jwk, use: 'enc' })],
      ['a key for something else than verifying', () => ({ ...key.jwk, key_ops: ['sign'] })],
    ])('do not count as %s', async (_, jwk) => {
      issuer.keys = [typeof jwk === 'function' ? jwk() : jwk, rsa.jwk]
      await expect(show(await token())).rejects.toThrow(TokenRefusedError)
    })

    it('do not count where two have one name', async () => {
      issuer.keys = [key.jwk, stranger.jwk]
      await expect(show(await token({}, {}, stranger))).rejects.toThrow(TokenRefusedError)
      await expect(show(await token())).rejects.toThrow(TokenRefusedError)
    })

    it('need no name where there is one key', async () => {
      issuer.keys = [key.jwk]
      expect(await show(await token({}, { kid: undefined }))).not.toBeNull()
    })
  })

  it('is for who holds it, also in a browser that looks through the eyes of another', async () => {
    const good = await token()
    const found = await show(good)
    const cookies = identity.viewAs(found!.principal, { username: 'bob', groups: ['admins'] }).cookies
    const again = await show(good, ['Cookie', cookies.map((line) => line.split(';')[0]).join('; ')])
    expect(again?.principal).toEqual(found?.principal)
  })

  it('of an algorithm that is not allowed is refused before any key is asked for', async () => {
    const before = issuer.asked
    for (const alg of ['none', 'HS256', 'HS512', 'RS1', 'ES256K', 'dir', ''])
      await expect(show(`${text({ alg, kid: 'k1' })}.${text(goodClaims())}.AAAA`)).rejects.toMatchObject({
        reason: 'the algorithm is not allowed',
      })
    expect(issuer.asked).toBe(before)
  })

  it.each(['http://issuer.example', 'ftp://127.0.0.1', 'nonsense', 'https://user:pw@issuer.example'])(
    'is not awaited from the issuer %s',
    async (address) => {
      await expect(anIdentity({ bearer: [{ issuer: address, audience: 'a' }] })).rejects.toThrow(
        UnsafeConfigurationError,
      )
    },
  )

  it('says nothing where no way to verify it is configured', async () => {
    await using open = await anIdentity({ proxy: { trustedPeers: ['127.0.0.1'] } })
    const request = aRequest(['Authorization', 'Bearer a.b.c', 'X-Forwarded-User', 'ann'])
    expect((await open.identify(request))?.principal.username).toBe('ann')
  })
})
