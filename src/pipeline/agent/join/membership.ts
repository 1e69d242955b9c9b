import { type Clock, FleetError } from '#model'
import type { Logger } from '#runtime'
import { certificateRequest, newKey } from './certificate-request.ts'
import type { Asking, MemberIdentity } from './identity.ts'
import { answered, type JoinOptions } from './join.ts'
import { lifeOf, renewalBy } from './renewal-time.ts'

export interface MembershipOptions extends Pick<JoinOptions, 'store' | 'version' | 'transport'> {
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** the next certificate is in force */
  readonly onRenewed: () => void
}

/** Longest sleep: timers of more than 24 days fire at once, and a clock may be set meanwhile. */
const LOOK_EVERY_MS = 3_600_000
/** After a no: a person may change it. */
const REFUSED_MS = 300_000

/** An identity that is kept good: its certificate is renewed in time, also one that ended while the agent was away, and it follows the hub's authorities. */
export class Membership implements AsyncDisposable {
  readonly #options: MembershipOptions
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  #identity: MemberIdentity
  #writing: Promise<void> = Promise.resolve()

  constructor(identity: MemberIdentity, options: MembershipOptions) {
    this.#identity = identity
    this.#options = options
    this.#running = this.#run()
  }

  get identity(): MemberIdentity {
    return this.#identity
  }

  /** The hub says by which authorities it is known from now on. What the disk does not take is said again by the next stream. */
  trust(roots: string): void {
    if (roots === this.#identity.roots || !roots.includes('BEGIN CERTIFICATE')) return
    const { logger } = this.#options
    this.#identity = { ...this.#identity, roots }
    logger.info({}, 'the hub is known by other authorities from now on')
    this.#keep(this.#identity).catch((error: unknown) =>
      logger.error({ err: FleetError.from(error) }, "the hub's authorities could not be kept"),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    await this.#writing.catch(() => undefined) // told where it was asked for
  }

  /** One after the other: each write is of the whole. */
  #keep(identity: MemberIdentity): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#options.store.keep(identity))
    return this.#writing
  }

  async #run(): Promise<void> {
    const { clock, logger, onRenewed } = this.#options
    const { signal } = this.#stop
    let at = this.#renewalAt(false)
    while (!signal.aborted) {
      const leftMs = at - clock.now()
      // The clock was set back meanwhile, by more than can be waited for.
      if (leftMs > 2 * this.#lifeMs()) at = this.#renewalAt(false)
      else if (leftMs > 0) {
        await clock.sleep(Math.min(leftMs, LOOK_EVERY_MS), signal)
      } else
        try {
          await this.#renew(signal)
          at = this.#renewalAt(true)
          const until = new Date(lifeOf(this.#identity.certificate).to).toISOString()
          logger.info({ until }, 'the certificate was renewed')
          onRenewed()
        } catch (error) {
          if (signal.aborted) return
          logger.error({ err: FleetError.from(error) }, 'the certificate was not renewed')
          at = clock.now() + REFUSED_MS
        }
    }
  }

  #renewalAt(isNew: boolean): number {
    const { clock, random } = this.#options
    return renewalBy(this.#identity.certificate, { now: clock.now(), random: random(), isNew })
  }

  #lifeMs(): number {
    const { from, to } = lifeOf(this.#identity.certificate)
    return to - from
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options
    const former = this.#identity
    const asking = await this.#asking(former)
    const say = (sentence: string) => logger.info({}, `renewal of the certificate: ${sentence}`)
    const next = await answered(asking, { ...this.#options, say, signal }, former)
    // What it was told meanwhile of the hub's authorities stays.
    this.#identity = this.#identity === former ? next : { ...next, roots: this.#identity.roots }
    if (this.#identity !== next) await this.#keep(this.#identity)
  }

  /** What was asked before and not answered, or the request of a new key, kept before it is sent. */
  async #asking({ hub, roots, cluster, agent, key: former }: MemberIdentity): Promise<Asking> {
    const before = await this.#options.store.asking()
    // One with the key in use was answered, and the agent killed before it forgot.
    const isOpen = before?.token === '' && before.key !== former && before.agent === agent
    if (isOpen && before.cluster === cluster) return { ...before, hub, roots }
    const key = newKey()
    const request = certificateRequest(key, { cluster, agent }).toString('base64')
    const asking = { hub, roots, cluster, agent, key, request, token: '' }
    await this.#options.store.ask(asking)
    return asking
  }
}
