import { createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createKubeClient } from './client.ts'
import { type Identity, identity, json, scriptedServer } from './testing/scripted-server.ts'
import { secureContextFor } from './tls.ts'
import { Transport } from './transport.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const item of open.splice(0).reverse()) await item[Symbol.asyncDispose]()
})
let tls: Identity
beforeAll(async () => {
  tls = await identity()
})

describe('what connections are checked against', () => {
  it('is made once for clusters of the same CA, and never shared with others', async () => {
    const [ca, other] = [tls.ca, (await identity()).ca]
    expect(secureContextFor({ ca })).toBe(secureContextFor({ ca }))
    expect(secureContextFor({ ca: other })).not.toBe(secureContextFor({ ca }))
    const { cert, key } = tls
    expect(secureContextFor({ ca }, { cert, key })).not.toBe(secureContextFor({ ca }))
    expect(() => secureContextFor({ ca: `${ca}broken` }, { cert, key: 'none' })).toThrow('cannot be used')
  })
})

const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('connections that share the memory they read into', () => {
  it('never mix the bytes of answers that come at the same time, whole or in pieces', async () => {
    const bodies = Array.from({ length: 12 }, (_, n) =>
      randomBytes([0, 1, 100, 16_384, 65_537, 700_001, 3_000_000][n % 7] ?? 0),
    )
    const server = await scriptedServer(async (request, response) => {
      const body = bodies[Number(request.url?.slice(1))] ?? Buffer.alloc(0)
      if (request.headers['x-whole']) return void response.writeHead(200, { 'content-length': body.length }).end(body)
      for (let at = 0; at < body.length; at += 50_000) {
        response.write(body.subarray(at, at + 50_000))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    }, tls)
    open.push(server)
    const transports = [1, 2, 3].map(() => new Transport(server.access(), { connections: 3 }))
    open.push(...transports)
    for (let round = 0; round < 3; round++) {
      const got = await Promise.all(
        transports.flatMap((transport) =>
          bodies.map((_, n) => transport.call({ method: 'GET', path: `/${n}` }, (answer) => hash(answer.body))),
        ),
      )
      expect(got).toEqual(transports.flatMap(() => bodies.map(hash)))
    }
  })

  it('read again after the server reset one in the middle of a body', async () => {
    let left = 1
    const server = await scriptedServer((_, response) => {
      if (left-- > 0) return half(response)
      json(response, 200, { whole: true })
    }, tls)
    open.push(server)
    const kube = createKubeClient(server.access())
    open.push(kube)
    expect(await kube.request('GET', '/')).toEqual({ whole: true })
    left = 5
    await expect(kube.request('GET', '/')).rejects.toMatchObject({ reason: 'unreachable' })
  })

  it('are opened anew after the server closed an idle one', async () => {
    const server = await scriptedServer((_, response) => json(response, 200, {}, { connection: 'close' }), tls)
    open.push(server)
    const kube = createKubeClient(server.access())
    open.push(kube)
    for (let n = 0; n < 3; n++) expect(await kube.request('GET', '/')).toEqual({})
    expect(server.connections()).toBe(3)
  })

  it('take no answer that ends too early for a whole one', async () => {
    const server = await scriptedServer((_, response) => {
      response.writeHead(200, { 'content-length': 1000 })
      response.write('{}', () => response.socket?.end())
    }, tls)
    open.push(server)
    const kube = createKubeClient(server.access())
    open.push(kube)
    await expect(kube.request('GET', '/')).rejects.toMatchObject({
      reason: expect.stringMatching(/unreachable|protocol/),
    })
  })

  it('give up a server that accepts and never shakes hands', async () => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => sockets.push(socket))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    open.push({
      [Symbol.asyncDispose]: () => {
        for (const socket of sockets) socket.destroy()
        return new Promise((resolve) => silent.close(() => resolve()))
      },
    })
    const { port } = silent.address() as { port: number }
    const access = { server: `https://127.0.0.1:${port}`, verifyTls: true, credentials: { kind: 'none' } } as const
    const kube = createKubeClient(access, { timeoutMs: 100 })
    open.push(kube)
    await expect(kube.ping()).rejects.toMatchObject({ reason: 'timeout' })
  })
})

function half(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"items":[', () => response.socket?.destroy())
}
