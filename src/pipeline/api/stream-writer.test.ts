import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { Frame, FrameRun } from './stream-frame.ts'
import { EventWriter } from './stream-writer.ts'

/** What is written to each request on one connection that is kept. */
async function served(requests: number, write: (writer: EventWriter) => void) {
  const listeners: number[] = []
  const sockets = new Set<Socket>()
  const server = createServer((_, response) => {
    const socket = response.socket as Socket
    sockets.add(socket)
    const writer = new EventWriter(response, false, () => {})
    response.on('close', () => setImmediate(() => listeners.push(socket.listenerCount('drain'))))
    response.writeHead(200)
    response.flushHeaders()
    writer.begin()
    write(writer)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const bodies: string[] = []
  for (let i = 0; i < requests; i++) {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ port, host: '127.0.0.1', agent }, resolve).on('error', reject)
    })
    bodies.push(await text(response))
  }
  await expect.poll(() => listeners.length).toBe(requests)
  agent.destroy()
  server.close()
  return { bodies, listeners, connections: sockets.size }
}

describe('what a stream of events writes', () => {
  it('comes in order, whether it goes past the response or through it, frame by frame or several as one', async () => {
    const frames = ['a', 'b', 'c'].map((kind) => new Frame(kind, `{"now":1}`))
    const { bodies } = await served(1, (writer) => {
      writer.write(frames[0] as Frame)
      writer.write(new FrameRun(frames))
      writer.end(frames[1])
    })
    const event = (kind: string) => `event: ${kind}\ndata: {"now":1}\n\n`
    expect(bodies).toEqual([`retry: 2000\n\n${['a', 'a', 'b', 'c', 'b'].map(event).join('')}`])
  })

  it('leaves nothing behind on a connection that serves the next request', async () => {
    const { listeners, connections } = await served(4, (writer) => writer.end())
    expect(connections).toBe(1)
    expect(new Set(listeners).size).toBe(1)
  })
})
