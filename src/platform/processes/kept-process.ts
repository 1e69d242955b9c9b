import cluster, { type Worker } from 'node:cluster'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Clock, invariant, systemClock } from '#model'
import { backoffMs, type Logger } from '#runtime'
import { Channel, type ChannelEnd } from './channel.ts'

/** How a further process is started: usually the same program again, which asks `isChild`. */
export interface Program {
  readonly exec: string
  readonly args: readonly string[]
  readonly execArgv?: readonly string[]
}

/** Which program is kept running, and what it is told. */
export interface KeptProcessOptions<Out, In> extends Pick<ChannelEnd<In>, 'heard' | 'asked'> {
  readonly name: string
  readonly program: Program
  /** told first to every process that is started */
  begin(): Out
  /** asks it to end by itself */
  readonly end: Out
  readonly logger: Logger
  readonly clock?: Clock
  readonly random?: () => number
  /** how long it may take to end by itself before it is killed, ms; default 10 s */
  readonly endWithinMs?: number
  /** called after every start and every end; undefined: none runs */
  readonly onChange?: (pid: number | undefined) => void
}

/** of the socket between the two processes */
const CHANNEL_FD = 4
/** One that lived so long started well: its next start is not held back. */
const STABLE_MS = 60_000
const END_WITHIN_MS = 10_000
/** Between two starts: what it does is done by nobody meanwhile. */
const MAX_REST_MS = 5_000

/** Whether this process was started by a KeptProcess. */
export const isChild = (): boolean => cluster.isWorker

/** The channel to the process that started this one; only where `isChild`. */
export const channelToParent = <Out, In>(end: ChannelEnd<In>): Channel<Out, In> =>
  new Channel<Out, In>(new Socket({ fd: CHANNEL_FD, readable: true, writable: true }), end)

/**
 * A process that is started again when it ends, until it is no longer wanted. It ends with this one: when the channel
 * closes it is told nothing more, and should end at once. Ports it listens on are shared with the others of this process.
 */
export class KeptProcess<Out, In> implements AsyncDisposable {
  readonly #options: KeptProcessOptions<Out, In>
  readonly #clock: Clock
  readonly #stop = new AbortController()
  readonly #loop: Promise<void>
  #running: { readonly worker: Worker; readonly channel: Channel<Out, In> } | undefined

  /** Begins to start it; does not wait. */
  constructor(options: KeptProcessOptions<Out, In>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#loop = this.#keep()
  }

  get name(): string {
    return this.#options.name
  }

  /** undefined: none runs just now */
  get pid(): number | undefined {
    return this.#running?.worker.process.pid
  }

  /** to the process that runs; undefined: none does just now */
  get channel(): Channel<Out, In> | undefined {
    return this.#running?.channel
  }

  /** It ends by itself, by force if it must. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#stop.signal.aborted) {
      this.#stop.abort()
      this.#running?.channel.tell(this.#options.end)
      const waited = new AbortController()
      const late = this.#clock.sleep(this.#options.endWithinMs ?? END_WITHIN_MS, waited.signal).then(() => {
        if (!waited.signal.aborted) this.#running?.worker.process.kill('SIGKILL')
      })
      await this.#loop
      waited.abort()
      await late
    }
    await this.#loop
  }

  async #keep(): Promise<void> {
    const { name, logger, random = Math.random, onChange } = this.#options
    const { signal } = this.#stop
    for (let attempt = 0; !signal.aborted; ) {
      const since = this.#clock.now()
      const { worker, ended } = this.#start()
      logger.info({ process: name, pid: worker.process.pid }, 'a process of the hub runs')
      onChange?.(worker.process.pid)
      await ended
      this.#running = undefined
      onChange?.(undefined)
      if (signal.aborted) return
      logger.error({ process: name, pid: worker.process.pid }, 'a process of the hub ended; it is started again')
      attempt = this.#clock.now() - since > STABLE_MS ? 0 : attempt + 1
      await this.#clock.sleep(backoffMs(attempt, { fromMs: 250, toMs: MAX_REST_MS, random }), signal)
    }
  }

  #start(): { readonly worker: Worker; readonly ended: Promise<void> } {
    const { program, begin, heard, asked } = this.#options
    cluster.setupPrimary({
      exec: program.exec,
      args: [...program.args],
      ...(program.execArgv && { execArgv: [...program.execArgv] }),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
    })
    const worker = cluster.fork()
    const socket = worker.process.stdio[CHANNEL_FD]
    invariant(socket && 'write' in socket && 'read' in socket, 'a pipe to a child goes both ways')
    const ended = new Promise<void>((resolve) => {
      worker.once('exit', () => resolve())
      worker.once('error', () => resolve()) // it could not be started
    })
    const channel = new Channel<Out, In>(socket as Duplex, {
      heard,
      ...(asked && { asked }),
      // It cannot be reached any more: what it still holds open must go.
      closed: () => worker.process.kill('SIGKILL'),
    })
    this.#running = { worker, channel }
    channel.tell(begin())
    return { worker, ended: ended.finally(() => channel[Symbol.asyncDispose]()) }
  }
}
