import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { boundConnections, CONNECTION_TIMES } from './http-connections.ts'
import { type Logger, silentLogger } from './logger.ts'
import { Metrics } from './metrics.ts'
import { networkOf } from './network.ts'
import { slowness } from './testing/slowness.ts'

/** Guards against hanging; `vi.waitFor` by itself waits for a second. */
const PATIENCE_MS = 20_000

/** A server on every address of the loopback; `/slow` is answered when it is said. */
async function aServer(max: number, onUpgrade?: (socket: Duplex) => void) {
  const slow: ServerResponse[] = []
  const lines: string[] = []
  const metrics = new Metrics({}, { processMetrics: false })
  const server = createServer(CONNECTION_TIMES, (asked, response) => {
    if (asked.url === '/slow') slow.push(response.writeHead(200).on('error', () => undefined))
    else response.end('ok')
  })
  const logger: Logger = { ...silentLogger, warn: (_, sentence) => void lines.push(sentence) }
  boundConnections(server, { listener: 'test', max, logger, metrics })
  if (onUpgrade)
    server.on('upgrade', (_, socket) => {
      socket.on('error', () => undefined).on('end', () => socket.end())
      onUpgrade(socket.resume())
    })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sockets: Socket[] = []
  return {
    slow,
    lines,
    metrics,
    open: () =>
      new Promise<number>((resolve, reject) =>
        server.getConnections((error, n) => (error ? reject(error) : resolve(n))),
      ),
    /** a connection from this address that says nothing, or asks */
    async dial(localAddress: string, ask?: string): Promise<Socket> {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined)
      sockets.push(socket)
      await once(socket, 'connect')
      if (ask !== undefined) socket.write(`GET ${ask} HTTP/1.1\r\nhost: x\r\n\r\n`)
      return socket
    },
    ask: (localAddress: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        request({ port, host: '127.0.0.1', localAddress, agent: false }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode))
        })
          .on('error', reject)
          .end()
      }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const isOpen = (socket: Socket) => !socket.destroyed && !socket.readableEnded
const many = <T>(n: number, make: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: n }, make))

describe('HTTP connections', () => {
  it('of a thousand that say nothing lock nobody out, and are told of once', async () => {
    await using server = await aServer(500)
    const before = process.memoryUsage().rss
    await many(1000, () => server.dial('127.0.0.2'))
    for (let i = 0; i < 20; i++) expect(await server.ask('127.0.0.1')).toBe(200)
    expect(await server.ask('127.0.0.2')).toBe(200)
    expect(await server.open()).toBeLessThanOrEqual(500)
    expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(60)
    expect(server.lines).toEqual([expect.stringMatching(/^nearly as many HTTP connections are open as may be/)])
    const text = await server.metrics.registry.metrics()
    expect(text).toMatch(/clusterpulse_http_connections_closed_total\{[^}]*reason="idle"[^}]*\} [1-9]/)
    expect(text).toMatch(/clusterpulse_http_connections\{[^}]*listener="test"[^}]*\} [1-9]/)
  })

  it('may all be of one address, as those of a proxy are, while there is room', async () => {
    await using server = await aServer(100)
    const all = await many(90, () => server.dial('127.0.0.2', '/'))
    await vi.waitFor(async () => expect(await server.open()).toBe(90), PATIENCE_MS)
    expect(all.every(isOpen)).toBe(true)
    expect(server.lines).toEqual([])
  })

  it('that are being answered stay, whoever comes; who has more than a share is refused first', async () => {
    await using server = await aServer(20)
    const greedy = await many(18, () => server.dial('127.0.0.2', '/slow'))
    await vi.waitFor(() => expect(server.slow.length).toBe(18), PATIENCE_MS)
    const [other] = await many(1, () => server.dial('127.0.0.3', '/slow'))
    await vi.waitFor(() => expect(server.slow.length).toBe(19), PATIENCE_MS)
    const refused = await server.dial('127.0.0.2', '/slow')
    await vi.waitFor(() => expect(isOpen(refused)).toBe(false), PATIENCE_MS)
    expect([...greedy, other!].every(isOpen)).toBe(true)
    expect(await server.ask('127.0.0.4')).toBe(200)
    for (const response of server.slow) response.end()
    await vi.waitFor(async () => expect(await server.ask('127.0.0.2')).toBe(200), PATIENCE_MS)
  })

  it('that ask nothing are closed one by one, though they came together', async () => {
    await using server = await aServer(500)
    const closedAt: number[] = []
    const sockets = await many(200, () => server.dial('127.0.0.2'))
    const closed = sockets.map((socket) => once(socket.resume(), 'close').then(() => closedAt.push(performance.now())))
    await Promise.all(closed)
    const most = Math.max(...closedAt.map((from) => closedAt.filter((at) => at >= from && at < from + 50).length))
    expect(most).toBeLessThan(50)
  })

  it('that became something else, such as a WebSocket, asked and stay', async () => {
    await using server = await aServer(500, (upgraded) => {
      upgraded.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    })
    const upgraded = await server.dial('127.0.0.2')
    upgraded.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    await once(upgraded, 'data')
    // Those that came after it and say nothing are closed first.
    const silent = await many(200, () => server.dial('127.0.0.2'))
    await Promise.all(silent.map((socket) => once(socket.resume(), 'close')))
    expect(isOpen(upgraded)).toBe(true)
  })

  it('that send the head of a request in trickles are ended', async () => {
    await using server = await aServer(100)
    const socket = await server.dial('127.0.0.2')
    const silent = await server.dial('127.0.0.2')
    const beganAt = performance.now()
    const trickle = setInterval(() => socket.write('x'), 200)
    socket.resume()
    silent.resume()
    await Promise.all([once(socket, 'close'), once(silent, 'close')])
    clearInterval(trickle)
    expect((performance.now() - beganAt) / slowness).toBeLessThan(15_000)
  })
})

describe('the network of an address', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
  ])('%s is %s', (address, network) => expect(networkOf(address)).toBe(network))
})
