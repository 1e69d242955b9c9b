import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ISocketFactory } from 'kafkajs'
import { minutes } from '#model'
import { AddressRefusedError, containReading, type OutboundGuard } from '#outbound'
import { Answers } from './answers.ts'
import type { KafkaBroker } from './plan.ts'

const KEEP_ALIVE_MS = minutes(1)
/**
 * What comes is looked at by what was asked, before the library has it. The library sends again by itself what was not answered, and Kafka
 * takes what comes last for the newest: so each piece is asked for whether it may still be sent.
 */
function contain(socket: Socket, mustLead: () => void): Socket {
  const answers = new Answers()
  const write = socket.write.bind(socket) as (piece: Buffer, ...more: unknown[]) => boolean
  socket.write = ((piece: Buffer, ...more: unknown[]) => {
    try {
      mustLead()
    } catch (error) {
      socket.destroy(error as Error) // of what it is given
      return false
    }
    answers.ask(piece)
    return write(piece, ...more)
  }) as Socket['write'] // what the library writes are buffers
  containReading(socket, (piece) => answers.fault(piece))
  return socket
}

/**
 * Every connection to a broker is dialed here, also to those that others name: the guard judges each address, and what is open is
 * known, so that it can be ended.
 */
export class KafkaDialer {
  readonly #guard: OutboundGuard
  readonly #mustLead: () => void
  readonly #hosts: ReadonlyMap<string, string>
  readonly #sockets = new Set<Socket>()
  #isEnded = false
  /** why the newest connection was not made; the library keeps the sentence of it alone */
  refused: AddressRefusedError | undefined
  /** as the library takes them: it divides at the first colon, so that an IPv6 address needs another name */
  readonly seeds: string[]

  /** @param mustLead as that of a SinkContext */
  constructor(brokers: readonly KafkaBroker[], guard: OutboundGuard, mustLead: () => void = () => undefined) {
    this.#guard = guard
    this.#mustLead = mustLead
    const names = brokers.map(({ host }, at) => (isIP(host) === 6 ? `broker-${at}.invalid` : host))
    this.#hosts = new Map(names.map((name, at) => [name, brokers[at]?.host ?? name]))
    this.seeds = names.map((name, at) => `${name}:${brokers[at]?.port}`)
  }

  readonly dial: ISocketFactory = ({ host: name, port, ssl, onConnect }) => {
    if (this.#isEnded) throw new Error('the connection was closed')
    const host = this.#hosts.get(name) ?? name
    this.#check(host)
    const options = { host, port, lookup: this.#lookup }
    const socket = ssl
      ? connectTls({ ...options, ...(isIP(host) === 0 && { servername: host }), ...ssl }, onConnect)
      : connect(options, onConnect)
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return contain(socket, this.#mustLead).setKeepAlive(true, KEEP_ALIVE_MS)
  }

  /** Ends all connections, and with them what waits for an answer; there are no others. */
  end(): void {
    this.#isEnded = true
    for (const socket of this.#sockets) socket.destroy(new Error('the connection was closed'))
  }

  #check(host: string): void {
    try {
      this.#guard.check(host)
    } catch (error) {
      if (error instanceof AddressRefusedError) this.refused = error
      throw error
    }
  }

  readonly #lookup: LookupFunction = (hostname, options, callback) =>
    this.#guard.lookup(hostname, options, (error, address, family) => {
      if (error instanceof AddressRefusedError) this.refused = error
      callback(error, address, family)
    })
}
