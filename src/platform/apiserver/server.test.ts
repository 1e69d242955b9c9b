import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { connect } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { configMap, eventually } from './behaviour/subject.ts'
import type { ApiResponse } from './http/call.ts'
import { listenApi } from './listen.ts'
import { ApiServer } from './server.ts'
import { aDirectory, aServer, clientOf, listening, TOKENS } from './test/server.ts'
import type { ApiObject } from './types.ts'

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const PODS = { group: '', version: 'v1', plural: 'pods' }
const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces' }

const map = (name: string, more: Partial<ApiObject['metadata']> = {}, namespace = 'default'): ApiObject => ({
  ...configMap(name),
  metadata: { name, namespace, ...more },
})

describe('objects in process', () => {
  it('are the same as over HTTP, and so are their events', async () => {
    const server = await aServer()
    const { client } = await listening(server)
    const at = '/api/v1/namespaces/default/configmaps'
    const seen: string[] = []
    const end = server.objects.watch(CONFIG_MAPS, ({ type, object }) => seen.push(`${type} ${object.metadata.name}`))
    const made = await server.objects.create(map('a'))
    expect((await client.ask('GET', `${at}/a`)).body).toEqual(made)
    await client.ask('POST', at, { body: configMap('b') })
    expect(server.objects.get(CONFIG_MAPS, { name: 'b', namespace: 'default' })?.metadata.uid).toBeDefined()
    await server.objects.delete(CONFIG_MAPS, { name: 'a', namespace: 'default' })
    expect(seen).toEqual(['ADDED a', 'ADDED b', 'DELETED a'])
    end()
  })

  it('are put with their status, again and again, without asking for versions', async () => {
    const server = await aServer()
    const pod = (phase: string): ApiObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default' },
      spec: { nodeName: 'n' },
      status: { phase },
    })
    const first = await server.objects.put(pod('Pending'))
    const second = await server.objects.put(pod('Running'))
    expect(second).toMatchObject({ status: { phase: 'Running' }, metadata: { uid: first.metadata.uid } })
    expect(server.objects.list(PODS)).toEqual([second])
    await expect(server.objects.put({ ...pod('x'), metadata: { name: 'p', namespace: 'none' } })).rejects.toMatchObject(
      { reason: 'NotFound' },
    )
  })

  it('are computed where they are virtual', async () => {
    const server = await aServer()
    let reads = 0
    server.addVirtual({
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      plural: 'nodes',
      kind: 'NodeMetrics',
      namespaced: false,
      list: () => [
        {
          apiVersion: 'metrics.k8s.io/v1beta1',
          kind: 'NodeMetrics',
          metadata: { name: 'n' },
          usage: { cpu: `${++reads}m` },
        },
      ],
    })
    const { client } = await listening(server)
    const list = await client.ask('GET', '/apis/metrics.k8s.io/v1beta1/nodes')
    expect(list.body).toMatchObject({ kind: 'NodeMetricsList', items: [{ usage: { cpu: '1m' } }] })
    expect((await client.ask('GET', '/apis/metrics.k8s.io/v1beta1/nodes/n')).body.usage.cpu).toBe('2m')
    expect((await client.ask('POST', '/apis/metrics.k8s.io/v1beta1/nodes', { body: {} })).code).toBe(405)
    expect((await client.ask('GET', '/apis/metrics.k8s.io')).code).toBe(200)
  })

  it('refuse what is larger than an etcd takes', async () => {
    const server = await aServer()
    const { client } = await listening(server)
    const answer = await client.ask('POST', '/api/v1/namespaces/default/configmaps', {
      body: configMap('a', { x: 'x'.repeat(1.6 * 1024 * 1024) }),
    })
    expect(answer.code).toBe(413)
    expect(answer.body.reason).toBe('RequestEntityTooLarge')
  })
})

describe('housekeeping', () => {
  it('empties a namespace that is deleted, waits for finalizers, then lets it go', async () => {
    const server = await aServer()
    const { objects } = server
    await objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } })
    await objects.create(map('free', {}, 'n'))
    await objects.create(map('held', { finalizers: ['test.io/hold'] }, 'n'))
    const gone = new Promise<void>((resolve) => {
      objects.watch(NAMESPACES, ({ type }) => {
        if (type === 'DELETED') resolve()
      })
    })
    const marked = await objects.delete(NAMESPACES, { name: 'n' })
    expect(marked).toMatchObject({ kind: 'marked', object: { status: { phase: 'Terminating' } } })
    const { client } = await listening(server)
    await eventually(
      () => client.ask('GET', '/api/v1/namespaces/n/configmaps'),
      ({ body }) => body.items.length === 1,
    )
    expect(objects.get(NAMESPACES, { name: 'n' })).toBeDefined()
    const held = objects.get(CONFIG_MAPS, { name: 'held', namespace: 'n' }) as ApiObject
    await objects.update({ ...held, metadata: { ...held.metadata, finalizers: [] } })
    await gone
    expect(objects.list(CONFIG_MAPS, { namespace: 'n' })).toEqual([])
  })

  // It was written without end, and the process did nothing else any more.
  it('leaves a namespace alone that somebody holds back, until they let go', async () => {
    const { objects } = await aServer()
    await objects.create({
      ...{ apiVersion: 'v1', kind: 'Namespace' },
      metadata: { name: 'n', finalizers: ['test.io/hold'] },
    })
    let writes = 0
    const gone = new Promise<void>((resolve) => {
      objects.watch(NAMESPACES, ({ type, object }) => {
        if (object.metadata.name !== 'n') return
        if (type === 'DELETED') resolve()
        // Beyond these it would go on for ever: it is let go, so that the test ends.
        else if (++writes === 10) void letGo()
      })
    })
    const letGo = async () => {
      const held = objects.get(NAMESPACES, { name: 'n' }) as ApiObject
      await objects.update({ ...held, metadata: { ...held.metadata, finalizers: [] } })
    }
    await objects.delete(NAMESPACES, { name: 'n' })
    await expect.poll(() => objects.get(NAMESPACES, { name: 'n' })?.spec).toEqual({ finalizers: [] })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(writes).toBeLessThan(5)
    await letGo()
    await gone
  })

  it('goes on with a deletion after a restart', async () => {
    const dir = aDirectory()
    const first = await ApiServer.open({ storage: { kind: 'journal', dir } })
    await first.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } })
    await first.objects.create(map('held', { finalizers: ['test.io/hold'] }, 'n'))
    await first.objects.delete(NAMESPACES, { name: 'n' })
    await first[Symbol.asyncDispose]()
    const second = await aServer({ storage: { kind: 'journal', dir } })
    const held = second.objects.get(CONFIG_MAPS, { name: 'held', namespace: 'n' }) as ApiObject
    const gone = new Promise<void>((resolve) => {
      second.objects.watch(NAMESPACES, ({ type }) => {
        if (type === 'DELETED') resolve()
      })
    })
    await second.objects.update({ ...held, metadata: { ...held.metadata, finalizers: [] } })
    await gone
  })

  const owned = (name: string, ...owners: ApiObject[]) =>
    map(name, {
      ownerReferences: owners.map(({ apiVersion, kind, metadata }) => ({
        apiVersion,
        kind,
        name: metadata.name,
        uid: metadata.uid,
      })),
    })
  const until = (server: ApiServer, done: () => boolean) =>
    new Promise<void>((resolve) => {
      if (done()) return resolve()
      const end = server.objects.watch(CONFIG_MAPS, () => {
        if (!done()) return
        end()
        resolve()
      })
    })
  const names = (server: ApiServer) => server.objects.list(CONFIG_MAPS).map(({ metadata }) => metadata.name)

  it('deletes what lost its last owner, through generations', async () => {
    const server = await aServer()
    const one = await server.objects.create(map('one'))
    const two = await server.objects.create(map('two'))
    const child = await server.objects.create(owned('child', one))
    await server.objects.create(owned('grandchild', child))
    await server.objects.create(owned('shared', one, two))
    await server.objects.delete(CONFIG_MAPS, one.metadata)
    await until(server, () => names(server).length === 2)
    expect(names(server)).toEqual(['shared', 'two'])
  })

  it('frees what is to be orphaned', async () => {
    const server = await aServer()
    const owner = await server.objects.create(map('owner'))
    await server.objects.create(owned('child', owner))
    await server.objects.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Orphan' })
    await until(server, () => names(server).length === 1)
    const child = server.objects.get(CONFIG_MAPS, { name: 'child', namespace: 'default' })
    expect(child?.metadata.ownerReferences).toEqual([])
  })
})

describe('watches under pressure', () => {
  it('tells a watcher that came too late, in the stream', async () => {
    const server = await aServer({ maxHistory: 2 })
    const { client } = await listening(server)
    const from = server.objects.resourceVersion
    for (let n = 0; n < 9; n++) await server.objects.put(map(`m${n}`))
    await using watch = await client.watch('/api/v1/configmaps', { resourceVersion: from })
    const event = await watch.next()
    expect(event).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })
    expect(await watch.next()).toBeUndefined()
  })

  it('lets somebody who pages too slowly go on, or start again', async () => {
    const server = await aServer({ maxHistory: 2 })
    const { client } = await listening(server)
    for (const name of ['a', 'b', 'c']) await server.objects.put(map(name))
    const page = await client.ask('GET', '/api/v1/configmaps', { query: { limit: '1' } })
    for (let n = 0; n < 9; n++) await server.objects.put(map(`m${n}`))
    const late = await client.ask('GET', '/api/v1/configmaps', {
      query: { limit: '1', continue: page.body.metadata.continue },
    })
    expect(late.code).toBe(410)
    expect(late.body.reason).toBe('Expired')
    const rest = await client.ask('GET', '/api/v1/configmaps', { query: { continue: late.body.metadata.continue } })
    expect(rest.body.items[0].metadata.name).toBe('b')
  })

  it('holds no watch for who went before it was known who asks', async () => {
    const server = await aServer()
    const request = Object.assign(Readable.from([]), {
      ...{ method: 'GET', url: '/api/v1/configmaps?watch=1', complete: true },
      ...{ headers: { authorization: 'Bearer x' }, headersDistinct: { authorization: ['Bearer x'] } },
    })
    const nothing = () => undefined
    const heads: number[] = []
    const response: ApiResponse = {
      ...{ headersSent: false, destroyed: true, writableEnded: false, writableLength: 0 },
      ...{
        setHeader: nothing,
        appendHeader: nothing,
        flushHeaders: nothing,
        end: nothing,
        destroy: nothing,
        on: nothing,
      },
      write: () => false,
      writeHead: (status) => heads.push(status),
    }
    const isOver = server
      .handle(request, response, '', {
        holder: () => ({ name: 'admin', groups: ['system:masters'] }),
      })
      .then(() => true)
    expect(await Promise.race([isOver, new Promise((resolve) => setTimeout(resolve, 2000))])).toBe(true)
    expect(heads).toEqual([200])
  })

  it('cuts off a watcher that does not read, and nobody else', async () => {
    const server = await aServer()
    const { listener, client } = await listening(server)
    const socket = connect({ host: '127.0.0.1', port: listener.port, ca: listener.caPem })
    socket.on('error', () => undefined)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    await new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()))
    socket.write('GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n')
    // The head of the answer says that the watch stands; nothing further is read.
    await new Promise<void>((resolve) => socket.once('readable', () => resolve()))
    await using reader = await client.watch('/api/v1/configmaps')
    const big = 'x'.repeat(500_000)
    for (let n = 0; n < 60 && server.counters.slowWatchersCut === 0; n++) {
      await server.objects.put({ ...map(`m${n}`), data: { big } })
      await reader.take(1)
    }
    expect(server.counters.slowWatchersCut).toBe(1)
    socket.resume()
    await closed
    await server.objects.put(map('last'))
    expect((await reader.take(1))[0]?.object.metadata.name).toBe('last')
  })

  it('reminds watchers who ask for it of the newest version', async () => {
    const server = await aServer({ bookmarkMs: 20 })
    const { client } = await listening(server)
    await using watch = await client.watch('/api/v1/secrets', { allowWatchBookmarks: 'true' })
    await server.objects.put(map('a'))
    for (;;) {
      const event = await watch.next()
      expect(event?.type).toBe('BOOKMARK')
      if (event?.object.metadata.resourceVersion === server.objects.resourceVersion) break
    }
  })

  it('ends watches when the server closes', async () => {
    const server = await ApiServer.open({ storage: { kind: 'memory' } })
    const { client } = await listening(server)
    await using watch = await client.watch('/api/v1/secrets')
    await server[Symbol.asyncDispose]()
    expect(await watch.next()).toBeUndefined()
  })
})

describe('listenApi', () => {
  it('lets in who has a token, and shows others the door', async () => {
    const server = await aServer()
    const { listener } = await listening(server)
    const stranger = clientOf(listener, 'wrong')
    const answer = await stranger.ask('GET', '/api/v1/nodes')
    expect(answer.code).toBe(401)
    expect(answer.body).toMatchObject({ kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' })
    expect((await stranger.ask('GET', '/readyz')).code).toBe(200)
  })

  it('answers whose a token is', async () => {
    const server = await aServer()
    const { client } = await listening(server)
    const review = await client.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { spec: { token: 'viewer-token' } },
    })
    expect(review.body.status).toMatchObject({ authenticated: true, user: { username: 'viewer' } })
  })

  it('serves many servers on one port, and forgets one that is taken away', async () => {
    const east = await aServer()
    const west = await aServer()
    await east.objects.create(map('of-east'))
    const listener = await listenApi({ mounts: new Map([['/clusters/east', east]]), tokens: TOKENS })
    await using _ = listener
    listener.mount('/clusters/east/2', west)
    const at = '/api/v1/namespaces/default/configmaps/of-east'
    expect((await clientOf(listener, undefined, '/clusters/east').ask('GET', at)).code).toBe(200)
    expect((await clientOf(listener, undefined, '/clusters/east/2').ask('GET', at)).code).toBe(404)
    expect((await clientOf(listener, undefined, '/clusters/north').ask('GET', at)).code).toBe(404)
    listener.unmount('/clusters/east')
    expect((await clientOf(listener, undefined, '/clusters/east').ask('GET', at)).body.message).toBe(
      'no cluster is served under this path',
    )
    expect(() => listener.mount('no-slash', east)).toThrow('is no path')
  })

  it('keeps its CA in files nobody else reads, so that a kubeconfig outlives a restart', async () => {
    const dir = join(aDirectory(), 'tls')
    const server = await aServer()
    const mounts = new Map([['', server]])
    const first = await listenApi({ mounts, tokens: TOKENS, tls: { dir } })
    await first[Symbol.asyncDispose]()
    const second = await listenApi({ mounts, tokens: TOKENS, tls: { dir } })
    await using _ = second
    expect(second.caPem).toBe(first.caPem)
    expect(statSync(join(dir, 'ca.key')).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(dir, 'ca.key'), 'utf8')).toContain('PRIVATE KEY')
    const old = { ...second, caPem: first.caPem }
    expect((await clientOf(old).ask('GET', '/readyz')).code).toBe(200)
  })

  it('says when the port is taken', async () => {
    const server = await aServer()
    const { listener } = await listening(server)
    await expect(listenApi({ port: listener.port, tokens: TOKENS })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  it('compresses long answers for those who can read them', async () => {
    const server = await aServer()
    for (let n = 0; n < 5; n++) await server.objects.put({ ...map(`m${n}`), data: { x: 'y'.repeat(100_000) } })
    const { client } = await listening(server)
    const list = await client.ask('GET', '/api/v1/configmaps')
    expect(list.headers.get('content-encoding')).toBe('gzip')
    expect(list.body.items).toHaveLength(5)
  })
})
