import { beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { freePort } from '../../platform/runtime/testing/free-port.ts'
import { TestAuthority } from '../ingest/stream/test/certificates.ts'
import { probeRegistry } from './probe.ts'
import { json, names, probe, registry, serve, serveBytes, targetAt } from './testing/registry-server.ts'

const credentials = { username: 'robot', password: 's3cret-of-the-robot' }
const credentialsRef = { name: 'harbor-credentials', namespace: 'clusterpulse' }
const signedIn = { credentials, credentialsRef }

describe('a registry that answers', () => {
  it('is available and healthy, with its response time, version and features', async () => {
    await using server = await serve(
      registry({ headers: { server: 'Harbor/2.11', 'docker-content-digest': 'sha256:0' } }),
    )
    const result = await probe(targetAt(server.url))
    expect(result).toMatchObject({
      available: true,
      health: 'healthy',
      version: 'registry/2.0',
      code: '',
      error: '',
      warnings: [],
      repositoryCount: null,
      features: { docker_v2_api: true, harbor_detected: true, content_digest: true },
    })
    expect(result.responseMs).toBeGreaterThanOrEqual(0)
    expect(result.message).toBe(`Registry is healthy (response time: ${result.responseMs}ms)`)
  })

  it('is asked below the path of its endpoint', async () => {
    await using server = await serve((request, response) =>
      request.url === '/registry/v2/' ? json(response, 200, {}) : json(response, 404, {}),
    )
    expect(await probe(targetAt(`${server.url}/registry`))).toMatchObject({ available: true })
  })

  it('is available without credentials where it wants some', async () => {
    await using server = await serve(registry({ credentials }))
    const result = await probe(targetAt(server.url))
    expect(result).toMatchObject({ available: true, health: 'healthy', features: { requires_auth: true } })
  })

  it('may end a connection that was kept, which is no trouble', async () => {
    let asked = 0
    await using server = await serveBytes((socket) => {
      socket.once('data', () => {
        asked++
        const body = '{"repositories":["a"]}'
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
        socket.once('data', () => socket.destroy()) // of the next question, without a word
      })
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true, healthCheckPaths: ['/health'] }))
    expect(result).toMatchObject({ available: true, health: 'healthy', repositoryCount: 1, warnings: [] })
    expect(asked).toBe(3)
  })

  it('is slow above five seconds, and names the time', async () => {
    await using server = await serve(registry())
    let now = 1_000_000
    // The clock that the probe sees jumps while the request is on its way.
    const clock = { now: () => (now += 6_000), sleep: systemClock.sleep }
    const result = await probeRegistry(targetAt(server.url, { timeoutMs: 30_000 }), {
      signal: new AbortController().signal,
      clock,
    })
    expect(result).toMatchObject({ available: true, health: 'degraded' })
    expect(result.message).toBe(`Registry is slow (response time: ${result.responseMs}ms)`)
    expect(result.responseMs).toBeGreaterThan(5_000)
  })

  it('is degraded where a declared path does not answer as it should', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/api/v2.0/health?full=1') return json(response, 503, {})
      return json(response, 200, {})
    })
    const healthCheckPaths = ['fine', '/api/v2.0/health?full=1']
    const result = await probe(targetAt(server.url, { healthCheckPaths }))
    expect(result).toMatchObject({ available: true, health: 'degraded' })
    expect(result.warnings).toEqual([
      { code: 'health_path_failed', message: '/api/v2.0/health?full=1 answers with status 503' },
    ])
  })

  it('cannot be left by a declared path', async () => {
    await using elsewhere = await serve(registry())
    await using server = await serve(registry())
    await probe(targetAt(server.url, { healthCheckPaths: [`//127.0.0.1:${elsewhere.port}/x`, '/../../x'] }))
    expect(elsewhere.seen).toEqual([])
  })
})

describe('credentials', () => {
  it('are offered as Basic at once, and count the repositories', async () => {
    await using server = await serve(registry({ credentials, repositories: ['a/b', 'c'] }))
    const result = await probe(targetAt(server.url, { ...signedIn, checkCatalog: true }))
    expect(result).toMatchObject({
      health: 'healthy',
      repositoryCount: 2,
      repositories: ['a/b', 'c'],
      warnings: [],
      features: { docker_v2_api: true, catalog_accessible: true },
    })
    expect(result.message).toMatch(/^Registry is healthy \(response time: \d+ms\), 2 repositories$/)
    const basic = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
    expect(server.seen).toEqual([
      { path: '/v2/', authorization: basic },
      { path: expect.stringMatching(/^\/v2\/_catalog/), authorization: basic },
    ])
  })

  it.each(['token', 'access_token'])('get a token by the token flow, read from %s', async (field) => {
    await using tokens = await serve((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://tokens')
      const isOurs = searchParams.get('service') === 'the, registry' && request.headers.authorization !== undefined
      return json(response, isOurs ? 200 : 400, { [field]: 'the-token' })
    })
    const words = { realm: () => `${tokens.url}/token?a=b`, tokenFor: 'the-token', repositories: ['one'] }
    await using server = await serve(registry(words))
    const result = await probe(targetAt(server.url, { ...signedIn, checkCatalog: true }))
    expect(result).toMatchObject({ health: 'healthy', repositoryCount: 1, warnings: [] })
    expect(new URL(tokens.seen[0]?.path ?? '', 'http://x').searchParams.get('scope')).toBe('registry:catalog:*')
    expect(new URL(tokens.seen[0]?.path ?? '', 'http://x').searchParams.get('a')).toBe('b')
    expect(server.seen.map(({ authorization }) => authorization?.split(' ')[0])).toEqual(['Basic', 'Bearer', 'Bearer'])
  })

  it('are not needed where everybody gets a token for the catalogue', async () => {
    await using tokens = await serve((_, response) => json(response, 200, { token: 'for-all' }))
    await using server = await serve(registry({ realm: () => tokens.url, tokenFor: 'for-all', repositories: ['x'] }))
    expect(await probe(targetAt(server.url, { checkCatalog: true }))).toMatchObject({ repositoryCount: 1 })
    expect(tokens.seen[0]?.authorization).toBeUndefined()
  })

  it('that are refused make it degraded, by a warning that names the Secret', async () => {
    await using server = await serve(registry({ credentials: { username: 'robot', password: 'another' } }))
    const result = await probe(targetAt(server.url, { ...signedIn, checkCatalog: true }))
    expect(result).toMatchObject({ available: true, health: 'degraded', code: '', repositoryCount: null })
    expect(result.warnings[0]).toMatchObject({
      code: 'unauthorized',
      message: expect.stringContaining('Secret clusterpulse/harbor-credentials'),
    })
  })

  it.each([400, 403])('that are refused by %d leave a registry available that answers without them', async (status) => {
    const open = registry({ repositories: ['x'] })
    await using server = await serve((request, response) =>
      request.headers.authorization === undefined ? open(request, response) : json(response, status, {}),
    )
    const result = await probe(targetAt(server.url, { ...signedIn, checkCatalog: true }))
    expect(result).toMatchObject({
      ...{ available: true, health: 'degraded', repositoryCount: 1 },
      warnings: [{ code: 'unauthorized', message: expect.stringContaining(`(status ${status})`) }],
    })
  })

  it('that are refused by 403 leave a registry available that asks for some', async () => {
    await using server = await serve((request, response) => {
      const isAsked = request.headers.authorization === undefined
      json(response, isAsked ? 401 : 403, {}, isAsked ? { 'www-authenticate': 'Basic realm="x"' } : {})
    })
    const result = await probe(targetAt(server.url, signedIn))
    expect(result).toMatchObject({ available: true, health: 'degraded', warnings: [{ code: 'unauthorized' }] })
    expect(server.seen).toHaveLength(2)
  })

  it('say nothing of a registry that fails with them and without', async () => {
    await using server = await serve((_, response) => json(response, 403, {}))
    expect(await probe(targetAt(server.url, signedIn))).toMatchObject({ available: false, code: 'unexpected_status' })
  })

  it('that the token service refuses make it degraded too', async () => {
    await using tokens = await serve((_, response) => json(response, 403, { details: 'no' }))
    await using server = await serve(registry({ realm: () => tokens.url, tokenFor: 'x' }))
    const result = await probe(targetAt(server.url, signedIn))
    expect(result).toMatchObject({ available: true, health: 'degraded', warnings: [{ code: 'unauthorized' }] })
  })

  it.each([
    ['that is no JSON', (response: Parameters<typeof json>[0]) => response.end('<html>')],
    ['without a token', (response: Parameters<typeof json>[0]) => json(response, 200, { tokens: 1 })],
    [
      'with a token that would be two header lines',
      (r: Parameters<typeof json>[0]) => json(r, 200, { token: 'a\r\nb: c' }),
    ],
    ['that never ends', (r: Parameters<typeof json>[0]) => void r.writeHead(200).write('x'.repeat(70_000))],
  ])('are of no use with a token service %s', async (_, answer) => {
    await using tokens = await serve((_, response) => void answer(response))
    await using server = await serve(registry({ realm: () => tokens.url, tokenFor: 'x' }))
    const result = await probe(targetAt(server.url, signedIn))
    expect(result).toMatchObject({ available: true, health: 'degraded', warnings: [{ code: 'token_failed' }] })
  })

  it('are not sent to a token service without https, unless that was allowed', async () => {
    await using tokens = await serve((_, response) => json(response, 200, { token: 'x' }))
    await using server = await serve(registry({ realm: () => tokens.url, tokenFor: 'x' }), { tls: pair })
    const result = await probe(targetAt(server.url, { ...signedIn, caPem: authority.pem }))
    expect(result).toMatchObject({ available: true, health: 'degraded', warnings: [{ code: 'redirect_refused' }] })
    expect(tokens.seen).toEqual([])
  })

  it('are never sent to where the registry redirects', async () => {
    await using other = await serve(registry({ credentials }))
    await using server = await serve((request, response) => {
      response.writeHead(307, { location: `${other.url}${request.url}` }).end()
    })
    const result = await probe(targetAt(server.url, { ...signedIn, checkCatalog: true }))
    expect(result).toMatchObject({ available: true, health: 'degraded', warnings: [{ code: 'redirected' }, {}] })
    expect(other.seen.length).toBeGreaterThan(0)
    expect(other.seen.every(({ authorization }) => authorization === undefined)).toBe(true)
  })

  it('are not sent home again by whom the registry redirects to', async () => {
    await using other = await serve((_, response) =>
      response.writeHead(302, { location: `${server.url}/delete` }).end(),
    )
    const basic = registry({ credentials })
    await using server = await serve((request, response) => {
      if (request.url?.startsWith('/v2/_catalog')) response.writeHead(302, { location: other.url }).end()
      else basic(request, response)
    })
    await probe(targetAt(server.url, { ...signedIn, checkCatalog: true }))
    expect(server.seen.filter(({ path }) => path === '/delete')).toEqual([
      { path: '/delete', authorization: undefined },
    ])
  })

  it('appear nowhere in what is told, even where the registry repeats them', async () => {
    await using tokens = await serve((_, response) => json(response, 200, { token: 'the-secret-token' }))
    await using server = await serve((request, response) => {
      const given = `${request.headers.authorization} ${credentials.password}`
      const headers = {
        'docker-distribution-api-version': given,
        location: `https://${credentials.password}.example/${credentials.password}`,
        'www-authenticate': `Bearer realm="${tokens.url}"`,
      }
      if (!request.headers.authorization?.startsWith('Bearer ')) return json(response, 401, {}, headers)
      if (request.url === '/v2/') return json(response, 200, {}, headers)
      if (request.url?.startsWith('/v2/_catalog')) return json(response, 200, { repositories: [given] }, headers)
      json(response, 307, {}, headers)
    })
    const target = targetAt(server.url, { ...signedIn, checkCatalog: true, healthCheckPaths: ['/x'] })
    const told = JSON.stringify(await probe(target))
    expect(told).toContain('harbor-credentials'.slice(0, 0))
    for (const secret of [
      credentials.password,
      'the-secret-token',
      Buffer.from(`robot:${credentials.password}`).toString('base64'),
    ])
      expect(told).not.toContain(secret)
  })
})

let authority: TestAuthority
let pair: { cert: string; key: string }
beforeAll(async () => {
  authority = await TestAuthority.make('test')
  pair = await authority.sign('registry', 'server')
})

describe('TLS', () => {
  it('is verified with the given CA, by the roots of the system otherwise', async () => {
    await using server = await serve(registry(), { tls: pair })
    expect(await probe(targetAt(server.url, { caPem: authority.pem }))).toMatchObject({ available: true })
    const refused = await probe(targetAt(server.url))
    expect(refused).toMatchObject({ available: false, health: 'unhealthy', code: 'tls_untrusted', responseMs: null })
    expect(refused.message).toMatch(/^Registry unavailable: request failed: the certificate of 127/)
  })

  it('is not verified only where that was said', async () => {
    await using server = await serve(registry(), { tls: pair })
    expect(await probe(targetAt(server.url, { skipTlsVerify: true }))).toMatchObject({ available: true })
  })

  it('is verified for other hosts even where it is not for the registry', async () => {
    await using tokens = await serve(registry(), { tls: pair, host: '127.0.0.2' })
    await using server = await serve(registry({ realm: () => tokens.url, tokenFor: 'x' }), { tls: pair })
    const target = targetAt(server.url, { ...signedIn, skipTlsVerify: true, allowPrivateRedirects: true })
    expect((await probe(target)).warnings).toMatchObject([{ code: 'tls_untrusted' }])
    expect(tokens.seen).toEqual([])
  })

  it('with a certificate that has expired is refused', async () => {
    await using server = await serve(registry(), { tls: await authority.sign('registry', 'server', { expired: true }) })
    const result = await probe(targetAt(server.url, { caPem: authority.pem }))
    expect(result).toMatchObject({ code: 'tls_untrusted', error: expect.stringContaining('has expired') })
  })

  it('with a certificate for another name is refused', async () => {
    await using server = await serve(registry(), { tls: pair })
    const target = targetAt(`https://registry.test:${server.port}`, { caPem: authority.pem })
    const result = await probe(target, names({ 'registry.test': '127.0.0.1' }))
    expect(result).toMatchObject({ code: 'tls_untrusted', error: expect.stringContaining('is for another name') })
  })

  it('that the other end does not speak is said', async () => {
    await using server = await serve(registry())
    expect(await probe(targetAt(server.url.replace('http:', 'https:')))).toMatchObject({ code: 'tls_failed' })
  })

  it('by a CA that cannot be read is refused before anything is sent', async () => {
    await using server = await serve(registry(), { tls: pair })
    expect(await probe(targetAt(server.url, { caPem: 'nonsense' }))).toMatchObject({ code: 'ca_invalid' })
  })
})

describe('plain HTTP', () => {
  it('is refused without insecure, and nothing is sent', async () => {
    await using server = await serve(registry())
    const result = await probe(targetAt(server.url, { insecure: false }))
    expect(result).toMatchObject({ available: false, code: 'insecure_refused', responseMs: null })
    expect(server.seen).toEqual([])
  })
})

describe('what is no registry', () => {
  it.each([
    ['has no /v2/', 404, {}, '', 'not_a_registry'],
    ['is a web page', 200, { 'content-type': 'text/html; charset=utf-8' }, '<!doctype html>', 'not_a_registry'],
    ['is a web page of no declared type', 200, {}, '\n<HTML><body>hello', 'not_a_registry'],
    ['fails', 503, {}, 'sorry', 'unexpected_status'],
    ['forbids', 403, {}, '', 'unexpected_status'],
    ['says nothing it should', 204, {}, '', 'unexpected_status'],
  ])('because it %s is unavailable', async (_, status, headers, body, code) => {
    await using server = await serve((_, response) => response.writeHead(status, headers).end(body))
    const result = await probe(targetAt(server.url))
    expect(result).toMatchObject({ available: false, health: 'unhealthy', code, features: {} })
    expect(result.responseMs).not.toBeNull()
    if (code === 'unexpected_status') expect(result.error).toBe(`unexpected status code: ${status}`)
  })

  it('as it does not speak HTTP is said so', async () => {
    await using server = await serveBytes((socket) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n'))
    expect(await probe(targetAt(server.url))).toMatchObject({ available: false, code: 'not_a_registry' })
  })

  it.each(['ftp://x', 'https://user:secret@host', 'https://host/?a=b', 'nonsense'])(
    'by its address %s is refused',
    async (endpoint) => expect(await probe(targetAt(endpoint))).toMatchObject({ code: 'invalid_endpoint' }),
  )
})

describe('a registry that cannot be reached', () => {
  it('refuses connections', async () => {
    const port = await freePort()
    const result = await probe(targetAt(`http://127.0.0.1:${port}`))
    expect(result).toMatchObject({ available: false, code: 'unreachable', responseMs: null })
    expect(result.error).toBe(`request failed: 127.0.0.1:${port} refuses connections`)
  })

  it('has no address', async () => {
    const result = await probe(targetAt('http://registry.test'), names({}))
    expect(result).toMatchObject({ code: 'unreachable', error: expect.stringContaining('cannot be resolved') })
  })

  it('hangs up', async () => {
    await using server = await serveBytes((socket) => socket.destroy())
    expect(await probe(targetAt(server.url))).toMatchObject({ code: 'unreachable' })
  })
})

describe('a registry that takes our time', () => {
  it.each([
    ['before the headers', (): undefined => undefined],
    ['inside of the headers', (socket: { write(text: string): unknown }) => socket.write('HTTP/1.1 200 OK\r\nA: ')],
  ])('by hanging %s is unhealthy when its time is up', async (_, begin) => {
    await using server = await serveBytes((socket) => void begin(socket))
    const result = await probe(targetAt(server.url, { timeoutMs: 150 }))
    expect(result).toMatchObject({ available: false, health: 'unhealthy', code: 'timeout', responseMs: null })
  })

  it('by hanging inside of the body is unhealthy, with the time until its headers', async () => {
    await using server = await serve((_, response) => void response.writeHead(200).write('{'))
    const result = await probe(targetAt(server.url, { timeoutMs: 300 }))
    expect(result).toMatchObject({ available: false, code: 'timeout' })
    expect(result.responseMs).not.toBeNull()
  })

  it('by a catalogue that hangs stays available', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') json(response, 200, {})
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true, timeoutMs: 300 }))
    expect(result).toMatchObject({ available: true, health: 'healthy', warnings: [{ code: 'timeout' }] })
  })

  it('is left at once when the caller ends the probe', async () => {
    await using server = await serve(() => undefined)
    const ending = new AbortController()
    const probing = probeRegistry(targetAt(server.url), { signal: ending.signal, clock: systemClock })
    ending.abort(new Error('enough'))
    await expect(probing).rejects.toThrow('enough')
  })
})

describe('a registry that sends too much', () => {
  const endless = (response: { write(chunk: Buffer): boolean; on(name: 'drain', listener: () => void): unknown }) => {
    const chunk = Buffer.alloc(256 * 1024, 'x')
    const pour = () => {
      while (response.write(chunk));
    }
    response.on('drain', pour)
    pour()
  }

  it('is read no further than 64 KiB, of /v2/', async () => {
    await using server = await serve((_, response) =>
      endless(response.writeHead(200, { 'content-type': 'text/plain' })),
    )
    const result = await probe(targetAt(server.url))
    expect(result).toMatchObject({ available: true, warnings: [{ code: 'answer_too_large' }] })
    expect(server.sent()).toBeLessThan(16 * 2 ** 20)
  })

  it('is read no further than 8 MiB, of a page of its catalogue', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') return json(response, 200, {})
      endless(response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(10e9) }))
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true }))
    expect(result).toMatchObject({ available: true, repositoryCount: null, warnings: [{ code: 'answer_too_large' }] })
    expect(server.sent()).toBeLessThan(64 * 2 ** 20)
  })

  it('is not read where it is header lines without end', async () => {
    await using server = await serveBytes((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`)
    })
    expect(await probe(targetAt(server.url))).toMatchObject({ available: false, code: 'answer_too_large' })
  })
})

describe('the catalogue', () => {
  const many = Array.from({ length: 45 }, (_, index) => `repository-${String(index).padStart(3, '0')}`)

  it('is counted over all its pages', async () => {
    await using server = await serve(registry({ repositories: many }))
    const result = await probe(targetAt(server.url, { checkCatalog: true, catalogPageSize: 10 }))
    expect(result).toMatchObject({ repositoryCount: 45, isCatalogTruncated: false, repositories: null, warnings: [] })
    expect(server.seen.filter(({ path }) => path.startsWith('/v2/_catalog'))).toHaveLength(5)
  })

  it('is asked without a page size where none is wanted', async () => {
    await using server = await serve(registry({ repositories: ['one'] }))
    await probe(targetAt(server.url, { checkCatalog: true, catalogPageSize: undefined }))
    expect(server.seen.at(-1)?.path).toBe('/v2/_catalog')
  })

  it('is not asked for where it is not wanted', async () => {
    await using server = await serve(registry({ repositories: ['one'] }))
    expect(await probe(targetAt(server.url))).toMatchObject({ repositoryCount: null, repositories: null })
    expect(server.seen).toHaveLength(1)
  })

  it.each([
    [401, 'catalog_forbidden'],
    [403, 'catalog_forbidden'],
    [404, 'catalog_missing'],
    [500, 'catalog_failed'],
  ])('that answers with %i leaves the registry healthy', async (status, code) => {
    await using server = await serve((request, response) => json(response, request.url === '/v2/' ? 200 : status, {}))
    const result = await probe(targetAt(server.url, { checkCatalog: true }))
    expect(result).toMatchObject({
      health: 'healthy',
      repositoryCount: null,
      features: { catalog_accessible: false },
      warnings: [{ code }],
    })
  })

  it('that is empty is null in some registries, and counts 0', async () => {
    await using server = await serve((_, response) => json(response, 200, { repositories: null }))
    expect(await probe(targetAt(server.url, { checkCatalog: true }))).toMatchObject({
      repositoryCount: 0,
      repositories: [],
    })
  })

  it('that goes round in a circle is left, as truncated', async () => {
    await using server = await serve((request, response) =>
      json(response, 200, { repositories: ['a', 'b'] }, { link: `<${request.url}>; rel="next"` }),
    )
    const result = await probe(targetAt(server.url, { checkCatalog: true }))
    expect(result).toMatchObject({ repositoryCount: 2, isCatalogTruncated: true, warnings: [{ code: 'catalog_loop' }] })
  })

  it('with pages without end is left after a thousand', async () => {
    let page = 0
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') return json(response, 200, {})
      page++
      json(response, 200, { repositories: [`r${page}`] }, { link: `</v2/_catalog?page=${page}>; rel=next` })
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true, timeoutMs: 60_000 }))
    expect(result).toMatchObject({ repositoryCount: 1000, isCatalogTruncated: true })
    expect(page).toBe(1000)
  })

  it('with page after page that names nothing new is left after a hundred', async () => {
    let page = 0
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') return json(response, 200, {})
      page++
      json(response, 200, { repositories: ['a'] }, { link: `</v2/_catalog?page=${page}>; rel=next` })
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true, timeoutMs: 60_000 }))
    expect(result).toMatchObject({ repositoryCount: 1, isCatalogTruncated: true, warnings: [{ code: 'catalog_loop' }] })
    expect(page).toBe(101)
  })

  it('with more names than are counted is left', async () => {
    let page = 0
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') return json(response, 200, {})
      page++
      const repositories = Array.from({ length: 60_000 }, (_, index) => `${page}-${index}`)
      json(response, 200, { repositories }, { link: `</v2/_catalog?page=${page}>; rel="next"` })
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true, timeoutMs: 60_000 }))
    expect(result).toMatchObject({ repositoryCount: 100_000, isCatalogTruncated: true })
    expect(page).toBe(2)
  })

  it('whose pages take too long is truncated, and what was counted stays', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') return json(response, 200, {})
      if (request.url?.includes('page=2')) return
      json(response, 200, { repositories: ['a'] }, { link: '</v2/_catalog?page=2>; rel="next"' })
    })
    const result = await probe(targetAt(server.url, { checkCatalog: true, timeoutMs: 400 }))
    expect(result).toMatchObject({ available: true, repositoryCount: 1, isCatalogTruncated: true })
  })

  it('is not followed to another place', async () => {
    await using other = await serve(registry({ repositories: ['theirs'] }))
    await using server = await serve((_, response) =>
      json(response, 200, { repositories: ['ours'] }, { link: `<${other.url}/v2/_catalog>; rel="next"` }),
    )
    const result = await probe(targetAt(server.url, { checkCatalog: true }))
    expect(result).toMatchObject({
      repositoryCount: 1,
      isCatalogTruncated: true,
      warnings: [{ code: 'redirect_refused' }],
    })
    expect(other.seen).toEqual([])
  })
})

describe('redirects', () => {
  const to = (location: string) => serve((_, response) => response.writeHead(302, { location }).end())

  it('on the registry itself are followed', async () => {
    const there = registry()
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') response.writeHead(301, { location: '/real/v2/' }).end()
      else there(Object.assign(request, { url: request.url?.replace('/real', '') }), response)
    })
    expect(await probe(targetAt(server.url))).toMatchObject({ available: true })
  })

  it('to the address of the registry itself, at another port, are followed', async () => {
    await using other = await serve(registry())
    await using server = await to(`${other.url}/v2/`)
    expect(await probe(targetAt(server.url))).toMatchObject({ available: true })
  })

  it.each([
    ['the addresses of clouds', 'http://169.254.169.254/latest/meta-data/'],
    ['loopback', 'http://127.0.0.2/'],
    ['loopback, as one number', 'http://2130706434/'],
    ['loopback of IPv6', 'http://[::1]/'],
    ['loopback inside of IPv6', 'http://[::ffff:127.0.0.2]/'],
    ['a private network', 'http://10.0.0.1/'],
    ['a private network of IPv6', 'http://[fd00::1]/'],
    ['nowhere', 'http://0.0.0.0/'],
    ['a name inside', 'http://inside.test/'],
    ['a name whose address changed meanwhile', 'http://rebinding.test/'],
  ])('to %s are refused', async (_, location) => {
    await using server = await to(location)
    let asked = 0
    const lookup = names({
      'inside.test': '10.1.2.3',
      'rebinding.test': () => (asked++ === 0 ? '169.254.169.254' : '203.0.113.1'),
    })
    const result = await probe(targetAt(server.url), lookup)
    expect(result).toMatchObject({ available: false, code: 'redirect_refused' })
    expect(result.message).toContain('allowPrivateRedirects')
  })

  it.each(['http://169.254.169.254', 'http://[::ffff:a9fe:a9fe]', 'http://meta.test', 'http://0.0.0.0'])(
    'are not needed to be refused: a registry at %s is never dialed',
    async (endpoint) => {
      const result = await probe(targetAt(endpoint), names({ 'meta.test': '100.100.100.200' }))
      expect(result).toMatchObject({ available: false, code: 'address_refused' })
      expect(result.message).toContain('OUTBOUND_ALLOW')
    },
  )

  it('to private addresses are followed where that was allowed', async () => {
    await using other = await serve(registry(), { host: '127.0.0.2' })
    await using server = await to(`${other.url}/v2/`)
    expect(await probe(targetAt(server.url))).toMatchObject({ code: 'redirect_refused' })
    expect(await probe(targetAt(server.url, { allowPrivateRedirects: true }))).toMatchObject({ available: true })
  })

  it('by a token service to private addresses are not even asked for', async () => {
    await using tokens = await serve(registry(), { host: '127.0.0.2' })
    await using server = await serve(registry({ realm: () => tokens.url, tokenFor: 'x' }))
    const result = await probe(targetAt(server.url, signedIn))
    expect(result).toMatchObject({ available: true, health: 'degraded', warnings: [{ code: 'redirect_refused' }] })
    expect(tokens.seen).toEqual([])
  })

  it('from https to http are refused', async () => {
    await using server = await serve(
      (_, response) => response.writeHead(302, { location: 'http://example.com/' }).end(),
      {
        tls: pair,
      },
    )
    const result = await probe(targetAt(server.url, { caPem: authority.pem, insecure: true }))
    expect(result).toMatchObject({ code: 'redirect_refused', error: expect.stringContaining('https to http') })
  })

  it.each(['ftp://example.com/', 'https://[', 'javascript:alert(1)'])('to %s are refused', async (location) => {
    await using server = await to(location)
    expect(await probe(targetAt(server.url))).toMatchObject({ code: 'redirect_refused' })
  })

  it('of a registry at an address of IPv6 know where it is', async () => {
    await using server = await serve(
      (request, response) => {
        if (request.url === '/v2/') response.writeHead(302, { location: `http://[0:0::1]:${server.port}/real/` }).end()
        else json(response, 200, {})
      },
      { host: '::1' },
    )
    const target = targetAt(`http://[::1]:${server.port}`)
    expect(await probe(target)).toMatchObject({ available: true })
  })

  it('of a registry with a name know its address', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/v2/') response.writeHead(302, { location: `http://127.0.0.1:${server.port}/real/` }).end()
      else json(response, 200, {})
    })
    const lookup = names({ 'registry.test': '127.0.0.1', 'other.test': '127.0.0.3' })
    expect(await probe(targetAt(`http://registry.test:${server.port}`), lookup)).toMatchObject({ available: true })
    expect(await probe(targetAt(`http://other.test:${server.port}`), lookup)).toMatchObject({ available: false })
  })

  it('without end are left after five', async () => {
    await using server = await to('/again')
    expect(await probe(targetAt(server.url))).toMatchObject({ code: 'redirect_refused' })
    expect(server.seen).toHaveLength(6)
  })
})
