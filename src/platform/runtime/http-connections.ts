import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from './logger.ts'
import type { Metrics } from './metrics.ts'
import { networkOf } from './network.ts'

/**
 * For `createServer`, ms: a connection must have shaken hands and sent the head of a request within these times of its beginning,
 * whether it says nothing or little at a time.
 */
export const CONNECTION_TIMES = {
  handshakeTimeout: 10_000,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 2_000,
} as const

/** How many HTTP connections a listener takes. */
export interface ConnectionBounds {
  /** names the listener in the log and in metrics */
  readonly listener: string
  /** open at once */
  readonly max: number
  readonly logger: Logger
  readonly metrics?: Metrics
  /** default 1 min */
  readonly warnEveryMs?: number
}

/** A connection asks its first question within this time of its beginning, ms; those that came together are not all closed together. */
const FIRST_REQUEST_MS = { from: 7_500, steps: 50, stepMs: 50 } as const

interface Connection {
  readonly socket: Socket
  /** until its first request */
  silence: NodeJS.Timeout | undefined
  readonly network: string
  /** requests that are being answered, streams and WebSockets among them */
  answering: number
}

/** Share of all connections from which room is made for others. Below it one address may have them all, as a proxy does. */
const NEARLY_FULL = 0.9

/**
 * Bounds the open connections of a server. While there is room nothing is closed but what says nothing in time. Nearly full,
 * each newcomer takes the place of a connection on which nothing is being answered: of its own network where that has more than
 * its share, else of the network with most such connections, the oldest first. What is being answered is never closed; a newcomer
 * for whom there is no place is.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  // Their bytes bound headers. By their number the last ones would be ignored, and those say who somebody is.
  server.maxHeadersCount = 0
  new BoundedConnections(server, bounds)
}

class BoundedConnections {
  readonly #bounds: ConnectionBounds
  /** by peer, such as `127.0.0.1:4711`: over TLS a request has another socket than its connection */
  readonly #connections = new Map<string, Connection>()
  /** those that were used last stand last */
  readonly #networks = new Map<string, Set<Connection>>()
  readonly #count: () => void
  readonly #onClosed: (why: 'idle' | 'refused') => void
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(server: Server, bounds: ConnectionBounds) {
    this.#bounds = bounds
    const { metrics, listener } = bounds
    const open = metrics?.gauge('clusterpulse_http_connections', 'Open HTTP connections.', ['listener'])
    this.#count = () => open?.set({ listener }, this.#connections.size)
    const closed = metrics?.counter(
      'clusterpulse_http_connections_closed_total',
      'HTTP connections closed because there were nearly as many as may be: idle ones for others, and newcomers without a place.',
      ['listener', 'reason'],
    )
    this.#onClosed = (reason) => closed?.inc({ listener, reason })
    server.on('connection', (socket) => this.#arrived(socket))
    server.on('request', (request, response) => this.#asked(request, response))
    // Who listens for upgrades has to answer them: only where somebody else does may we look on.
    server.on('listening', () => {
      if (server.listenerCount('upgrade') > 0) server.prependListener('upgrade', (request) => this.#upgraded(request))
    })
  }

  #arrived(socket: Socket): void {
    const peer = peerOf(socket)
    const { from, steps, stepMs } = FIRST_REQUEST_MS
    const silence = setTimeout(() => socket.destroy(), from + Math.floor(Math.random() * steps) * stepMs)
    const connection: Connection = { socket, silence, network: networkOf(socket.remoteAddress ?? ''), answering: 0 }
    this.#connections.set(peer, connection)
    this.#used(connection)
    this.#count()
    socket.on('close', () => {
      clearTimeout(connection.silence)
      if (this.#connections.get(peer) === connection) this.#connections.delete(peer)
      const others = this.#networks.get(connection.network)
      others?.delete(connection)
      if (others?.size === 0) this.#networks.delete(connection.network)
      this.#count()
    })
    if (this.#connections.size > this.#bounds.max * NEARLY_FULL) this.#makeRoom(connection)
  }

  #asked(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(peerOf(request.socket))
    if (!connection) return
    this.#spoke(connection)
    response.on('close', () => {
      connection.answering--
      if (!connection.socket.destroyed) this.#used(connection)
    })
  }

  /** It is answered as long as it lives. */
  #upgraded(request: IncomingMessage): void {
    const connection = this.#connections.get(peerOf(request.socket))
    if (connection) this.#spoke(connection)
  }

  /** It asked, and is being answered. */
  #spoke(connection: Connection): void {
    clearTimeout(connection.silence)
    connection.silence = undefined
    connection.answering++
  }

  #used(connection: Connection): void {
    const all = this.#networks.get(connection.network) ?? new Set()
    all.delete(connection)
    this.#networks.set(connection.network, all.add(connection))
  }

  #makeRoom(newcomer: Connection): void {
    this.#warn()
    const { max } = this.#bounds
    const own = this.#networks.get(newcomer.network)?.size ?? 0
    const isOverShare = own > max / this.#networks.size
    const idle = isOverShare ? this.#oldestIdle(newcomer.network, newcomer) : this.#idleOfMany(newcomer)
    if (idle) this.#close(idle, 'idle')
    else if (isOverShare || this.#connections.size > max) this.#close(newcomer, 'refused')
  }

  #idleOfMany(newcomer: Connection): Connection | undefined {
    let [most, found]: [number, Connection | undefined] = [0, undefined]
    for (const [network, all] of this.#networks) {
      const idle = [...all].filter(({ answering }) => answering === 0).length
      const oldest = idle > most ? this.#oldestIdle(network, newcomer) : undefined
      if (oldest) [most, found] = [idle, oldest]
    }
    return found
  }

  #oldestIdle(network: string, newcomer: Connection): Connection | undefined {
    for (const connection of this.#networks.get(network) ?? [])
      if (connection.answering === 0 && connection !== newcomer) return connection
    return undefined
  }

  #close({ socket }: Connection, why: 'idle' | 'refused'): void {
    this.#onClosed(why)
    socket.destroy()
  }

  #warn(): void {
    const { logger, listener, max, warnEveryMs = 60_000 } = this.#bounds
    const now = performance.now()
    if (now - this.#warnedAt < warnEveryMs) return
    this.#warnedAt = now
    const [most] = [...this.#networks].sort(([, a], [, b]) => b.size - a.size)
    logger.warn(
      {
        listener,
        open: this.#connections.size,
        max,
        networks: this.#networks.size,
        most: most?.[0],
        ofMost: most?.[1].size,
      },
      'nearly as many HTTP connections are open as may be: idle ones are closed for new ones, first those of the address with most',
    )
  }
}

const peerOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string => `${remoteAddress}:${remotePort}`
