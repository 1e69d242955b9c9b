import { Agent, request as httpsRequest } from 'node:https'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noRealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { listenApi } from './listen.ts'
import { ApiServer } from './server.ts'
import { CLIENT, type ClientPair, SERVER, TestAuthority, type Wanted } from './test/certificates.ts'
import { aServer } from './test/server.ts'

const TOKEN = 'admin-token'
const WHO = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

interface Target {
  readonly url: string
  readonly ca: string
  readonly token: string
  /** what is answered to who names nobody: the original takes them for anonymous, who may not ask; we know no anonymous people */
  readonly nameless: number
  stop(): Promise<void>
}

interface Shown {
  readonly pair?: ClientPair | undefined
  readonly token?: string
  readonly agent?: Agent
}

interface Said {
  readonly code: number
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into arbitrary JSON
  readonly body: any
}

function ask({ url, ca }: Target, method: string, path: string, shown: Shown, body?: object): Promise<Said> {
  const { pair, token, agent } = shown
  const headers = { ...(token && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const call = httpsRequest(url + path, { method, ca, headers, agent: agent ?? false, ...pair }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part) => {
        text += part
      })
      response.on('end', () => resolve({ code: response.statusCode ?? 0, body: text ? JSON.parse(text) : undefined }))
    })
    call.on('error', reject)
    call.end(body && JSON.stringify(body))
  })
}

/** Who the server takes the caller for; a number: it refuses. */
async function whoami(target: Target, shown: Shown): Promise<unknown> {
  const { code, body } = await ask(target, 'POST', WHO, shown, {})
  return code === 201 ? body.status.userInfo : code
}

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

const targets: readonly { name: string; skip: boolean; start: (clientCa: string) => Promise<Target> }[] = [
  {
    name: 'embedded',
    skip: false,
    start: async (clientCa) => {
      const server = await ApiServer.open({ storage: { kind: 'memory' }, defaultRoles: true })
      const tokens = [{ token: TOKEN, user: 'admin', groups: ['system:masters'] }]
      const listener = await listenApi({ mounts: new Map([['', server]]), tokens, clientCa })
      return {
        url: listener.url,
        ca: listener.caPem,
        token: TOKEN,
        nameless: 401,
        stop: async () => {
          await listener[Symbol.asyncDispose]()
          await server[Symbol.asyncDispose]()
        },
      }
    },
  },
  {
    name: `real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`,
    skip,
    start: async (clientCa) => {
      const started = await startRealApiServer(undefined, { clientCa })
      if (started?.access.credentials.kind !== 'token') throw new Error('there is no real kube-apiserver here')
      const { server: url, ca = '', credentials } = started.access
      return { url, ca, token: credentials.token, nameless: 403, stop: () => started.stop() }
    },
  },
]

describe.each(targets)('who calls, $name', ({ skip, start }) => {
  describe.skipIf(skip)('is known', () => {
    let target: Target
    let authority: TestAuthority
    let stranger: TestAuthority
    beforeAll(async () => {
      authority = await TestAuthority.create('clients')
      stranger = await TestAuthority.create('clients') // of the same name, with another key
      target = await start(authority.pem)
    })
    afterAll(() => target?.stop())

    const certificates: readonly [what: string, wanted: Wanted, who: string[] | number][] = [
      ['with its groups', { subject: 'CN=ann, O=dev, O=ops' }, ['ann', 'dev', 'ops', 'system:authenticated']],
      ['without groups', { subject: 'CN=ann' }, ['ann', 'system:authenticated']],
      ['with other words beside', { subject: 'C=CH, O=dev, OU=none, CN=ann' }, ['ann', 'dev', 'system:authenticated']],
      ['of letters beyond ASCII', { subject: 'CN=Zoë, O=Büro' }, ['Zoë', 'Büro', 'system:authenticated']],
      [
        'of a service account',
        { subject: 'CN=system:serviceaccount:a:b' },
        ['system:serviceaccount:a:b', 'system:authenticated'],
      ],
      ['for any use', { subject: 'CN=ann', usages: [] }, ['ann', 'system:authenticated']],
      ['for servers as well', { subject: 'CN=ann', usages: [SERVER, CLIENT] }, ['ann', 'system:authenticated']],
      ['that names nobody', { subject: 'O=system:masters' }, 0],
      ['that has ended', { subject: 'CN=ann, O=system:masters', days: [-2, -1] }, 401],
      ['that has not begun', { subject: 'CN=ann, O=system:masters', days: [1, 2] }, 401],
      ['of a server', { subject: 'CN=ann, O=system:masters', usages: [SERVER] }, 401],
    ]
    it.each(certificates)('by a certificate %s', async (_, wanted, who) => {
      const pair = await authority.sign(wanted)
      const found = await whoami(target, { pair })
      if (typeof who === 'number') expect(found).toBe(who || target.nameless)
      else
        expect(found).toMatchObject({
          username: who[0],
          groups: who.slice(1),
          extra: { 'authentication.kubernetes.io/credential-id': [expect.stringMatching(/^X509SHA256=[0-9a-f]{64}$/)] },
        })
    })

    it('by no certificate of another CA, however it is called; a token counts beside it', async () => {
      const pair = await stranger.sign({ subject: 'CN=ann, O=system:masters' })
      expect(await whoami(target, { pair })).toBe(401)
      expect(await whoami(target, { pair, token: target.token })).toMatchObject({ username: 'admin' })
      const own = await authority.sign({ subject: 'CN=ann' })
      expect(await whoami(target, { pair: own, token: target.token })).toMatchObject({ username: 'ann' })
    })

    it('by a certificate until it ends, on a connection that stays open as well', async () => {
      const endsMs = Math.ceil(Date.now() / 1000) * 1000 + 2000
      const pair = await authority.sign({ subject: 'CN=ann', endsMs })
      const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: target.ca, ...pair })
      expect(await whoami(target, { agent })).toMatchObject({ username: 'ann' })
      await expect.poll(() => whoami(target, { agent }), { interval: 200 }).toBe(401)
      expect(Date.now()).toBeGreaterThanOrEqual(endsMs)
      agent.destroy()
    })

    const secret = (id: string, data: Readonly<Record<string, string>>, type = 'bootstrap.kubernetes.io/token') => ({
      metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
      type,
      stringData: {
        'token-id': id,
        'token-secret': '0123456789abcdef',
        'usage-bootstrap-authentication': 'true',
        ...data,
      },
    })
    const later = new Date(Date.now() + 3_600_000).toISOString()
    const tokens: readonly [what: string, secret: ReturnType<typeof secret>, groups: string[] | number][] = [
      ['without an end', secret('aaaaa1', {}), ['system:bootstrappers', 'system:authenticated']],
      [
        'with groups of its own',
        secret('aaaaa2', { 'auth-extra-groups': 'system:bootstrappers:managedcluster,system:bootstrappers:b' }),
        [
          'system:bootstrappers',
          'system:bootstrappers:b',
          'system:bootstrappers:managedcluster',
          'system:authenticated',
        ],
      ],
      ['before its end', secret('aaaaa3', { expiration: later }), ['system:bootstrappers', 'system:authenticated']],
      ['after its end', secret('aaaaa4', { expiration: '2020-01-01T00:00:00Z' }), 401],
      ['with an end nobody can read', secret('aaaaa5', { expiration: 'tomorrow' }), 401],
      ['for signing alone', secret('aaaaa6', { 'usage-bootstrap-authentication': 'false' }), 401],
      ['with a group of others', secret('aaaaa7', { 'auth-extra-groups': 'system:masters' }), 401],
      ['with another id inside', secret('aaaaa8', { 'token-id': 'bbbbb8' }), 401],
      ['of another type', secret('aaaaa9', {}, 'Opaque'), 401],
      ['of another secret', secret('aaaab0', { 'token-secret': '0123456789abcdee' }), 401],
    ]
    it.each(tokens)('by a bootstrap token %s', async (_, kept, groups) => {
      const path = '/api/v1/namespaces/kube-system/secrets'
      const id = kept.metadata.name.slice('bootstrap-token-'.length)
      const token = `${id}.0123456789abcdef`
      const made = await ask(target, 'POST', path, { token: target.token }, kept)
      expect(made.code).toBe(201)
      if (typeof groups === 'number') {
        // The original follows Secrets by a watch: once it knows a later one, it knows this one.
        const mark = secret(id.replace('aaaa', 'mark').slice(0, 6), {})
        await ask(target, 'POST', path, { token: target.token }, mark)
        const known = `${mark.metadata.name.slice('bootstrap-token-'.length)}.0123456789abcdef`
        await expect.poll(() => whoami(target, { token: known })).toMatchObject({ groups: expect.any(Array) })
        expect(await whoami(target, { token })).toBe(groups)
      } else await expect.poll(() => whoami(target, { token })).toEqual({ username: `system:bootstrap:${id}`, groups })
    })

    it('by a token of a service account, with its namespace and the id of the token', async () => {
      const admin = { token: target.token }
      const accounts = '/api/v1/namespaces/default/serviceaccounts'
      const account = await ask(target, 'POST', accounts, admin, { metadata: { name: 'robot' } })
      const issued = await ask(target, 'POST', `${accounts}/robot/token`, admin, { spec: { expirationSeconds: 600 } })
      expect(issued.code).toBe(201)
      const { token } = issued.body.status
      expect(await whoami(target, { token })).toEqual({
        username: 'system:serviceaccount:default:robot',
        uid: account.body.metadata.uid,
        groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
        extra: { 'authentication.kubernetes.io/credential-id': [expect.stringMatching(/^JTI=[0-9a-f-]{36}$/)] },
      })
      expect(await whoami(target, { token: `${token.slice(0, -4)}AAAA` })).toBe(401)
    })
  })
})

describe('tokens', () => {
  it("that nobody gave out are nobody's, whatever they look like", async () => {
    const server = await aServer()
    await server.tokens.issue({ name: 'robot', namespace: 'default' }, {}, false).catch(() => undefined)
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.stringMatching(/^[a-z0-9]{6}\.[a-z0-9]{16}$/),
          fc.stringMatching(/^[\w-]{1,20}\.[\w-]{1,20}\.[\w-]{0,20}$/),
        ),
        async (text) => {
          expect(server.tokens.holder(text)).toBeUndefined()
          expect(server.bootstrapTokens.holder(text)).toBeUndefined()
        },
      ),
    )
  })
})
