import cluster, { type Worker } from 'node:cluster'
import type { Duplex } from 'node:stream'
import { type Clock, FleetError, invariant } from '#model'
import { Channel, OtherProcessError } from './channel.ts'
import type { Counts, ToFront, ToOwner } from './messages.ts'
import { OwnerEnd, type OwnerEndOptions } from './owner-end.ts'

/** How a process of streams is started: the same program again, which asks `isFront`. */
export interface FrontProgram {
  readonly exec: string
  readonly args: readonly string[]
  readonly execArgv?: readonly string[]
}

export interface FrontProcessOptions extends Omit<OwnerEndOptions, 'tell' | 'process'> {
  readonly start: Extract<ToFront, { kind: 'start' }>
  readonly program: FrontProgram
  readonly clock: Clock
  counted(counts: Counts): void
}

const START_MS = 30_000
const STOP_MS = 10_000
/** of the socket between the two processes */
const CHANNEL_FD = 4

class FrontNotStartedError extends FleetError {
  override readonly name = 'FrontNotStartedError'
  readonly code = 'front_not_started'
  readonly retryable = true

  constructor() {
    super('a process for streams of agents ended before it listened')
  }
}

/** One process of streams, from its start to its end, as its owner sees it. */
export class FrontProcess implements AsyncDisposable {
  readonly ended: Promise<void>
  readonly streams: OwnerEnd
  readonly #worker: Worker
  readonly #channel: Channel<ToFront, ToOwner>
  readonly #clock: Clock
  #listening: { resolve(port: number): void; reject(error: unknown): void } | undefined

  private constructor(options: FrontProcessOptions) {
    const { program, clock, start } = options
    this.#clock = clock
    cluster.setupPrimary({
      exec: program.exec,
      args: [...program.args],
      ...(program.execArgv && { execArgv: [...program.execArgv] }),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
    })
    this.#worker = cluster.fork()
    const socket = this.#worker.process.stdio[CHANNEL_FD]
    invariant(socket && 'write' in socket && 'read' in socket, 'a pipe to a child goes both ways')
    this.streams = new OwnerEnd({
      ...options,
      process: options.start.name,
      tell: (message) => this.#channel.tell(message),
    })
    this.ended = new Promise<void>((resolve) => {
      this.#worker.once('exit', () => resolve())
      this.#worker.once('error', () => resolve()) // it could not be started
    }).then(() => {
      this.#listening?.reject(new FrontNotStartedError())
      this.streams.ended()
      void this.#channel[Symbol.asyncDispose]()
    })
    this.#channel = new Channel<ToFront, ToOwner>(socket as Duplex, {
      heard: (message) => this.#heard(message, options),
      asked: (message, bytes) => this.streams.asked(message, bytes),
      // It cannot be reached any more: what still listens there must not.
      closed: () => this.#worker.process.kill('SIGKILL'),
    })
    this.#channel.tell(start)
  }

  /** @throws the error of the other process where it cannot listen */
  static async start(options: FrontProcessOptions): Promise<{ readonly process: FrontProcess; readonly port: number }> {
    const front = new FrontProcess(options)
    const waited = new AbortController()
    try {
      const port = await Promise.race([
        new Promise<number>((resolve, reject) => {
          front.#listening = { resolve, reject }
        }),
        options.clock.sleep(START_MS, waited.signal).then(() => Promise.reject(new FrontNotStartedError())),
      ])
      return { process: front, port }
    } catch (error) {
      front.#worker.process.kill('SIGKILL')
      await front.ended
      throw error
    } finally {
      waited.abort()
    }
  }

  get pid(): number {
    return this.#worker.process.pid ?? 0
  }

  /** Its streams end with `stopping`; it ends, by force if it must. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#channel.tell({ kind: 'stop' })
    const waited = new AbortController()
    const late = this.#clock.sleep(STOP_MS, waited.signal).then(() => {
      if (!waited.signal.aborted) this.#worker.process.kill('SIGKILL')
    })
    await this.ended
    waited.abort()
    await late
  }

  #heard(message: ToOwner, options: FrontProcessOptions) {
    switch (message.kind) {
      case 'listening':
        return this.#listening?.resolve(message.port)
      case 'failed':
        return this.#listening?.reject(new OtherProcessError({ ...message, retryable: true }))
      case 'counts':
        return options.counted(message)
      case 'facts':
      case 'recent':
      case 'left':
        return this.streams.heard(message)
      default:
        throw new Error(`nobody hears ${message.kind}`)
    }
  }
}
