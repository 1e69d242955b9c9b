import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type KubeClient } from '#kube'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { IdentityUnavailableError, TokenRefusedError } from './errors.ts'
import { TestClock } from './test/clock.ts'
import { anIdentity, aRequest } from './test/requests.ts'
import type { Identity } from './types.ts'

const second = 1000
const bearer = (token: string) => aRequest(['Authorization', `Bearer ${token}`])

interface Asked {
  readonly token: string
  readonly audiences?: readonly string[]
}

describe('the review of a token', () => {
  const people: Record<string, object> = {
    anns: {
      authenticated: true,
      user: { username: 'ann', groups: ['dev', 'system:authenticated'] },
      audiences: ['fleet'],
    },
    robots: {
      authenticated: true,
      user: { username: 'system:serviceaccount:ci:reader', groups: [] },
      audiences: ['fleet'],
    },
    'for-others': { authenticated: true, user: { username: 'ann' }, audiences: ['elsewhere'] },
    'for-nobody': { authenticated: true, user: { username: 'ann' } },
    scoped: {
      authenticated: true,
      user: { username: 'ann', extra: { 'scopes.authorization.openshift.io': ['user:info'] } },
      audiences: ['fleet'],
    },
    'half-scoped': {
      authenticated: true,
      user: { username: 'ann', extra: { scopes: 'user:info' } },
      audiences: ['fleet'],
    },
    nameless: { authenticated: true, user: {}, audiences: ['fleet'] },
    'text-true': { authenticated: 'true', user: { username: 'ann' }, audiences: ['fleet'] },
    expired: { authenticated: false, user: { username: 'ann' }, error: 'token has expired' },
  }
  const asked: Asked[] = []
  let answer: RequestListener | undefined
  const server = createServer(async (request, response) => {
    if (answer) return answer(request, response)
    let body = ''
    for await (const part of request) body += String(part)
    const review = JSON.parse(body) as { spec: Asked }
    asked.push(review.spec)
    const status = people[review.spec.token] ?? { authenticated: false }
    response.writeHead(201, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, status }))
  })
  let kube: KubeClient
  let clock: TestClock
  let identity: Identity

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    kube = createKubeClient({ server: url, verifyTls: true, credentials: { kind: 'none' } })
  })
  afterAll(async () => {
    await kube[Symbol.asyncDispose]()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  beforeEach(async () => {
    asked.length = 0
    answer = undefined
    clock = new TestClock()
    identity = await anIdentity({ tokenReview: { audiences: ['fleet'] } }, { clock, kube })
  })

  it('names who holds it, as Kubernetes does', async () => {
    const found = await identity.identify(bearer('anns'))
    expect(found).toMatchObject({
      byCookie: false,
      principal: {
        username: 'ann',
        email: '',
        groups: ['dev', 'system:authenticated'],
        isServiceAccount: false,
        method: 'token-review',
      },
    })
    expect((await identity.identify(bearer('robots')))?.principal).toMatchObject({ isServiceAccount: true })
    expect(asked[0]).toEqual({ token: 'anns', audiences: ['fleet'] })
  })

  it('keeps what narrows a token, such as its scopes', async () => {
    const found = await identity.identify(bearer('scoped'))
    expect(found?.principal.extra).toEqual({ 'scopes.authorization.openshift.io': ['user:info'] })
  })

  it.each(['unknown', 'expired', 'for-others', 'for-nobody', 'nameless', 'text-true', 'half-scoped'])(
    'refuses the token %s',
    async (token) => {
      await expect(identity.identify(bearer(token))).rejects.toThrow(TokenRefusedError)
    },
  )

  it('does not compare audiences that nobody asked for', async () => {
    await using open = await anIdentity({ tokenReview: {} }, { clock, kube })
    expect((await open.identify(bearer('for-others')))?.principal.username).toBe('ann')
    expect(asked[0]).toEqual({ token: 'for-others' })
  })

  it('is asked for once at a time, kept for 60 s, and for 5 s where it was refused', async () => {
    await Promise.all(Array.from({ length: 30 }, () => identity.identify(bearer('anns'))))
    clock.pass(59 * second)
    await identity.identify(bearer('anns'))
    expect(asked).toHaveLength(1)
    clock.pass(second)
    await identity.identify(bearer('anns'))
    expect(asked).toHaveLength(2)
    const refused = () => identity.identify(bearer('unknown')).catch(() => null)
    await Promise.all([refused(), refused()])
    clock.pass(5 * second - 1)
    await refused()
    expect(asked).toHaveLength(3)
    clock.pass(1)
    await refused()
    expect(asked).toHaveLength(4)
  })

  it.each([
    ['forbids it', 403],
    ['is in trouble', 500],
    ['does not serve it', 404],
  ])('leaves it open who asks when the API %s', async (_, status) => {
    answer = (_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    await expect(identity.identify(bearer('anns'))).rejects.toThrow(IdentityUnavailableError)
    answer = undefined
    clock.pass(second)
    expect((await identity.identify(bearer('anns')))?.principal.username).toBe('ann')
  })

  it('does not outlive what is known by more than its time, when the API fails', async () => {
    await identity.identify(bearer('anns'))
    answer = (_request, response) => response.writeHead(403).end('{}')
    clock.pass(60 * second)
    await expect(identity.identify(bearer('anns'))).rejects.toThrow(IdentityUnavailableError)
  })

  it('does not bring back a token that was signed out', async () => {
    const found = await identity.identify(bearer('anns'))
    const ended: string[] = []
    identity.onEnded((id) => ended.push(id))
    await identity.signOut(bearer('anns'))
    expect(ended).toEqual([found?.session?.id])
    await expect(identity.identify(bearer('anns'))).rejects.toThrow(TokenRefusedError)
    clock.pass(3600 * second)
    await expect(identity.identify(bearer('anns'))).rejects.toThrow(TokenRefusedError)
    expect(await identity.identify(bearer('robots'))).not.toBeNull()
  })

  it('is forgotten with who holds it', async () => {
    const found = await identity.identify(bearer('anns'))
    expect(identity.forget(found!.principal)).toBe(1)
    await identity.identify(bearer('anns'))
    expect(asked).toHaveLength(2)
  })

  it('is not asked for a token of a configured issuer, nor for one that is too large', async () => {
    const issuer = 'https://issuer.example'
    await using both = await anIdentity({ tokenReview: {}, bearer: [{ issuer, audience: 'fleet' }] }, { clock, kube })
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const forged = `${part({ alg: 'none' })}.${part({ iss: issuer, aud: 'fleet', sub: 'ann' })}.AAAA`
    await expect(both.identify(bearer(forged))).rejects.toThrow(TokenRefusedError)
    await expect(both.identify(bearer('x'.repeat(16 * 1024 + 1)))).rejects.toThrow(TokenRefusedError)
    expect(asked).toEqual([])
    expect((await both.identify(bearer('anns')))?.principal.method).toBe('token-review')
  })
})

describe('the embedded API', () => {
  it('reviews the tokens it gave out', async () => {
    await using api = await ApiServer.open({ storage: { kind: 'memory' } })
    const tokens = [
      { token: 'hubs-own', user: 'hub', groups: ['system:masters'] },
      { token: 'of-ann', user: 'ann', groups: ['dev'] },
    ]
    await using listener = await listenApi({ mounts: new Map([['', api]]), tokens })
    const access = { server: listener.url, ca: listener.caPem, verifyTls: true }
    await using kube = createKubeClient({ ...access, credentials: { kind: 'token', token: 'hubs-own' } })
    await using identity = await anIdentity({ tokenReview: {} }, { kube })
    const found = await identity.identify(bearer('of-ann'))
    expect(found?.principal).toMatchObject({ username: 'ann', groups: expect.arrayContaining(['dev']) })
    await expect(identity.identify(bearer('made-up'))).rejects.toThrow(TokenRefusedError)
  })
})

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

describe.skipIf(skip)(`a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let real: RealApiServer
  let kube: KubeClient
  beforeAll(async () => {
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    real = started
    kube = createKubeClient(real.access)
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    await real?.stop()
  })

  it('vouches for tokens of its service accounts, for the audience they were made for', async () => {
    const account = '/api/v1/namespaces/default/serviceaccounts'
    await kube.request('POST', account, { body: { metadata: { name: 'reader' } } })
    const tokenFor = async (audience: string): Promise<string> => {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience] } }
      const made = await kube.request('POST', `${account}/reader/token`, { body })
      return (made as { status: { token: string } }).status.token
    }
    await using identity = await anIdentity({ tokenReview: { audiences: ['fleet'] } }, { kube })
    const found = await identity.identify(bearer(await tokenFor('fleet')))
    expect(found?.principal).toMatchObject({
      username: 'system:serviceaccount:default:reader',
      isServiceAccount: true,
      groups: expect.arrayContaining(['system:serviceaccounts', 'system:serviceaccounts:default']),
    })
    await expect(identity.identify(bearer(await tokenFor('elsewhere')))).rejects.toThrow(TokenRefusedError)
    await expect(identity.identify(bearer(`${await tokenFor('fleet')}x`))).rejects.toThrow(TokenRefusedError)
  })
})
