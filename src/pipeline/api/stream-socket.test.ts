import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { SocketWriter } from './stream-socket.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, proxy } from './test/world.ts'

const opened: WebSocket[] = []
afterEach(() => {
  for (const socket of opened.splice(0)) socket.terminate()
})

interface Listener {
  readonly socket: WebSocket
  readonly messages: Record<string, unknown>[]
  until(is: (messages: readonly Record<string, unknown>[]) => boolean): Promise<void>
}

async function listen(url: string, query = '', headers: Record<string, string> = {}): Promise<Listener> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/stream/ws${query}`, { headers })
  opened.push(socket)
  const messages: Record<string, unknown>[] = []
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as Record<string, unknown>
    if (message.kind !== 'heartbeat') messages.push(message)
  })
  socket.on('error', () => undefined)
  const until: Listener['until'] = async (is) => {
    for (const end = Date.now() + 20_000; !is(messages); ) {
      if (Date.now() > end) throw new Error(`the socket said ${messages.map(({ kind }) => kind)}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  await once(socket, 'open')
  return { socket, messages, until }
}

/** How a request for a WebSocket is refused. */
async function refused(
  url: string,
  headers: Record<string, string> = {},
  protocolVersion = 13,
): Promise<number | undefined> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/stream/ws`, { headers, protocolVersion })
  opened.push(socket)
  return new Promise((resolve, reject) => {
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode))
    socket.on('open', () => reject(new Error('it was opened')))
    socket.on('error', () => undefined)
  })
}

describe('the stream over a WebSocket', () => {
  it('says the same as server-sent events, id for id', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const url = await world.server.start()
    const query = '?cluster=west&type=node&rows=nodes'
    const events = await StreamReader.open(`${url}/api/v1/stream${query}`)
    const socket = await listen(url, query)
    const isSynced = (count: number) => (kinds: readonly unknown[]) =>
      kinds.filter((kind) => kind === 'synced').length >= count
    const told = async (count: number) => {
      await events.until((frames) => isSynced(count)(frames.map(({ event }) => event)))
      await socket.until((messages) => isSynced(count)(messages.map(({ kind }) => kind)))
    }
    await told(1)
    await world.batch('west', [complete('node', [aNode('a')])])
    await told(2)
    await world.batch('west', [complete('node', [aNode('b')])])
    await told(3)
    const withoutIds = socket.messages.map(({ id: _, ...message }) => message)
    expect(withoutIds).toEqual(events.frames.map(({ event, data }) => ({ kind: event, ...data })))
    expect(socket.messages.map(({ id }) => typeof id)).toEqual(events.frames.map(({ id }) => typeof id))
    events.close()
  })

  it('goes on after an id', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const url = await world.server.start()
    const first = await listen(url)
    await first.until((messages) => messages.length === 2)
    const { id } = first.messages[1] as { id: string }
    await world.batch('west', [complete('node', [aNode('a')])])
    const again = await listen(url, `?lastEventId=${id}`)
    await again.until((messages) => messages.length === 2)
    expect(again.messages.map(({ kind }) => kind)).toEqual(['store', 'change'])
  })

  it('is refused before it is one: to strangers, to pages of other sites, to plain requests', async () => {
    await using world = await aWorld({ identity: proxy })
    const url = await world.server.start()
    const ann = { 'x-forwarded-user': 'ann' }
    expect(await refused(url)).toBe(401)
    expect(await refused(url, { ...ann, origin: 'https://elsewhere.example' })).toBe(403)
    // A former version of WebSocket names the page elsewhere.
    expect(await refused(url, ann, 8)).toBe(426)
    const plain = await fetch(`${url}/api/v1/stream/ws`, { headers: ann })
    expect([plain.status, ((await plain.json()) as { code: string }).code]).toEqual([426, 'upgrade_required'])
    await expect(listen(url, '', { ...ann, origin: url })).resolves.toBeDefined()
  })

  it('takes nothing: small messages are let go, a large one ends it', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const url = await world.server.start()
    const { socket, until } = await listen(url)
    await until((messages) => messages.length === 2)
    socket.send('hello')
    await world.batch('west', [complete('node', [aNode('a')])])
    await until((messages) => messages.length === 3)
    socket.send(Buffer.alloc(16 * 2 ** 20))
    const [code] = (await once(socket, 'close')) as [number]
    expect([1006, 1009]).toContain(code)
  })

  it('ends with the server', async () => {
    await using world = await aWorld()
    const { socket } = await listen(await world.server.start())
    const closed = once(socket, 'close')
    await world.server.stop()
    await closed
  })
})

describe('a client that opens streams again and again', () => {
  it('is told to slow down, and when to come', async () => {
    await using world = await aWorld({ streamOpens: { perSecond: 2, burst: 3 } })
    const url = await world.server.start()
    const answers: Response[] = []
    for (let at = 0; at < 4; at++) answers.push(await fetch(`${url}/api/v1/stream`))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(answers[3]?.headers.get('retry-after')).toBe('1')
    expect(await answers[3]?.json()).toMatchObject({ code: 'too_many_requests' })
    expect(await refused(url)).toBe(429)
    await Promise.all(answers.slice(0, 3).map(({ body }) => body?.cancel()))
  })
})

it('tells one that answered no ping why it is closed, should it read again', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const accepted = once(server, 'connection') as Promise<[WebSocket, { socket: Duplex }]>
  const client = new WebSocket(`ws://127.0.0.1:${port}`, { autoPong: false })
  opened.push(client)
  const [socket, request] = await accepted
  const writer = new SocketWriter(socket, request.socket, () => undefined)
  const closed = once(client, 'close') as Promise<[number, Buffer]>
  writer.ping()
  await once(client, 'ping')
  expect(client.readyState).toBe(WebSocket.OPEN)
  writer.ping()
  const [code, reason] = await closed
  expect([code, String(reason)]).toEqual([1008, 'no ping was answered for 30 s'])
  server.close()
})
