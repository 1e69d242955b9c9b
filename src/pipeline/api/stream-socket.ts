import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { ServerResponse as Response } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Cors } from './gate.ts'
import { RefusedError } from './problem.ts'
import type { Frame } from './stream-frame.ts'
import type { StreamWriter } from './stream-writer.ts'

/** What a client may send at once; all of it is ignored. */
const maxMessageBytes = 4096
/** One that sends more than this between two pings is none of ours. */
const maxMessages = 100
/** A close frame holds 123 bytes of reason. */
const maxReasonBytes = 120

interface Upgrade {
  readonly socket: Duplex
  readonly head: Buffer
  readonly response: ServerResponse
}

/**
 * WebSockets of a server. A request that asks for one passes everything that others pass (host check, who asks, how much, may they)
 * before it becomes one; what is refused is an answer of HTTP.
 */
export class StreamSockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    clientTracking: false,
  })
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>()
  readonly #cors: Cors

  constructor(cors: Cors) {
    this.#cors = cors
  }

  listen(app: FastifyInstance): void {
    const server: Server = app.server
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on('error', () => socket.destroy())
      // A body would come behind what wants to become something else.
      if (request.method !== 'GET') {
        socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
        return
      }
      const response = new Response(request)
      response.shouldKeepAlive = false
      response.assignSocket(request.socket)
      response.on('finish', () => socket.end())
      this.#upgrades.set(request, { socket, head, response })
      app.routing(request, response)
    })
  }

  /** @throws RefusedError `upgrade_required`; `cross_site_refused`: a page of another site asks */
  requireUpgrade(request: FastifyRequest): void {
    const { origin, upgrade, 'sec-websocket-version': version } = request.headers
    if (!this.#upgrades.has(request.raw) || upgrade?.toLowerCase() !== 'websocket')
      throw new RefusedError('upgrade_required', 'this is a WebSocket: ask for it with Upgrade: websocket')
    // Former versions name the origin elsewhere.
    if (version !== '13') throw new RefusedError('upgrade_required', 'this is a WebSocket of version 13')
    // Browsers send cookies with a WebSocket of any site.
    if (origin === undefined || this.#cors.isOwn(request)) return
    if (this.#cors.credentials && this.#cors.allows(origin)) return
    throw new RefusedError('cross_site_refused', `origin ${JSON.stringify(origin.slice(0, 200))} may not open this`)
  }

  /** Answers 101. */
  accept(request: FastifyRequest, reply: FastifyReply): Promise<WebSocket> {
    const upgrade = this.#upgrades.get(request.raw)
    if (!upgrade) throw new RefusedError('upgrade_required', 'this is a WebSocket: ask for it with Upgrade: websocket')
    reply.hijack()
    const cookies = [reply.getHeader('set-cookie') ?? []].flat()
    upgrade.response.detachSocket(request.raw.socket)
    const add = (headers: string[], of: IncomingMessage): void => {
      if (of === request.raw) for (const cookie of cookies) headers.push(`Set-Cookie: ${cookie}`)
    }
    this.#server.on('headers', add)
    try {
      return new Promise((resolve) => {
        this.#server.handleUpgrade(request.raw, upgrade.socket, upgrade.head, resolve)
      })
    } finally {
      this.#server.off('headers', add)
    }
  }
}

/** The messages of one WebSocket. What its client sends is let go, and bounded. */
export class SocketWriter implements StreamWriter {
  readonly #socket: WebSocket
  #isAlive = true
  #taken = 0

  /** @param onSpace is called when the client has taken something */
  constructor(socket: WebSocket, transport: Duplex, onSpace: () => void) {
    this.#socket = socket
    socket.on('error', () => socket.terminate()) // a frame that is too large, or none
    socket.on('pong', () => {
      this.#isAlive = true
    })
    socket.on('message', () => {
      this.#taken += 1
      if (this.#taken === maxMessages) socket.close(1008, 'this stream takes no messages')
    })
    transport.on('drain', onSpace)
  }

  get waitingBytes(): number {
    return this.#socket.bufferedAmount
  }

  begin(): void {
    // Nothing comes before the first message.
  }

  write(frame: Frame): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    for (const message of frame.messages) this.#socket.send(message, { binary: false })
  }

  end(frame?: Frame): void {
    if (frame) this.write(frame)
    this.#socket.close(frame ? 1008 : 1001, frame ? frame.message.subarray(0, maxReasonBytes) : '')
  }

  destroy(): void {
    this.#socket.terminate()
  }

  /** One that has not answered the last is gone, or takes nothing: should it read again, it finds why. */
  ping(): void {
    if (!this.#isAlive) {
      // What does not answer to that either is cut off by the library.
      this.#socket.close(1008, 'no ping was answered for 30 s')
      return
    }
    this.#isAlive = false
    this.#taken = 0
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping()
  }
}
