import { once } from 'node:events'
import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { TestAuthority } from '../ingest/stream/test/certificates.ts'
import { aWorld } from './test/world.ts'

/** From another address of the loopback. @returns the status */
function ask(url: URL, localAddress: string, ca?: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const send = ca === undefined ? plainRequest : tlsRequest
    send(url, { localAddress, agent: false, ...(ca !== undefined && { ca }) }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode))
    })
      .on('error', reject)
      .end()
  })
}

describe('connections', () => {
  it.each([
    ['over TLS', true],
    ['in the clear', false],
  ])('that are idle in their hundreds keep nobody from the page: %s', async (_, isSecure) => {
    const authority = await TestAuthority.make('people')
    const tls = isSecure ? await authority.sign('hub', 'server') : undefined
    await using world = await aWorld({ maxConnections: 200, host: '127.0.0.1', ...(tls && { tls }) })
    const url = new URL(await world.server.start())
    const ca = isSecure ? authority.pem : undefined
    const health = new URL('/healthz', url)
    // A page that is open: its stream is being answered, and stays.
    const stream = (isSecure ? tlsRequest : plainRequest)(new URL('/api/v1/stream', url), { agent: false, ca })
    stream.on('error', () => undefined).end()
    const [opened] = await once(stream, 'response')
    expect(opened.statusCode).toBe(200)
    let isStreaming = true
    opened.resume().on('close', () => {
      isStreaming = false
    })
    const sockets: Socket[] = []
    for (let i = 0; i < 1000; i++) {
      const socket = connect({ port: Number(url.port), host: '127.0.0.1', localAddress: '127.0.0.2' })
      sockets.push(socket.on('error', () => undefined))
      await once(socket, 'connect')
    }
    const tookMs: number[] = []
    for (let i = 0; i < 20; i++) {
      const beganAt = performance.now()
      expect(await ask(health, '127.0.0.3', ca)).toBe(200)
      tookMs.push(performance.now() - beganAt)
    }
    expect(tookMs.toSorted((a, b) => a - b)[10]).toBeLessThan(5000)
    expect(isStreaming).toBe(true)
    const open = await new Promise<number>((resolve) => world.server.app.server.getConnections((_, n) => resolve(n)))
    expect(open).toBeLessThanOrEqual(200)
    for (const socket of sockets) socket.destroy()
    stream.destroy()
  })
})
