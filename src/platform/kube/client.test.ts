import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { SilentProxy } from '../../../test/silent-proxy.ts'
import { slowness } from '../runtime/testing/slowness.ts'
import { createKubeClient } from './client.ts'
import { KubeError } from './errors.ts'
import { namespaces, routes, secrets, subscriptions, whole } from './resources.ts'
import {
  type Identity,
  identity,
  json,
  ManualClock,
  type Script,
  type ScriptedServer,
  scriptedServer,
  status,
  until,
} from './testing/scripted-server.ts'
import type { KubeClientOptions } from './transport.ts'
import type { ClusterAccess, KubeClient } from './types.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const item of open.splice(0).reverse()) await item[Symbol.asyncDispose]()
})

let tls: Identity
beforeAll(async () => {
  tls = await identity()
})

async function serve(script: Script, secure?: Parameters<typeof scriptedServer>[1]): Promise<ScriptedServer> {
  const server = await scriptedServer(script, secure)
  open.push(server)
  return server
}

function client(access: ClusterAccess, options: KubeClientOptions = {}): KubeClient {
  const made = createKubeClient(access, options)
  open.push(made)
  return made
}

async function failure(work: Promise<unknown>): Promise<KubeError> {
  const error = await work.then(
    () => undefined,
    (caught) => caught,
  )
  expect(error).toBeInstanceOf(KubeError)
  return error as KubeError
}

const secret = (name: string) => ({ metadata: { name, namespace: 'a', resourceVersion: '1' } })
const parameters = (path: string | undefined) => new URL(path ?? '', 'http://x').searchParams

describe('reading', () => {
  it('pages through a list at one version and says how many are left', async () => {
    const server = await serve((request, response) => {
      const from = Number(parameters(request.url).get('continue') ?? 0)
      const more = from < 4
      const metadata = {
        resourceVersion: '7',
        ...(more ? { continue: String(from + 2), remainingItemCount: 4 - from } : {}),
      }
      json(response, 200, { metadata, items: [secret(`s${from}`), secret(`s${from + 1}`)] })
    })
    const pages = []
    for await (const page of client(server.access()).list(secrets, { pageSize: 2, labelSelector: 'a=b,c in (d)' }))
      pages.push(page)
    expect(pages.map((page) => [page.items.length, page.resourceVersion, page.remaining])).toEqual([
      [2, '7', 4],
      [2, '7', 2],
      [2, '7', undefined],
    ])
    expect(parameters(server.requests[0]?.slice(4)).get('labelSelector')).toBe('a=b,c in (d)')
    expect(parameters(server.requests[0]?.slice(4)).get('limit')).toBe('2')
  })

  it('starts a whole list again when its version expires between pages, without giving an object twice', async () => {
    let expired = false
    const server = await serve((request, response) => {
      const next = parameters(request.url).get('continue')
      if (next && !expired) {
        expired = true
        return status(response, 410, 'Expired', 'the provided continue parameter is too old')
      }
      json(
        response,
        200,
        next ? { metadata: {}, items: [secret('b')] } : { metadata: { continue: 'x' }, items: [secret('a')] },
      )
    })
    const items = await client(server.access()).listAll(secrets)
    expect(items.map((item) => item.metadata.name)).toEqual(['a', 'b'])
    expect(server.requests).toHaveLength(4)
  })

  it('tells a reader of pages that the version expired instead of starting over in silence', async () => {
    const server = await serve((request, response) =>
      parameters(request.url).has('continue')
        ? status(response, 410, 'Expired')
        : json(response, 200, { metadata: { continue: 'x' }, items: [secret('a')] }),
    )
    const seen: string[] = []
    const error = await failure(
      (async () => {
        for await (const page of client(server.access()).list(secrets))
          seen.push(...page.items.map((item) => item.metadata.name))
      })(),
    )
    expect(error.reason).toBe('expired')
    expect(seen).toEqual(['a'])
  })

  it('asks for smaller pages when one is larger than it takes', async () => {
    const server = await serve((request, response) => {
      const query = parameters(request.url)
      const from = Number(query.get('continue') ?? 0)
      const to = Math.min(10, from + Number(query.get('limit')))
      const items = Array.from({ length: to - from }, (_, n) => ({
        ...secret(`s${from + n}`),
        data: { x: 'y'.repeat(15_000) },
      }))
      json(response, 200, { metadata: to < 10 ? { continue: String(to) } : {}, items })
    })
    const items = await client(server.access(), { maxAnswerBytes: 50_000 }).listAll(secrets, { pageSize: 10 })
    expect(items.map((item) => item.metadata.name)).toEqual(Array.from({ length: 10 }, (_, n) => `s${n}`))
  })

  it('goes back to larger pages after some that were larger than a list takes, as whoever reads it says', async () => {
    const limits: number[] = []
    const isLarge = (n: number) => n >= 20 && n < 30
    const server = await serve((request, response) => {
      const query = parameters(request.url)
      const from = Number(query.get('continue') ?? 0)
      limits.push(Number(query.get('limit')))
      const to = Math.min(500, from + Number(query.get('limit')))
      const items = Array.from({ length: to - from }, (_, n) => ({
        ...secret(`s${from + n}`),
        data: { x: 'y'.repeat(isLarge(from + n) ? 15_000 : 1) },
      }))
      json(response, 200, { metadata: to < 500 ? { continue: String(to) } : {}, items })
    })
    let last = 10
    const items: string[] = []
    const pages = client(server.access()).list(secrets, {
      maxPageBytes: 50_000,
      pageSize: async () => Math.min(100, 4 * last),
    })
    for await (const page of pages) {
      last = page.items.length
      items.push(...page.items.map(({ metadata }) => metadata.name))
    }
    expect(items).toEqual(Array.from({ length: 500 }, (_, n) => `s${n}`))
    expect(Math.min(...limits)).toBeLessThan(4)
    expect(limits.slice(-4)).toContain(100)
    expect(limits.length).toBeLessThan(40)
  })

  it('gives undefined for an object that is not there, and an empty list for null items', async () => {
    const server = await serve((request, response) =>
      request.url?.includes('/secrets/')
        ? status(response, 404, 'NotFound', 'secrets "x" not found')
        : json(response, 200, { kind: 'List', metadata: {}, items: null }),
    )
    const kube = client(server.access())
    expect(await kube.get(secrets, { name: 'x', namespace: 'a' })).toBeUndefined()
    expect(await kube.listAll(secrets)).toEqual([])
    expect(server.requests[0]).toBe('GET /api/v1/namespaces/a/secrets/x')
  })

  it('does not take an empty field of another answer for an empty list', async () => {
    const answers = [{ items: [] }, { kind: 'Status', items: null }, { kind: 'Status', status: 'Success' }, [], null]
    const server = await serve((_, response) => json(response, 200, answers.shift()))
    while (answers.length > 0)
      await expect(client(server.access()).listAll(secrets)).rejects.toMatchObject({ reason: 'protocol' })
  })

  it('ends a list that never does', async () => {
    const again = await serve((_, response) =>
      json(response, 200, { metadata: { continue: 'x' }, items: [secret('a')] }),
    )
    expect(await failure(client(again.access()).listAll(secrets))).toMatchObject({
      reason: 'protocol',
      message: expect.stringMatching(/the same page comes again and again/) as string,
    })
    expect(again.requests).toHaveLength(2)
    let page = 0
    const many = Array.from({ length: 60_000 }, () => ({ metadata: {} }))
    const ever = await serve((_, response) => json(response, 200, { metadata: { continue: `${page++}` }, items: many }))
    expect(await failure(client(ever.access()).listAll(secrets))).toMatchObject({
      reason: 'protocol',
      message: expect.stringMatching(/more than 500000 objects/) as string,
    })
    expect(page).toBeLessThan(11)
  })

  it.each([
    ['leads back to an earlier page', (page: number) => `${(page + 1) % 7}`, 1, /the same page comes again/, 8],
    ['brings page after page without an object', (page: number) => `${page + 1}`, 0, /100 pages in a row hold no/, 100],
    ['brings new pages for ever', (page: number) => `${page + 1}`, 1, /more than 10000 pages/, 10_000],
  ])('ends a list that %s', async (_, nextOf, objects, message, requests) => {
    const server = await serve((request, response) => {
      const page = Number(new URL(`http://x${request.url}`).searchParams.get('continue') ?? 0)
      json(response, 200, {
        kind: 'SecretList',
        metadata: { continue: nextOf(page) },
        items: Array(objects).fill({ metadata: {} }),
      })
    })
    const asking = client(server.access(), { qps: 1e6, burst: 1e6 })
    expect(await failure(asking.listAll(secrets))).toMatchObject({
      reason: 'protocol',
      message: expect.stringMatching(message) as string,
    })
    expect(server.requests).toHaveLength(requests)
  })

  it('goes on after pages without an object', async () => {
    const server = await serve((request, response) => {
      const page = Number(new URL(`http://x${request.url}`).searchParams.get('continue') ?? 0)
      const next = page < 99 ? `${page + 1}` : ''
      json(response, 200, { kind: 'SecretList', metadata: { continue: next }, items: page === 99 ? [secret('a')] : [] })
    })
    expect(await client(server.access()).listAll(secrets)).toHaveLength(1)
  })

  it('does not take another answer for "not served"', async () => {
    const answers = [{}, null, { kind: 'Status' }, { kind: 'APIResourceList', resources: 5 }, '']
    const server = await serve((_, response) => json(response, 200, answers.shift()))
    while (answers.length > 0)
      expect(await failure(client(server.access()).serves(subscriptions))).toMatchObject({ reason: 'protocol' })
  })

  it('keeps the path of the server address before every path', async () => {
    const server = await serve((_, response) => json(response, 200, { kind: 'List', items: [] }))
    await client(server.access({ server: `${server.url}/k8s/clusters/c1/` })).listAll(subscriptions, {
      namespace: 'a/b',
    })
    expect(server.requests[0]).toMatch(
      /^GET \/k8s\/clusters\/c1\/apis\/operators.coreos.com\/v1alpha1\/namespaces\/a%2Fb\/subscriptions\?/,
    )
  })

  it('unpacks compressed answers and asks for them only where that is wanted', async () => {
    const asked: (string | undefined)[] = []
    const server = await serve((request, response) => {
      asked.push(request.headers['accept-encoding'] as string | undefined)
      const body = gzipSync(JSON.stringify({ metadata: {}, items: [secret('a')] }))
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(body)
    })
    expect(await client(server.access(), { gzip: true }).listAll(secrets)).toHaveLength(1)
    expect(await client(server.access()).listAll(secrets)).toHaveLength(1)
    expect(asked).toEqual(['gzip', undefined])
  })

  it('bounds what a small compressed answer may grow to', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(5_000_000)))
    })
    const error = await failure(client(server.access(), { maxAnswerBytes: 100_000 }).request('GET', '/x'))
    expect(error).toMatchObject({ reason: 'protocol' })
    expect(error.message).toContain('larger')
  })
})

describe('trouble', () => {
  it.each([
    [403, 'Forbidden', 'forbidden'],
    [401, 'Unauthorized', 'unauthorized'],
    [404, 'NotFound', 'not_found'],
    [409, 'Conflict', 'conflict'],
    [409, 'AlreadyExists', 'already_exists'],
    [410, 'Expired', 'expired'],
    [422, 'Invalid', 'invalid'],
    [500, 'InternalError', 'server'],
    [503, 'ServiceUnavailable', 'server'],
  ])('%i %s is told as %s with the words of the API', async (code, apiReason, reason) => {
    const server = await serve((_, response) => status(response, code, apiReason, 'as the API says'))
    const error = await failure(client(server.access()).listAll(secrets))
    expect(error).toMatchObject({ reason, httpStatus: code, apiMessage: 'as the API says', code: `kube_${reason}` })
    expect(error.message).toContain('as the API says')
  })

  it('tells the words of a proxy that answers in HTML', async () => {
    const server = await serve((_, response) => {
      response.writeHead(502, { 'content-type': 'text/html' }).end('<html><body><h1>Bad Gateway</h1></body></html>')
    })
    expect((await failure(client(server.access()).ping())).message).toContain('Bad Gateway')
  })

  it('calls an answer that is no JSON, and one that is no list, what they are', async () => {
    const server = await serve((request, response) => {
      if (request.url?.startsWith('/api/v1/secrets')) response.end('hello')
      else json(response, 200, ['hello'])
    })
    const kube = client(server.access())
    expect(await failure(kube.listAll(secrets))).toMatchObject({ reason: 'protocol' })
    expect(await failure(kube.listAll(whole(namespaces)))).toMatchObject({ reason: 'protocol' })
  })

  it('gives up an answer that hangs in the middle of its body', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"items":[')
    })
    const error = await failure(client(server.access(), { timeoutMs: 100 }).listAll(secrets))
    expect(error).toMatchObject({ reason: 'timeout', retryable: true })
  })

  it('gives up a server that accepts and never answers', async () => {
    const server = await serve(() => {})
    expect(await failure(client(server.access(), { timeoutMs: 80 }).ping())).toMatchObject({ reason: 'timeout' })
  })

  it('reads on another connection when the one that served before went silent, within the same call', async () => {
    const server = await serve((_, response) => json(response, 200, { items: [secret('a')] }))
    const proxy = await SilentProxy.before(Number(new URL(server.access().server).port))
    open.push(proxy)
    const access = { ...server.access(), server: `http://127.0.0.1:${proxy.port}` }
    const kube = client(access, { timeoutMs: 9_000 })
    expect(await kube.listAll(secrets)).toHaveLength(1)
    expect(proxy.silence()).toBe(1)
    const startedAt = performance.now()
    expect(await kube.listAll(secrets)).toHaveLength(1)
    expect((performance.now() - startedAt) / slowness).toBeLessThan(7_500)
    expect(proxy.taken).toBe(2)
    // The dead one is not met again.
    const againAt = performance.now()
    expect(await kube.listAll(secrets)).toHaveLength(1)
    expect((performance.now() - againAt) / slowness).toBeLessThan(2_700)
  })

  it('takes the answer of a server that is only slow, whichever request it answers', async () => {
    let delayMs = 0
    let asked = 0
    const server = await serve((_, response) => {
      asked++
      setTimeout(() => json(response, 200, { items: [secret('a')] }), delayMs)
    })
    const kube = client(server.access(), { timeoutMs: 4_500 })
    expect(await kube.listAll(secrets)).toHaveLength(1)
    delayMs = 2_700
    expect(await kube.listAll(secrets)).toHaveLength(1)
    expect(asked).toBe(3)
  })

  it('tells a time-out when the second connection is silent too, at the deadline of the call', async () => {
    let silent = false
    const server = await serve((_, response) => {
      if (!silent) json(response, 200, { items: [secret('a')] })
    })
    const kube = client(server.access(), { timeoutMs: 3_000 })
    await kube.listAll(secrets)
    silent = true
    const startedAt = performance.now()
    expect(await failure(kube.listAll(secrets))).toMatchObject({ reason: 'timeout' })
    expect((performance.now() - startedAt) / slowness).toBeLessThan(8_000)
    expect(server.requests).toHaveLength(3)
  })

  it('reads once more when a connection breaks in the middle of a page, and only once', async () => {
    let left = 1
    const server = await serve((_, response) => {
      if (left-- > 0) return half(response)
      json(response, 200, { items: [secret('a')] })
    })
    const kube = client(server.access())
    expect(await kube.listAll(secrets)).toHaveLength(1)
    left = 5
    expect(await failure(kube.listAll(secrets))).toMatchObject({ reason: 'unreachable' })
    expect(server.requests).toHaveLength(4)
  })

  it('does not repeat a write when the connection breaks', async () => {
    const server = await serve((_, response) => half(response))
    await failure(client(server.access()).create(secrets, secret('a')))
    expect(server.requests).toHaveLength(1)
  })

  it('says that nothing listens, and that a name is unknown', async () => {
    const server = await scriptedServer(() => {})
    const access = server.access()
    await server[Symbol.asyncDispose]()
    expect(await failure(client(access).ping())).toMatchObject({ reason: 'unreachable' })
    const nowhere = { ...access, server: 'https://no-such-host.invalid:6443' }
    expect(await failure(client(nowhere).ping())).toMatchObject({ reason: 'unreachable' })
  })

  it('waits as long as a loaded server asks and then succeeds', async () => {
    let refusals = 2
    const server = await serve((_, response) => {
      if (refusals-- > 0) return status(response, 429, 'TooManyRequests', 'slow down', { 'retry-after': '2' })
      json(response, 200, { kind: 'List', items: [] })
    })
    const clock = new ManualClock()
    const list = client(server.access(), { clock, random: () => 0 }).listAll(secrets)
    for (let n = 0; n < 2; n++) {
      await until(() => clock.waits.includes(2000))
      clock.advance(2000)
    }
    expect(await list).toEqual([])
  })

  it('does not wait for longer than the deadline allows: it says how long the server asked', async () => {
    const server = await serve((_, response) => status(response, 429, 'TooManyRequests', '', { 'retry-after': '600' }))
    const error = await failure(client(server.access()).listAll(secrets))
    expect(error).toMatchObject({ reason: 'throttled', retryAfterMs: 600_000 })
    expect(server.requests).toHaveLength(1)
  })

  it('ends at once with the reason of its caller', async () => {
    const server = await serve(() => {})
    const stop = new AbortController()
    const list = client(server.access()).listAll(secrets, { signal: stop.signal })
    await until(() => server.requests.length > 0)
    stop.abort(new Error('enough'))
    await expect(list).rejects.toThrow('enough')
  })

  it('stops asking a cluster that failed five times in a row', async () => {
    const server = await serve((_, response) => status(response, 500, 'InternalError'))
    const kube = client(server.access())
    for (let n = 0; n < 5; n++) await failure(kube.ping())
    expect(await failure(kube.ping())).toMatchObject({
      reason: 'breaker_open',
      code: 'kube_server',
      message: expect.stringMatching(/^the cluster's API failed \(500\)/) as string,
    })
    expect(server.requests).toHaveLength(5)
  })

  it('never tells a token', async () => {
    const token = 'very-secret-token'
    const server = await serve((_, response) => status(response, 401, 'Unauthorized'))
    const error = await failure(client(server.access({ credentials: { kind: 'token', token } })).ping())
    expect(JSON.stringify([error, error.message, String(error.stack)])).not.toContain(token)
  })

  it('refuses addresses that would send credentials in the clear', () => {
    const access = { server: 'http://10.0.0.1:8080', verifyTls: true, credentials: { kind: 'none' } } as const
    expect(() => createKubeClient(access)).toThrow(/in the clear/)
    const local = { ...access, server: 'http://127.0.0.1:8080' }
    expect(() => createKubeClient(local)).not.toThrow()
    expect(() => createKubeClient({ ...local, proxyUrl: 'http://10.0.0.2' })).toThrow(/in the clear/)
    for (const server of ['http://127.0.0.1.west.example', 'http://127.west.example', 'HTTP://10.0.0.1'])
      expect(() => createKubeClient({ ...access, server }), server).toThrow(/in the clear/)
    expect(() => createKubeClient({ ...access, server: 'nowhere' })).toThrow(/no address/)
    expect(() => createKubeClient({ ...access, server: 'https://u:p@host' })).toThrow(/scheme, host, port and path/)
  })
})

function half(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"items":[', () => response.socket?.destroy())
}

describe('credentials', () => {
  it('come from a file, which is read again when the server refuses the old token', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kube-token-'))
    open.push({ [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) })
    const path = join(dir, 'token')
    await writeFile(path, 'old\n')
    const server = await serve((request, response) =>
      request.headers.authorization === 'Bearer new' ? json(response, 200, {}) : status(response, 401, 'Unauthorized'),
    )
    const kube = client(server.access({ credentials: { kind: 'tokenFile', path } }))
    expect(await failure(kube.ping())).toMatchObject({ reason: 'unauthorized' })
    await writeFile(path, 'new\n')
    await kube.ping()
    await rm(path)
    await kube.ping()
  })

  it('come from a command, once for many calls, and again after they expire', async () => {
    const clock = new ManualClock()
    const server = await serve((request, response) => json(response, 200, { token: request.headers.authorization }))
    const script = `
      const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO)
      const expirationTimestamp = new Date(${clock.now()} + 60000).toISOString()
      console.log(JSON.stringify({ kind: 'ExecCredential', apiVersion: info.apiVersion,
        status: { token: process.env.WHO + process.hrtime.bigint(), expirationTimestamp } }))`
    const credentials = { kind: 'exec', command: process.execPath, args: ['-e', script], env: { WHO: 'me' } } as const
    const kube = client(server.access({ credentials }), { clock, timeoutMs: 1e9 })
    const [one, two] = await Promise.all([kube.request('GET', '/a'), kube.request('GET', '/b')])
    expect(one).toEqual(two)
    expect(JSON.stringify(one)).toContain('Bearer me')
    clock.advance(55_000)
    expect(await kube.request('GET', '/c')).not.toEqual(one)
  })

  it('that a command cannot give are told with what it printed, or how to install it', async () => {
    const server = await serve((_, response) => json(response, 200, {}))
    const exec = { kind: 'exec', env: {}, installHint: 'Get it from the shop.' } as const
    const script = 'console.error("no session, sign in first"); process.exit(3)'
    const refused = client(server.access({ credentials: { ...exec, command: process.execPath, args: ['-e', script] } }))
    expect((await failure(refused.ping())).message).toContain('no session, sign in first')
    const missing = client(server.access({ credentials: { ...exec, command: 'no-such-plugin', args: [] } }))
    expect((await failure(missing.ping())).message).toContain('Get it from the shop.')
    const silent = client(server.access({ credentials: { ...exec, command: process.execPath, args: ['-e', ''] } }))
    expect(await failure(silent.ping())).toMatchObject({ reason: 'unauthorized' })
  })

  it('travel as a client certificate', async () => {
    const server = await serve(
      (request, response) => {
        const peer = (
          request.socket as unknown as { getPeerCertificate(): { subject?: { CN?: string } } }
        ).getPeerCertificate()
        json(response, 200, { who: peer.subject?.CN })
      },
      { ...tls, clientCa: tls.ca },
    )
    const credentials = { kind: 'certificate', cert: tls.cert, key: tls.key } as const
    expect(await client(server.access({ credentials })).request('GET', '/')).toEqual({ who: 'test' })
    expect(await failure(client(server.access()).ping())).toMatchObject({
      reason: expect.stringMatching(/tls|unreachable/),
    })
  })

  it('travel as name and password', async () => {
    const server = await serve((request, response) => json(response, 200, { got: request.headers.authorization }))
    const credentials = { kind: 'basic', username: 'u', password: 'p' } as const
    expect(await client(server.access({ credentials })).request('GET', '/')).toEqual({ got: 'Basic dTpw' })
  })
})

describe('TLS', () => {
  const answer: Script = (_, response) => json(response, 200, { kind: 'List', items: [] })

  it('is verified against the given CA', async () => {
    const server = await serve(answer, tls)
    await client(server.access()).ping()
  })

  it('refuses a certificate of an unknown CA and says what to give', async () => {
    const server = await serve(answer, tls)
    const { ca: _, ...access } = server.access()
    const error = await failure(client(access).ping())
    expect(error.reason).toBe('tls')
    expect(error.message).toContain('ca.crt')
    const other = await identity()
    expect(await failure(client(server.access({ ca: other.ca })).ping())).toMatchObject({ reason: 'tls' })
  })

  it('is not verified only where the access says so', async () => {
    const server = await serve(answer, tls)
    const { ca: _, ...access } = server.access({ verifyTls: false })
    await client(access).ping()
  })

  it('tells an expired certificate and one for another name apart', async () => {
    const expired = await serve(answer, await identity({ notAfter: new Date(Date.now() - 1000) }))
    expect((await failure(client(expired.access()).ping())).message).toContain('expired')
    const named = await serve(answer, await identity({ name: 'api.example.com' }))
    expect((await failure(client(named.access()).ping())).message).toContain('another name')
    await client(named.access({ tlsServerName: 'api.example.com' })).ping()
  })

  it('says so when the server does not speak it', async () => {
    const server = await serve(answer)
    const error = await failure(client(server.access({ server: server.url.replace('http:', 'https:') })).ping())
    expect(error.message).toContain('does not speak TLS')
  })

  it('refuses a CA that is no certificate', async () => {
    const server = await serve(answer, tls)
    expect(await failure(client(server.access({ ca: 'nonsense' })).ping())).toMatchObject({ reason: 'invalid' })
  })

  it('goes through a proxy', async () => {
    const server = await serve(answer, tls)
    const tunnels: string[] = []
    const proxy = createServer((socket: Socket) => {
      socket.once('data', (head) => {
        const [, target = ''] = head.toString().split(' ')
        tunnels.push(target)
        const [host, port] = target.split(':')
        const onward = connect(Number(port), host, () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          socket.pipe(onward).pipe(socket)
        })
        onward.on('error', () => socket.destroy())
        socket.on('error', () => onward.destroy())
      })
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    open.push({ [Symbol.asyncDispose]: () => new Promise((resolve) => proxy.close(() => resolve())) })
    const { port } = proxy.address() as { port: number }
    await client(server.access({ proxyUrl: `http://127.0.0.1:${port}` })).ping()
    expect(tunnels).toEqual([new URL(server.url).host])
  })
})

describe('writing', () => {
  it('sends kind, version and the right patch type', async () => {
    const seen: unknown[] = []
    const server = await serve((request, response) => {
      seen.push([request.method, request.url, request.headers['content-type'], JSON.parse(request.body || 'null')])
      json(response, request.method === 'POST' ? 201 : 200, secret('a'))
    })
    const kube = client(server.access())
    await kube.create(secrets, { metadata: { name: 'a', namespace: 'n' } })
    await kube.replace(secrets, { metadata: { name: 'a', namespace: 'n' } })
    await kube.patch(
      secrets,
      { name: 'a', namespace: 'n' },
      { x: 1 },
      { kind: 'apply', fieldManager: 'm', force: true },
    )
    await kube.patch(secrets, { name: 'a', namespace: 'n' }, { x: 1 }, { kind: 'merge', subresource: 'status' })
    await kube.delete(secrets, { name: 'a', namespace: 'n' })
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'n' } }
    const path = '/api/v1/namespaces/n/secrets'
    expect(seen).toEqual([
      ['POST', path, 'application/json', object],
      ['PUT', `${path}/a`, 'application/json', object],
      ['PATCH', `${path}/a?fieldManager=m&force=true`, 'application/apply-patch+yaml', { x: 1 }],
      ['PATCH', `${path}/a/status?fieldManager=clusterpulse`, 'application/merge-patch+json', { x: 1 }],
      ['DELETE', `${path}/a`, undefined, null],
    ])
  })

  it('says as whom, that nothing shall be stored, and what of a deletion is meant', async () => {
    const seen: unknown[] = []
    const server = await serve((request, response) => {
      const { headersDistinct: headers } = request
      const as = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('impersonate-')))
      seen.push([`${request.method} ${request.url}`, as, JSON.parse(request.body || 'null')])
      json(response, 200, secret('a'))
    })
    const kube = client(server.access())
    const key = { name: 'a', namespace: 'n' }
    const as = { user: 'Zoë', groups: ['x', 'y'], uid: '1', extra: { 'Example.com/Why': ['because'] } }
    const headers = {
      'impersonate-user': [Buffer.from('Zoë').toString('latin1')],
      'impersonate-group': ['x', 'y'],
      'impersonate-uid': ['1'],
      'impersonate-extra-example.com%2fwhy': ['because'],
    }
    const path = '/api/v1/namespaces/n/secrets'
    await kube.create(secrets, { metadata: key }, undefined, { as, dryRun: true, fieldManager: 'm' })
    await kube.create(secrets, { metadata: key }, undefined, { subresource: 'token' })
    await kube.replace(secrets, { metadata: key }, undefined, { subresource: 'approval' })
    await kube.patch(secrets, key, {}, { kind: 'merge', as: { user: 'u' }, dryRun: true })
    await kube.delete(secrets, key, undefined, {
      propagation: 'Foreground',
      uid: '2',
      resourceVersion: '3',
      dryRun: true,
    })
    await kube.request('GET', '/api', { as: { user: 'u' } })
    const u = { 'impersonate-user': ['u'] }
    const everything = client({ ...server.access(), as: { user: 'u' } })
    await everything.request('GET', '/api')
    await everything.request('GET', '/api', { as: { user: 'v' } })
    expect(seen.map((each) => (each as unknown[]).slice(0, 2))).toEqual([
      [`POST ${path}?fieldManager=m&dryRun=All`, headers],
      [`POST ${path}/a/token`, {}],
      [`PUT ${path}/a/approval`, {}],
      [`PATCH ${path}/a?fieldManager=clusterpulse&dryRun=All`, u],
      [`DELETE ${path}/a`, {}],
      ['GET /api', u],
      ['GET /api', u],
      ['GET /api', { 'impersonate-user': ['v'] }],
    ])
    expect((seen[4] as unknown[])[2]).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: '2', resourceVersion: '3' },
      dryRun: ['All'],
    })
  })

  it('never turns an empty name into a call on the whole collection', async () => {
    const server = await serve((_, response) => json(response, 200, {}))
    await expect(client(server.access()).delete(secrets, { name: '', namespace: 'n' })).rejects.toThrow(/has a name/)
    expect(server.requests).toEqual([])
  })
})

describe('discovery', () => {
  it('asks once in ten minutes for what is there, tells absent from forbidden, and does not keep a failure', async () => {
    const clock = new ManualClock()
    let forbidden = true
    const server = await serve((request, response) => {
      if (request.url === '/apis/operators.coreos.com/v1alpha1')
        return json(response, 200, { kind: 'APIResourceList', resources: [{ name: 'subscriptions' }] })
      if (request.url === '/api/v1' && forbidden) return status(response, 403, 'Forbidden')
      status(response, 404, 'NotFound')
    })
    const kube = client(server.access(), { clock, timeoutMs: 1e9 })
    const [yes, again] = await Promise.all([kube.serves(subscriptions), kube.serves(subscriptions)])
    expect([yes, again]).toEqual([true, true])
    expect(await kube.serves({ ...subscriptions, plural: 'others' })).toBe(false)
    expect(server.requests).toEqual(['GET /apis', 'GET /apis/operators.coreos.com/v1alpha1'])
    expect(await failure(kube.serves(secrets))).toMatchObject({ reason: 'forbidden' })
    forbidden = false
    expect(await kube.serves(secrets)).toBe(false)
    clock.advance(600_000)
    expect(await kube.serves(subscriptions)).toBe(true)
    expect(server.requests).toHaveLength(6)
  })

  it('asks for no group that the list of groups does not name, until it does', async () => {
    const clock = new ManualClock()
    const resources = [{ name: 'subscriptions' }]
    let groups: object[] = [{ name: 'apps', versions: [{ groupVersion: 'apps/v1', version: 'v1' }] }]
    const server = await serve((request, response) => {
      if (request.url === '/apis') return json(response, 200, { kind: 'APIGroupList', groups })
      json(response, 200, { kind: 'APIResourceList', resources })
    })
    const kube = client(server.access(), { clock, timeoutMs: 1e9 })
    expect(await Promise.all([kube.serves(subscriptions), kube.serves(routes)])).toEqual([false, false])
    expect(server.requests).toEqual(['GET /apis'])
    groups = [{ name: 'operators.coreos.com', versions: [{ groupVersion: 'operators.coreos.com/v1alpha1' }] }]
    clock.advance(29_000)
    expect(await kube.serves(subscriptions)).toBe(false)
    clock.advance(1000)
    expect(await kube.serves(subscriptions)).toBe(true)
    expect(server.requests.slice(1)).toEqual(['GET /apis', 'GET /apis/operators.coreos.com/v1alpha1'])
  })

  it('keeps no list of groups that it did not get', async () => {
    let isDown = true
    const server = await serve((_, response) => {
      if (isDown) return void response.destroy()
      json(response, 200, { kind: 'APIGroupList', groups: [] })
    })
    const kube = client(server.access(), { clock: new ManualClock(), timeoutMs: 1e9 })
    expect(await failure(kube.serves(subscriptions))).toMatchObject({ reason: 'unreachable' })
    isDown = false
    expect(await kube.serves(subscriptions)).toBe(false)
  })
})

async function pagesOf<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const page of pages) all.push(page)
  return all
}

describe('the name of a kind', () => {
  const clock = new ManualClock()
  const list = (resources: readonly (object | null)[]) => ({ kind: 'APIResourceList', resources })
  const widgets = { name: 'widgets', kind: 'Widget', namespaced: true, verbs: ['get', 'list'] }

  it('is what the cluster says, without subresources and what cannot be listed', async () => {
    const resources = [
      { name: 'widgets/status', kind: 'Widget', namespaced: true, verbs: ['get'] },
      { name: 'widgetreviews', kind: 'Widget', namespaced: false, verbs: ['create'] },
      widgets,
      { name: 'gateways', kind: 'Gateway', namespaced: false },
      null,
    ]
    const server = await serve((_, response) => json(response, 200, list(resources)))
    const kube = client(server.access(), { clock, timeoutMs: 1e9 })
    expect(await kube.find('g.io', 'v1', 'Widget')).toEqual({ plural: 'widgets', namespaced: true })
    expect(await kube.find('g.io', 'v1', 'Gateway')).toEqual({ plural: 'gateways', namespaced: false })
    expect(await kube.serves({ group: 'g.io', version: 'v1', plural: 'widgets' })).toBe(true)
    expect(server.requests).toEqual(['GET /apis', 'GET /apis/g.io/v1'])
  })

  it('is asked for again after half a minute where it is missing, and after a list was not found', async () => {
    let served: readonly object[] = []
    const server = await serve((request, response) => {
      if (request.url === '/apis/g.io/v1') json(response, 200, list(served))
      else status(response, 404, 'NotFound')
    })
    const kube = client(server.access(), { clock, timeoutMs: 1e9 })
    expect(await kube.find('g.io', 'v1', 'Widget')).toBeUndefined()
    served = [widgets]
    expect(await kube.find('g.io', 'v1', 'Widget')).toBeUndefined()
    clock.advance(30_000)
    expect(await kube.find('g.io', 'v1', 'Widget')).toEqual({ plural: 'widgets', namespaced: true })
    served = []
    expect(await kube.find('g.io', 'v1', 'Widget')).toBeDefined()
    const gone = { group: 'g.io', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }
    expect(await failure(pagesOf(kube.list(gone)))).toMatchObject({ reason: 'not_found' })
    expect(await kube.find('g.io', 'v1', 'Widget')).toBeUndefined()
  })
})

describe('a list', () => {
  it('goes on after a page that was read before', async () => {
    const server = await serve((request, response) => {
      const next = new URL(request.url ?? '', 'http://x').searchParams.get('continue')
      const metadata = next === null ? { resourceVersion: '5', continue: 'two' } : { resourceVersion: '5' }
      json(response, 200, { kind: 'SecretList', metadata, items: [] })
    })
    const kube = client(server.access())
    const nexts = (await pagesOf(kube.list(secrets))).map(({ next }) => next)
    expect(nexts).toEqual(['two', ''])
    expect(await pagesOf(kube.list(secrets, { continue: 'two' }))).toHaveLength(1)
  })

  it('that is isolated does not open the circuit breaker, whatever the server says; others do', async () => {
    const server = await serve((_, response) => status(response, 500, 'InternalError'))
    const kube = client(server.access())
    for (let i = 0; i < 8; i++)
      expect(await failure(pagesOf(kube.list(secrets, { isolated: true })))).toMatchObject({ reason: 'server' })
    for (let i = 0; i < 5; i++) await failure(pagesOf(kube.list(secrets)))
    expect(await failure(pagesOf(kube.list(secrets)))).toMatchObject({ reason: 'breaker_open' })
  })
})

describe('a write', () => {
  it('that the server cannot store opens no circuit breaker: other objects may be well', async () => {
    const server = await serve(({ method }, response) =>
      method === 'GET' ? json(response, 200, { metadata: { name: 'a' } }) : status(response, 500, 'InternalError'),
    )
    const kube = client(server.access())
    const key = { name: 'a', namespace: 'b' }
    for (let i = 0; i < 3; i++)
      for (const write of [
        () => kube.patch(secrets, key, { data: {} }, { kind: 'merge' }),
        () => kube.create(secrets, { metadata: key }),
        () => kube.delete(secrets, key),
      ])
        expect(await failure(write())).toMatchObject({ reason: 'server' })
    expect(await kube.get(secrets, key)).toBeDefined()
  })

  it('that reaches nobody counts for the circuit breaker', async () => {
    const server = await serve((_, response) => json(response, 200, {}))
    const kube = client(server.access())
    await server[Symbol.asyncDispose]()
    for (let i = 0; i < 5; i++) await failure(kube.create(secrets, { metadata: { name: 'a', namespace: 'b' } }))
    expect(await failure(kube.get(secrets, { name: 'a', namespace: 'b' }))).toMatchObject({ reason: 'breaker_open' })
  })
})

describe('limits', () => {
  it('lets a burst through and then as many per second as set', async () => {
    const clock = new ManualClock()
    const server = await serve((_, response) => json(response, 200, {}))
    const kube = client(server.access(), { clock, qps: 10, burst: 3, timeoutMs: 1e9 })
    const calls = Array.from({ length: 5 }, () => kube.request('GET', '/x'))
    await Promise.all(calls.slice(0, 3))
    expect(clock.waits).toEqual([100, 200])
    clock.advance(200)
    await Promise.all(calls)
  })

  it('needs one connection for many calls, and keeps it', async () => {
    const server = await serve((_, response) => json(response, 200, {}), tls)
    const kube = client(server.access(), { connections: 4 })
    for (let round = 0; round < 3; round++)
      await Promise.all(Array.from({ length: 10 }, () => kube.request('GET', '/x')))
    expect(server.connections()).toBe(1)
  })

  it('does not let a call that hangs hold up the others, up to the set number of connections', async () => {
    const hanging = new Set<() => void>()
    const server = await serve((request, response) => {
      if (request.url === '/hangs') hanging.add(() => json(response, 200, {}))
      else json(response, 200, {})
    }, tls)
    const kube = client(server.access(), { connections: 3 })
    const hung = [kube.request('GET', '/hangs'), kube.request('GET', '/hangs')]
    await Promise.all(Array.from({ length: 5 }, () => kube.request('GET', '/x')))
    expect(hanging.size).toBe(2)
    expect(server.connections()).toBe(3)
    hung.push(kube.request('GET', '/hangs'), kube.request('GET', '/hangs'))
    await expect.poll(() => hanging.size).toBe(3)
    expect(server.connections()).toBe(3)
    for (let ended = 0; ended < hung.length; ) {
      for (const end of hanging) {
        hanging.delete(end)
        ended++
        end()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(hung)
    expect(server.connections()).toBe(3)
  })

  it('gives up a call that waits for a connection with its signal', async () => {
    const server = await serve((request, response) => {
      if (request.url !== '/hangs') json(response, 200, {})
    }, tls)
    const kube = client(server.access(), { connections: 1 })
    const end = new AbortController()
    const hung = kube.request('GET', '/hangs', { signal: end.signal })
    const leave = new AbortController()
    const waiting = kube.request('GET', '/x', { signal: leave.signal })
    leave.abort(new Error('left'))
    await expect(waiting).rejects.toThrow('left')
    end.abort(new Error('ended'))
    await expect(hung).rejects.toThrow('ended')
    await kube.request('GET', '/x')
  })

  it('refuses calls once it is closed', async () => {
    const server = await serve((_, response) => json(response, 200, {}))
    const kube = client(server.access())
    await kube.ping()
    await kube[Symbol.asyncDispose]()
    expect((await failure(kube.ping())).message).toContain('closed')
  })
})
