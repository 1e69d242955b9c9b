import cluster from 'node:cluster'
import { Socket } from 'node:net'
import { FleetError, seconds, systemClock } from '#model'
import { type Logger, Metrics } from '#runtime'
import { AgentServer } from '../stream/server.ts'
import { Channel } from './channel.ts'
import { Counting } from './counting.ts'
import type { ToFront, ToOwner } from './messages.ts'
import { RemoteSeats } from './remote-seats.ts'

const CHANNEL_FD = 4
const COUNT_EVERY_MS = seconds(1)

/** Whether this process was started to own streams for another one, which owns log and state. */
export const isFront = (): boolean => cluster.isWorker

/**
 * Owns streams of agents for the process that started this one, until that one says so or is gone. Signals of a terminal are
 * that one's matter; SIGTERM ends this process alone, gracefully.
 */
export async function runFront({ logger }: { readonly logger: Logger }): Promise<void> {
  process.on('SIGINT', () => logger.debug({}, 'the owner of the log stops this process'))
  const front = new Front(logger)
  process.on('SIGTERM', () => front.stop())
  await front.ended
}

class Front {
  readonly ended: Promise<void>
  readonly #logger: Logger
  readonly #channel: Channel<ToOwner, ToFront>
  readonly #metrics = new Metrics({}, { processMetrics: false })
  readonly #counting = new Counting(this.#metrics)
  #seats: RemoteSeats | undefined
  #server: AgentServer | undefined
  #timer: NodeJS.Timeout | undefined
  #end: () => void = () => undefined
  #stopping = false

  constructor(logger: Logger) {
    this.#logger = logger
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#channel = new Channel<ToOwner, ToFront>(new Socket({ fd: CHANNEL_FD, readable: true, writable: true }), {
      heard: (message) => this.#heard(message),
      asked: () => Promise.reject(new Error('the owner of the log asks nothing')),
      // Nothing can be acknowledged any more.
      closed: () => this.#end(),
    })
  }

  stop(): void {
    if (this.#stopping) return
    this.#stopping = true
    void this.#stop().finally(() => this.#end())
  }

  #heard(message: ToFront): void {
    if (message.kind === 'stop') this.stop()
    else if (message.kind === 'start') void this.#start(message)
    else this.#seats?.heard(message)
  }

  async #start({ name, host, port, tls, limits }: Extract<ToFront, { kind: 'start' }>): Promise<void> {
    const logger = this.#logger.child({ process: name })
    this.#seats = new RemoteSeats({ channel: this.#channel, now: () => systemClock.now() })
    try {
      const server = await AgentServer.startWith(
        { host, port, tls, limits, logger, metrics: this.#metrics },
        this.#seats,
      )
      this.#server = server
      this.#timer = setInterval(() => void this.#count(server), COUNT_EVERY_MS)
      this.#channel.tell({ kind: 'listening', port: server.address.port })
    } catch (error) {
      const { message } = FleetError.from(error)
      const code = (error as { readonly code?: unknown }).code
      this.#channel.tell({ kind: 'failed', code: typeof code === 'string' ? code : 'unexpected', message })
      this.#logger.error({ process: name, err: error }, 'agents cannot be received here')
    }
  }

  async #stop(): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
    clearInterval(this.#timer)
    if (this.#server) await this.#count(this.#server)
  }

  async #count({ streams }: AgentServer): Promise<void> {
    const { user, system } = process.cpuUsage()
    this.#channel.tell({
      kind: 'counts',
      streams,
      rssBytes: process.memoryUsage.rss(),
      cpuSeconds: (user + system) / 1e6,
      rows: await this.#counting.more(),
    })
  }
}
