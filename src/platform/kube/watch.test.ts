import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { afterEach, describe, expect, it } from 'vitest'
import { createKubeClient } from './client.ts'
import { pods, secrets } from './resources.ts'
import { json, ManualClock, type ScriptedServer, scriptedServer, status, until } from './testing/scripted-server.ts'
import type { KubeClientOptions } from './transport.ts'
import type { KubeClient, KubeObject, Resource, WatchEvent } from './types.ts'
import { lengthFrames, lineFrames } from './watch.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const item of open.splice(0).reverse()) await item[Symbol.asyncDispose]()
})

const object = (name: string, version: number): KubeObject => ({
  metadata: { name, namespace: 'a', resourceVersion: String(version) },
})

/** A server whose watches the test writes by hand; its list is `objects` at `version`. */
async function world() {
  const state = {
    objects: [object('a', 5)],
    version: 5,
    watches: [] as { from: string; parameters: URLSearchParams; response: ServerResponse; gone: boolean }[],
    lists: 0,
    /** watches are taken, and nothing of them arrives */
    isMute: false,
    proofs: 0,
    onWatch: undefined as ((response: ServerResponse) => boolean) | undefined,
    onList: undefined as ((response: ServerResponse) => boolean) | undefined,
  }
  const server: ScriptedServer = await scriptedServer((request, response) => {
    const { searchParams: parameters } = new URL(request.url ?? '', 'http://x')
    if (!parameters.has('watch')) {
      state.lists++
      if (state.onList?.(response)) return
      return json(response, 200, {
        kind: 'List',
        metadata: { resourceVersion: String(state.version) },
        items: state.objects,
      })
    }
    if (parameters.get('resourceVersion') === '0') {
      state.proofs++
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
      const [, name] = /^metadata.name=(.*)$/.exec(parameters.get('fieldSelector') ?? '') ?? []
      const found = state.objects.find(({ metadata }) => metadata.name === name)
      // As a real one whose etcd is older than its bookmarks.
      if (parameters.has('allowWatchBookmarks')) send(response, 'ERROR', { kind: 'Status', code: 500 })
      else if (!state.isMute) send(response, 'ADDED', found)
      return
    }
    const watch = { from: parameters.get('resourceVersion') ?? '', parameters, response, gone: false }
    response.on('close', () => {
      watch.gone = true
    })
    state.watches.push(watch)
    if (state.onWatch?.(response)) return
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
  })
  open.push(server)
  return Object.assign(state, { server })
}

/** Follows a watch; what it gave and what troubled it are lists that grow. */
function follow(server: ScriptedServer, options: KubeClientOptions = {}, resource: Resource = secrets) {
  const kube: KubeClient = createKubeClient(server.access(), { timeoutMs: 1e9, random: () => 0.5, ...options })
  open.push(kube)
  const stop = new AbortController()
  const seen: WatchEvent<KubeObject>[] = []
  const troubles: Error[] = []
  const ended = (async () => {
    const onTrouble = (error: Error) => troubles.push(error)
    for await (const event of kube.watch(resource, { signal: stop.signal, onTrouble })) seen.push(event)
  })()
  open.push({
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended.catch(() => undefined)
    },
  })
  const words = () =>
    seen.map((event) =>
      event.type === 'reset'
        ? `reset ${event.items.map((item) => item.metadata.name).join(',')}`
        : `${event.type} ${event.object.metadata.name}`,
    )
  return { kube, stop, seen, troubles, ended, words }
}

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

const send = (response: ServerResponse, type: string, what: unknown) =>
  response.write(`${JSON.stringify({ type, object: what })}\n`)

describe('watch', () => {
  it('gives the whole list first, then every change, and asks for bookmarks and a bounded time', async () => {
    const server = await world()
    const watch = follow(server.server)
    const first = await until(() => server.watches[0])
    expect(first.from).toBe('5')
    expect(first.parameters.get('allowWatchBookmarks')).toBe('true')
    expect(Number(first.parameters.get('timeoutSeconds'))).toBe(450)
    send(first.response, 'ADDED', object('b', 6))
    send(first.response, 'MODIFIED', object('b', 7))
    send(first.response, 'DELETED', object('a', 8))
    await until(() => watch.seen.length === 4)
    expect(watch.words()).toEqual(['reset a', 'added b', 'modified b', 'deleted a'])
    expect(watch.troubles).toEqual([])
  })

  it('goes on from the last version at once when the server ends it, also from a bookmark', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    const first = await until(() => server.watches[0])
    send(first.response, 'ADDED', object('b', 6))
    send(first.response, 'BOOKMARK', { metadata: { resourceVersion: '60' } })
    first.response.end()
    const second = await until(() => server.watches[1])
    expect(second.from).toBe('60')
    expect(server.lists).toBe(1)
    expect(watch.words()).toEqual(['reset a', 'added b'])
    expect(watch.troubles).toEqual([])
  })

  it('does not turn in a tight loop with a server that ends every watch at once', async () => {
    const server = await world()
    server.onWatch = (response) => {
      response.writeHead(200).end()
      return true
    }
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    await until(() => watch.troubles.length === 1)
    expect(server.watches).toHaveLength(1)
    clock.advance(1000)
    await until(() => watch.troubles.length === 2)
    expect(server.watches).toHaveLength(2)
  })

  it('goes on after a socket reset, with a growing pause, and loses nothing', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    const first = await until(() => server.watches[0])
    send(first.response, 'ADDED', object('b', 6))
    await until(() => watch.seen.length === 2)
    first.response.socket?.resetAndDestroy()
    await until(() => watch.troubles.length === 1)
    expect(Math.max(...clock.waits.filter((ms) => ms < 60_000))).toBe(750)
    clock.advance(750)
    const second = await until(() => server.watches[1])
    expect(second.from).toBe('6')
    second.response.socket?.resetAndDestroy()
    await until(() => watch.troubles.length === 2)
    expect(Math.max(...clock.waits.filter((ms) => ms < 60_000))).toBe(1500)
    clock.advance(1500)
    const third = await until(() => server.watches[2])
    send(third.response, 'ADDED', object('c', 7))
    await until(() => watch.seen.length === 3)
    expect(watch.words()).toEqual(['reset a', 'added b', 'added c'])
  })

  it('of a server that comes back and does not serve its kind yet is tried again soon', async () => {
    const server = await world()
    const clock = new ManualClock()
    follow(server.server, { clock })
    const first = await until(() => server.watches[0])
    server.onWatch = (response) => {
      response.socket?.resetAndDestroy()
      return true
    }
    first.response.socket?.resetAndDestroy()
    for (const pause of [750, 1500, 3000]) {
      await until(() => clock.waits.includes(pause))
      if (pause === 3000)
        server.onWatch = (response) => {
          status(response, 503, 'ServiceUnavailable', 'not yet')
          return true
        }
      clock.advance(pause)
    }
    await until(() => clock.waits.some((ms) => ms <= 1000))
    expect(clock.waits.filter((ms) => ms < 30_000)).toEqual([750])
  })

  it('of a server that was said to be away and does not serve its kind yet is tried again soon', async () => {
    const server = await world()
    const clock = new ManualClock()
    let code = 503
    server.onWatch = (response) => {
      status(response, code, 'Whatever', 'not yet')
      return true
    }
    follow(server.server, { clock })
    for (const pause of [750, 1500, 3000]) {
      await until(() => clock.waits.includes(pause))
      if (pause === 3000) code = 404
      clock.advance(pause)
    }
    await until(() => clock.waits.some((ms) => ms <= 1000))
    expect(clock.waits.filter((ms) => ms < 30_000)).toEqual([750])
  })

  const says = (code: number, reason: string) => (response: ServerResponse) => status(response, code, reason, 'not yet')
  it.each([
    ['stays away is tried every few seconds', (response: ServerResponse) => response.socket?.resetAndDestroy(), 3750],
    ['is said to be away (502) is tried every few seconds', says(502, 'BadGateway'), 3750],
    ['is said to be away (503) is tried every few seconds', says(503, 'ServiceUnavailable'), 3750],
    ['asks for fewer requests is tried ever less often', says(429, 'TooManyRequests'), 22_500],
  ])('of a server that %s', async (_, answer, longest) => {
    const server = await world()
    const clock = new ManualClock()
    server.onWatch = (response) => {
      answer(response)
      return true
    }
    const watch = follow(server.server, { clock })
    const pauses: number[] = []
    while (pauses.length < 8) {
      await until(() => watch.troubles.length > pauses.length)
      const pause = await until(() => clock.waits.find((ms) => ms <= 30_000))
      pauses.push(pause)
      clock.advance(pause)
    }
    expect(pauses.slice(0, 3)).toEqual([750, 1500, 3000])
    expect(Math.max(...pauses)).toBe(longest)
  })

  it.each([
    ['another watch', (kube: KubeClient, signal: AbortSignal) => void drain(kube.watch(pods, { signal }))],
    ['whoever asks whether it is there', (kube: KubeClient) => void kube.ping(undefined, true)],
  ])('of a server that was away goes on as soon as %s is answered', async (_, ask) => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    const first = await until(() => server.watches[0])
    server.onWatch = (response) => {
      response.socket?.resetAndDestroy()
      return true
    }
    first.response.socket?.resetAndDestroy()
    for (const pause of [750, 1500]) {
      await until(() => clock.waits.includes(pause))
      clock.advance(pause)
    }
    await until(() => clock.waits.includes(3000))
    server.onWatch = undefined
    const other = new AbortController()
    ask(watch.kube, other.signal)
    await until(() => !clock.waits.includes(3000))
    other.abort()
  })

  it.each([
    ['in the answer', (response: ServerResponse) => status(response, 410, 'Expired', 'too old')],
    [
      'in the stream',
      (response: ServerResponse) => {
        response.writeHead(200).flushHeaders()
        send(response, 'ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' })
      },
    ],
  ])('lists again when its version is gone, told %s', async (_, tell) => {
    const server = await world()
    let told = false
    server.onWatch = (response) => {
      if (told) return false
      told = true
      server.objects = [object('z', 90)]
      server.version = 90
      tell(response)
      return true
    }
    const watch = follow(server.server, { clock: new ManualClock() })
    const second = await until(() => server.watches[1])
    expect(second.from).toBe('90')
    expect(watch.words()).toEqual(['reset a', 'reset z'])
    expect(watch.troubles).toMatchObject([{ reason: 'expired' }])
  })

  it('goes on from the same version after an error of the server, in the answer or in the stream', async () => {
    const server = await world()
    const clock = new ManualClock()
    let faults = 0
    server.onWatch = (response) => {
      faults++
      if (faults === 1) status(response, 500, 'InternalError', 'etcd is away')
      else if (faults === 2) {
        response.writeHead(200).flushHeaders()
        send(response, 'ERROR', { kind: 'Status', code: 500, reason: 'InternalError', message: 'etcd is away' })
      }
      return faults <= 2
    }
    const watch = follow(server.server, { clock })
    for (let n = 1; n <= 2; n++) {
      await until(() => watch.troubles.length === n)
      clock.advance(30_000)
    }
    const third = await until(() => server.watches[2])
    expect(third.from).toBe('5')
    expect(watch.troubles).toMatchObject([{ reason: 'server' }, { reason: 'server' }])
    expect(server.lists).toBe(1)
  })

  it('passes over a line of garbage by resuming before it', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    const first = await until(() => server.watches[0])
    send(first.response, 'ADDED', object('b', 6))
    first.response.write('<html>not an event</html>\n')
    await until(() => watch.troubles.length === 1)
    expect(watch.troubles).toMatchObject([{ reason: 'protocol' }])
    clock.advance(30_000)
    expect((await until(() => server.watches[1])).from).toBe('6')
    await until(() => first.gone)
  })

  it('lists again when it fails over and over at one version, so that a bad version cannot hold it', async () => {
    const server = await world()
    const clock = new ManualClock()
    server.onWatch = (response) => {
      status(response, 504, 'Timeout', 'Too large resource version: 5, current: 1')
      return true
    }
    const watch = follow(server.server, { clock })
    for (let n = 1; n <= 4; n++) {
      await until(() => watch.troubles.length >= n)
      clock.advance(30_000)
    }
    await until(() => server.lists === 2)
    await until(() => watch.seen.length === 2)
  })

  it('ends a connection that is silent for 80 s, and goes on', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    const first = await until(() => server.watches[0])
    send(first.response, 'BOOKMARK', { metadata: { resourceVersion: '9' } })
    await until(() => clock.waits.includes(80_000))
    clock.advance(70_000)
    send(first.response, 'ADDED', object('b', 10))
    await until(() => watch.seen.length === 2)
    clock.advance(10_000)
    await until(() => clock.waits.includes(70_000))
    server.version = 12
    clock.advance(70_000)
    await until(() => first.gone)
    expect((await until(() => server.watches[1])).from).toBe('10')
    expect(watch.troubles).toEqual([])
  })

  it('goes on from where it was, at once and without a fault, of what never changes, which a server may send no bookmark of', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    for (let n = 1; n <= 6; n++) {
      await until(() => server.watches.length === n)
      server.version = 5 + n // others change
      await until(() => clock.waits.includes(80_000))
      clock.advance(80_000)
    }
    await until(() => server.watches.length === 7)
    expect(server.watches.map(({ from }) => from)).toEqual(Array(7).fill('5'))
    expect([watch.troubles, watch.words()]).toEqual([[], ['reset a']])
  })

  it('lists again where it is silent because its version is still to come', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    await until(() => server.watches.length === 1)
    server.version = 3 // restored from a backup
    server.objects = [object('b', 2)]
    await until(() => clock.waits.includes(80_000))
    clock.advance(80_000)
    await until(() => watch.seen.length === 2)
    expect(watch.words()).toEqual(['reset a', 'reset b'])
    expect(watch.troubles).toMatchObject([{ reason: 'expired' }])
  })

  it('begins anew soon each time where nothing is ever said and versions tell nothing, and does not wait longer and longer', async () => {
    const server = await world()
    const clock = new ManualClock()
    server.onList = (response) => {
      json(response, 200, { kind: 'List', metadata: { resourceVersion: 'x' }, items: server.objects })
      return true
    }
    const watch = follow(server.server, { clock })
    for (let n = 1; n <= 6; n++) {
      await until(() => server.watches.length === n)
      await until(() => clock.waits.includes(80_000))
      clock.advance(80_000)
      await until(() => watch.troubles.length === n)
      const pauses = () => clock.waits.filter((ms) => ms < 60_000)
      await until(() => pauses().length > 0)
      expect(Math.max(...pauses())).toBe(750)
      clock.advance(750)
    }
  })

  it('is listed again each time it is silent where nothing of any watch arrives, and says so', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    server.isMute = true
    for (let n = 1; n <= 2; n++) {
      await until(() => server.watches.length === n)
      await until(() => clock.waits.includes(80_000))
      server.objects = [object('a', 5), object(`new-${n}`, 5 + n)]
      server.version = 5 + n
      clock.advance(80_000)
      await until(() => clock.waits.includes(10_000))
      clock.advance(10_000)
      await until(() => watch.troubles.length === n)
      await until(() => clock.waits.includes(750))
      clock.advance(750)
      await until(() => watch.seen.length === n + 1)
    }
    expect(watch.words()).toEqual(['reset a', 'reset a,new-1', 'reset a,new-2'])
    expect(watch.troubles[0]).toMatchObject({
      reason: 'protocol',
      message: expect.stringContaining('holds streams back'),
    })
  })

  it('ends where it may not list, and one that must prove itself begins only where something arrives', async () => {
    const server = await world()
    const clock = new ManualClock()
    const kube = createKubeClient(server.server.access(), { timeoutMs: 1e9, random: () => 0.5, clock })
    open.push(kube)
    const { signal } = new AbortController()
    const watched = (mustProve: boolean) =>
      drain(kube.watch(secrets, { signal, resourceVersion: '5', relist: false, mustProve })).catch((error) => error)
    server.isMute = true
    const first = watched(false)
    await until(() => server.watches.length === 1)
    await until(() => clock.waits.includes(80_000))
    clock.advance(80_000)
    await until(() => clock.waits.includes(10_000))
    clock.advance(10_000)
    expect(await first).toMatchObject({ reason: 'protocol' })

    const second = watched(true)
    await until(() => clock.waits.includes(10_000))
    clock.advance(10_000)
    expect(await second).toMatchObject({ reason: 'protocol' })
    expect([server.watches.length, server.proofs]).toEqual([1, 2])

    server.isMute = false
    void watched(true)
    await until(() => server.watches.length === 2)
    expect(server.proofs).toBe(3)
  })

  it('that is silent since its server is gone waits, and says why', async () => {
    const server = await world()
    const clock = new ManualClock()
    const watch = follow(server.server, { clock })
    await until(() => server.watches.length === 1)
    server.onList = (response) => {
      response.destroy()
      return true
    }
    await until(() => clock.waits.includes(80_000))
    clock.advance(80_000)
    for (let n = 0; n < 50 && watch.troubles.length === 0; n++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      clock.advance(10_000)
    }
    expect(watch.troubles[0]).toMatchObject({ reason: 'unreachable' })
  })

  it('reads events that come a few bytes at a time, and an event of two megabytes', async () => {
    const server = await world()
    const watch = follow(server.server)
    const first = await until(() => server.watches[0])
    const text = `${JSON.stringify({ type: 'ADDED', object: object('ünïcode-日本', 6) })}\n`
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += 3) {
      first.response.write(bytes.subarray(at, at + 3))
      await new Promise((resolve) => setImmediate(resolve))
    }
    send(first.response, 'ADDED', { ...object('large', 7), data: 'x'.repeat(2_000_000) })
    await until(() => watch.seen.length === 3)
    expect(watch.words()).toEqual(['reset a', 'added ünïcode-日本', 'added large'])
  })

  it('keeps trying to list while the cluster refuses, and tells why', async () => {
    const server = await world()
    const clock = new ManualClock()
    let refusals = 3
    server.onList = (response) => {
      if (refusals-- <= 0) return false
      status(response, 403, 'Forbidden', 'no list for you')
      return true
    }
    const watch = follow(server.server, { clock })
    for (let n = 1; n <= 3; n++) {
      await until(() => watch.troubles.length === n)
      clock.advance(30_000)
    }
    await until(() => watch.seen.length === 1)
    expect(watch.troubles).toMatchObject([{ reason: 'forbidden' }, { reason: 'forbidden' }, { reason: 'forbidden' }])
  })

  it('ends with its signal and closes its connection', async () => {
    const server = await world()
    const watch = follow(server.server)
    const first = await until(() => server.watches[0])
    watch.stop.abort()
    await watch.ended
    await until(() => first.gone)
  })

  it('closes its connection when its reader leaves', async () => {
    const server = await world()
    const kube = createKubeClient(server.server.access())
    open.push(kube)
    for await (const event of kube.watch(secrets, { signal: new AbortController().signal })) {
      if (event.type === 'added') break
      void until(() => server.watches[0]).then((watch) => send(watch.response, 'ADDED', object('b', 6)))
    }
    await until(() => server.watches[0]?.gone)
  })

  it('throws when its client is closed under it', async () => {
    const server = await world()
    const watch = follow(server.server)
    await until(() => server.watches[0])
    await watch.kube[Symbol.asyncDispose]()
    await expect(watch.ended).rejects.toThrow('closed')
  })

  it('does not keep requests of the same client waiting', async () => {
    const server = await world()
    const kube = createKubeClient(server.server.access(), { connections: 1 })
    open.push(kube)
    const stop = new AbortController()
    const watching = [1, 2, 3].map(async () => {
      for await (const _ of kube.watch(secrets, { signal: stop.signal }));
    })
    await until(() => server.watches.length === 3)
    expect(await kube.listAll(secrets)).toHaveLength(1)
    stop.abort()
    await Promise.all(watching)
  })

  it('does not read ahead without bound of a reader that is slow', async () => {
    const server = await world()
    const kube = createKubeClient(server.server.access())
    open.push(kube)
    const stop = new AbortController()
    const events = kube.watch(secrets, { signal: stop.signal })[Symbol.asyncIterator]()
    await events.next()
    const second = events.next()
    const { response } = await until(() => server.watches[0])
    const event = `${JSON.stringify({ type: 'ADDED', object: { ...object('b', 6), data: 'x'.repeat(100_000) } })}\n`
    let sent = 0
    // Written until the socket takes no more: what is then in flight is bounded by the kernel's buffers and ours.
    while (response.write(event) || response.writableLength < 20_000_000) {
      sent++
      if (sent > 3000) break
      if (sent % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await second
    expect(response.writableLength).toBeGreaterThan(1_000_000)
    stop.abort()
    await events.return?.(undefined)
  })

  it('reads protobuf where the server gives it', async () => {
    const { root } = protobuf.parse(`syntax = "proto2";
      message Meta { optional string name = 1; optional string namespace = 3; optional string resourceVersion = 6; }
      message Pod { optional Meta metadata = 1; }
      message ListMeta { optional string resourceVersion = 2; }
      message List { optional ListMeta metadata = 1; repeated Pod items = 2; }
      message Status { optional string message = 3; optional string reason = 4; optional int32 code = 6; }
      message Unknown { optional bytes raw = 2; }
      message Raw { optional bytes raw = 1; }
      message Event { optional string type = 1; optional Raw object = 2; }`)
    const bytes = (type: string, value: object) => root.lookupType(type).encode(value).finish()
    const wrap = (type: string, value: object) =>
      Buffer.concat([Buffer.from('k8s\0'), bytes('Unknown', { raw: bytes(type, value) })])
    const frame = (type: string, kind: string, value: object) => {
      const body = bytes('Event', { type, object: { raw: wrap(kind, value) } })
      const length = Buffer.alloc(4)
      length.writeUInt32BE(body.length)
      return Buffer.concat([length, body])
    }
    const from: (string | null)[] = []
    const server = await scriptedServer((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://x')
      expect(request.headers.accept).toContain('application/vnd.kubernetes.protobuf')
      const type = `application/vnd.kubernetes.protobuf${searchParams.has('watch') ? ';stream=watch' : ''}`
      response.writeHead(200, { 'content-type': type })
      if (!searchParams.has('watch')) {
        response.end(wrap('List', { metadata: { resourceVersion: '5' }, items: [{ metadata: { name: 'a' } }] }))
        return
      }
      from.push(searchParams.get('resourceVersion'))
      if (from.length > 2) return response.flushHeaders()
      response.write(
        frame('ADDED', 'Pod', { metadata: { name: `p${from.length}`, resourceVersion: `${from.length}0` } }),
      )
      response.write(frame('BOOKMARK', 'Pod', { metadata: { resourceVersion: `${from.length}1` } }))
      if (from.length === 1) response.end()
      else response.write(frame('ERROR', 'Status', { message: 'old', reason: 'Expired', code: 410 }))
    })
    open.push(server)
    const kube = createKubeClient(server.access())
    open.push(kube)
    const stop = new AbortController()
    const words: string[] = []
    const watching = (async () => {
      for await (const event of kube.watch(pods, { signal: stop.signal })) {
        words.push(
          event.type === 'reset'
            ? `reset ${event.items.map(({ metadata }) => metadata.name)}`
            : `${event.type} ${event.object.metadata.name}`,
        )
      }
    })()
    await until(() => from.length === 3)
    stop.abort()
    await watching
    expect(from).toEqual(['5', '11', '5'])
    expect(words).toEqual(['reset a', 'added p1', 'added p2', 'reset a'])
  })
})

describe('framing', () => {
  async function* cut(bytes: Buffer, at: readonly number[]): AsyncGenerator<Buffer> {
    let from = 0
    for (const size of at) {
      yield bytes.subarray(from, from + size)
      from += size
    }
    yield bytes.subarray(from)
  }
  const collect = async (frames: AsyncIterable<Buffer>) => {
    const out: string[] = []
    for await (const frame of frames) out.push(frame.toString('latin1'))
    return out
  }

  it('gives the same frames however the bytes are cut', async () => {
    const frame = fc.string({
      unit: fc.integer({ min: 32, max: 255 }).map((code) => String.fromCharCode(code)),
      minLength: 1,
    })
    const cuts = fc.array(fc.nat(7))
    await fc.assert(
      fc.asyncProperty(fc.array(frame), cuts, async (frames, at) => {
        const lines = Buffer.from(frames.map((line) => `${line}\n`).join(''), 'latin1')
        expect(await collect(lineFrames(cut(lines, at)))).toEqual(frames)
        const lengths = frames.flatMap((text) => {
          const length = Buffer.alloc(4)
          length.writeUInt32BE(text.length)
          return [length, Buffer.from(text, 'latin1')]
        })
        expect(await collect(lengthFrames(cut(Buffer.concat(lengths), at)))).toEqual(frames)
      }),
    )
  })

  it('says so when a stream ends in the middle of an event', async () => {
    await expect(collect(lineFrames(cut(Buffer.from('{"a"'), [])))).rejects.toThrow(/middle of an event/)
    await expect(collect(lengthFrames(cut(Buffer.from([0, 0, 0, 9, 1]), [])))).rejects.toThrow(/middle of an event/)
  })

  it('refuses an event larger than any object can be', async () => {
    await expect(collect(lengthFrames(cut(Buffer.from([0x7f, 0, 0, 0]), [])))).rejects.toThrow(/too large/)
  })
})
