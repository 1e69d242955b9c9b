import { setMaxListeners } from 'node:events'
import type { KubeObject } from '#kube'
import { FleetError } from '#model'
import type { Logger, Part } from '#runtime'
import type { Controller } from './controller.ts'
import type { Informer } from './informer.ts'
import type { LeaderElection } from './leader-election.ts'

/** Controllers that run together while this process leads. */
export interface ManagerOptions {
  readonly name?: string
  readonly controllers: readonly Controller[]
  /** absent: the only candidate, leading from the start */
  readonly election?: LeaderElection
  /** What else runs while this process leads: begins with the controllers, ends with them, is awaited. */
  readonly whileLeading?: (signal: AbortSignal) => Promise<void>
  readonly logger: Logger
}

/**
 * Runs controllers: first their informers, then, when every cache is in sync and (with an election) while leading, the
 * controllers. Losing the lease stops the controllers and keeps the informers, ready for the next turn.
 */
export class Manager implements Part {
  readonly name: string
  readonly #options: ManagerOptions
  readonly #stop = new AbortController()
  #loop: Promise<void> | undefined
  #isLeading = false

  constructor(options: ManagerOptions) {
    this.name = options.name ?? 'manager'
    this.#options = options
    setMaxListeners(0, this.#stop.signal) // each informer waits with it, and there may be many
  }

  /** Whether the controllers are at work here. */
  get isLeading(): boolean {
    return this.#isLeading
  }

  /** Whether every cache holds its first list: for readiness. */
  get isSynced(): boolean {
    return this.#informers().every((informer) => informer.isSynced)
  }

  /** What is not as it should be, for people: what is known may be old, or work on it fails. */
  faults(): readonly string[] {
    const troubled = this.#informers().flatMap(({ name, trouble }) => (trouble ? [{ name, ...trouble }] : []))
    const [longest] = troubled.sort((a, b) => a.since - b.since)
    const names = [...new Set(troubled.map(({ name }) => name))].join(', ')
    const unread =
      longest &&
      `${names} cannot be followed since ${new Date(longest.since).toISOString()}: ${FleetError.from(longest.error).message}`
    const failing = this.#options.controllers.flatMap(({ fault }) => fault ?? [])
    return [...(unread === undefined ? [] : [unread]), ...failing]
  }

  /** Begins; does not wait for the API server, which may be away for now. */
  start(): Promise<void> {
    for (const informer of this.#informers()) informer.start()
    this.#loop ??= this.#run()
    return Promise.resolve()
  }

  /** Stops the controllers, gives the lease back, stops the informers; resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#loop
    await Promise.all([...this.#informers()].map((informer) => informer.stop()))
  }

  async #run(): Promise<void> {
    const { election, logger } = this.#options
    const { signal } = this.#stop
    try {
      await Promise.all(this.#informers().map((informer) => informer.synced(signal)))
      if (election) await election.run((leading) => this.#lead(leading), signal)
      else await this.#lead(signal)
    } catch (error) {
      if (!signal.aborted) logger.error({ err: error }, 'controllers ended unexpectedly')
    }
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { controllers, whileLeading, logger } = this.#options
    for (const controller of controllers) controller.start()
    const beside = whileLeading?.(signal).catch((error: unknown) => {
      if (!signal.aborted) logger.error({ err: error }, 'what runs beside the controllers ended unexpectedly')
    })
    this.#isLeading = true
    logger.debug({ controllers: controllers.map(({ name }) => name) }, 'controllers started')
    await aborted(signal)
    this.#isLeading = false
    await beside
    await Promise.all(controllers.map((controller) => controller.stop()))
  }

  #informers(): readonly Informer<KubeObject>[] {
    return [...new Set(this.#options.controllers.flatMap(({ informers }) => informers))]
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
