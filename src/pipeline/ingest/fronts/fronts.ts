import { type Clock, systemClock } from '#model'
import { backoffMs, type Logger, type Metrics, silentLogger } from '#runtime'
import { defaultLimits } from '../stream/limits.ts'
import { LocalSeats } from '../stream/seats.ts'
import type { AgentServerOptions } from '../stream/server.ts'
import type { Agents } from '../stream/types.ts'
import { FrontProcess, type FrontProgram } from './front-process.ts'
import type { Counts } from './messages.ts'

export interface AgentFrontsOptions extends AgentServerOptions {
  /** how many */
  readonly processes: number
  readonly program: FrontProgram
}

/** One that lived so long started well: its next start is not held back. */
const STABLE_MS = 60_000

/**
 * Agents received in several processes, on one port. This one owns the log, what is known of clusters, credentials and
 * plans; the others own connections: TLS, HTTP/2, messages, their checks and numbers. What one of them acknowledges was in
 * the log here before. One that dies is started again; its agents come back to any of them.
 */
export class AgentFronts implements AsyncDisposable {
  readonly #options: AgentFrontsOptions
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #seats: LocalSeats
  readonly #count: ReturnType<typeof frontMetrics>
  readonly #stop = new AbortController()
  readonly #running = new Map<string, FrontProcess>()
  readonly #keeping: Promise<void>[] = []
  readonly #unlisten: () => void
  readonly #sweep: NodeJS.Timeout
  #port: number

  private constructor(options: AgentFrontsOptions) {
    const { clock = systemClock, logger = silentLogger, metrics, limits, verifier, plans, ingester } = options
    this.#options = options
    this.#clock = clock
    this.#logger = logger
    this.#port = options.port
    this.#count = frontMetrics(metrics)
    const { factsEveryMs, sweepMs } = { ...defaultLimits, ...limits }
    const onContested = () => this.#count.contested()
    this.#seats = new LocalSeats({ verifier, plans, ingester, clock, logger, factsEveryMs, onContested })
    this.#unlisten = this.#seats.onChange((what, cluster) => {
      for (const { streams } of this.#running.values()) {
        if (what === 'credentials') streams.check()
        else streams.planned(cluster)
      }
    })
    this.#sweep = setInterval(() => {
      for (const { streams } of this.#running.values()) streams.check()
      this.#seats.sweep()
    }, sweepMs)
  }

  /**
   * All of them listen when it resolves.
   * @throws OtherProcessError with what the first that failed said, such as code EADDRINUSE
   */
  static async start(options: AgentFrontsOptions): Promise<AgentFronts> {
    const fronts = new AgentFronts(options)
    try {
      for (let i = 1; i <= options.processes; i++) await fronts.#open(`stream-${i}`)
    } catch (error) {
      await fronts[Symbol.asyncDispose]()
      throw error
    }
    return fronts
  }

  /** where they listen */
  get address(): { readonly host: string; readonly port: number } {
    return { host: this.#options.host, port: this.#port }
  }

  /** the live streams, whichever process has them */
  get agents(): Agents {
    return this.#seats.agents
  }

  /** pids of the processes that run, by their names */
  get processes(): ReadonlyMap<string, number> {
    return new Map([...this.#running].map(([name, { pid }]) => [name, pid]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stop.signal.aborted) return
    this.#stop.abort()
    this.#unlisten()
    clearInterval(this.#sweep)
    await Promise.all([...this.#running.values()].map((front) => front[Symbol.asyncDispose]()))
    await Promise.all(this.#keeping)
    await this.#seats[Symbol.asyncDispose]()
  }

  async #open(name: string): Promise<void> {
    const front = await this.#start(name)
    this.#keeping.push(this.#keep(name, front))
  }

  async #start(name: string): Promise<FrontProcess> {
    const { host, port: wanted, tls, limits = {}, ingester, program } = this.#options
    // Processes share the listening socket of those that name the same port: 0 is one of them as well.
    const { process, port } = await FrontProcess.start({
      start: { kind: 'start', name, host, port: wanted, tls, limits },
      program,
      clock: this.#clock,
      seats: this.#seats,
      ingester,
      now: () => this.#clock.now(),
      counted: (counts) => this.#count.counted(name, counts),
    })
    this.#port = port
    this.#running.set(name, process)
    this.#count.started(name, process.pid)
    this.#logger.info({ process: name, pid: process.pid, port }, 'a process for streams of agents runs')
    return process
  }

  async #keep(name: string, first: FrontProcess): Promise<void> {
    const { signal } = this.#stop
    let front: FrontProcess | undefined = first
    for (let attempt = 0; ; ) {
      const since = this.#clock.now()
      if (front) {
        await front.ended
        this.#running.delete(name)
        this.#count.ended(name, front.pid)
        if (signal.aborted) return
        this.#logger.error({ process: name, pid: front.pid }, 'a process for streams of agents ended; it starts again')
      }
      attempt = front && this.#clock.now() - since > STABLE_MS ? 0 : attempt + 1
      const random = this.#options.random ?? Math.random
      await this.#clock.sleep(backoffMs(attempt, { fromMs: 250, toMs: 30_000, random }), signal)
      if (signal.aborted) return
      front = await this.#start(name).catch((error: unknown) => {
        this.#logger.error({ process: name, err: error }, 'a process for streams of agents does not start')
        return undefined
      })
      if (front && signal.aborted) await front[Symbol.asyncDispose]()
    }
  }
}

/** What the processes counted, each under its name; nothing without a registry. */
function frontMetrics(metrics: Metrics | undefined) {
  const streams = metrics?.gauge('clusterpulse_agent_streams', 'Open streams of agents.', ['process'])
  const info = metrics?.gauge(
    'clusterpulse_ingest_process_info',
    'Processes that own streams of agents; the log and state have one owner, which serves this page.',
    ['process', 'pid'],
  )
  const memory = metrics?.gauge('clusterpulse_ingest_process_resident_bytes', 'Memory of such a process.', ['process'])
  const cpu = metrics?.gauge('clusterpulse_ingest_process_cpu_seconds', 'CPU time such a process used.', ['process'])
  const contested = metrics?.counter(
    'clusterpulse_agent_contested_total',
    'Times two agents took one identity from each other.',
  )
  const restarts = metrics?.counter(
    'clusterpulse_ingest_process_ends_total',
    'Times a process that owned streams of agents ended.',
    ['process'],
  )
  return {
    contested: () => contested?.inc(),
    started: (process: string, pid: number) => info?.set({ process, pid: String(pid) }, 1),
    ended(process: string, pid: number) {
      info?.remove({ process, pid: String(pid) })
      streams?.set({ process }, 0)
      restarts?.inc({ process })
    },
    counted(process: string, counts: Counts) {
      streams?.set({ process }, counts.streams)
      memory?.set({ process }, counts.rssBytes)
      cpu?.set({ process }, counts.cpuSeconds)
      for (const { name, help, labels, more } of counts.rows)
        metrics?.counter(name, help, [...Object.keys(labels), 'process']).inc({ ...labels, process }, more)
    },
  }
}
