import { isClusterTrouble, type KubeClient, KubeError } from '#kube'
import { type Clock, seconds } from '#model'

const EVERY_MS = seconds(3)
/** Together with a round of asking less than what counts as lasting. @see lastingTrouble */
const ANSWERED_WITHIN_MS = seconds(7)

export interface ApiPulseOptions {
  readonly kube: Pick<KubeClient, 'ping'>
  readonly clock: Clock
}

/**
 * Asks an API server again and again whether it is there: the watches of one that hangs are as silent as those of one where nothing
 * happens. Hearing from it again wakes what waits to watch it.
 */
export class ApiPulse implements AsyncDisposable {
  readonly #options: ApiPulseOptions
  readonly #stop = new AbortController()
  #trouble: { readonly since: number; readonly error: unknown } | undefined
  #running: Promise<void> | undefined

  constructor(options: ApiPulseOptions) {
    this.#options = options
  }

  /** Since when it has not answered, ms, and what came instead; undefined: it answered. */
  get trouble(): { readonly since: number; readonly error: unknown } | undefined {
    return this.#trouble
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stop
    let answeredAt = clock.now()
    while (!signal.aborted) {
      const error = await this.#ask()
      if (signal.aborted) return
      if (error === undefined) answeredAt = clock.now()
      this.#trouble = error === undefined ? undefined : { since: answeredAt, error }
      await clock.sleep(EVERY_MS, signal)
    }
  }

  /** @returns why it did not answer; a refusal is an answer */
  async #ask(): Promise<unknown> {
    const { kube, clock } = this.#options
    const ended = new AbortController()
    const end = () => ended.abort()
    this.#stop.signal.addEventListener('abort', end, { once: true })
    const late = clock.sleep(ANSWERED_WITHIN_MS, ended.signal).then(() => {
      end()
      return new KubeError('timeout', `nothing came within ${ANSWERED_WITHIN_MS / 1000} s`)
    })
    const asked = kube.ping(ended.signal, true).then(
      () => undefined,
      (error: unknown) => (isClusterTrouble(error) ? error : undefined),
    )
    try {
      return await Promise.race([asked, late])
    } finally {
      this.#stop.signal.removeEventListener('abort', end)
      end()
    }
  }
}
