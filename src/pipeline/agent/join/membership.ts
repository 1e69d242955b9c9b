import { type Clock, FleetError } from '#model'
import type { Logger } from '#runtime'
import { areHubAddresses, type JoinText, MAX_HUB_ADDRESSES } from '#wire'
import type { HubTrust } from '../types.ts'
import { certificateRequest, keyId, newKey } from './certificate-request.ts'
import type { Asking, HubEnds, MemberIdentity } from './identity.ts'
import { answered, isJoinedBy, type JoinOptions, join } from './join.ts'
import { JoinError } from './join-error.ts'
import { lifeOf, renewalBy } from './renewal-time.ts'

export interface MembershipOptions extends Pick<JoinOptions, 'store' | 'version' | 'transport'> {
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** the next certificate is in force */
  readonly onRenewed: () => void
  /** one it was given since it joined: shown, once, where the hub says that it must join anew */
  readonly newToken?: JoinText
}

/** In the hub's answer where nothing but a new token helps. */
const JOIN_ANEW = /must join anew/

/** Longest sleep: timers of more than 24 days fire at once, and a clock may be set meanwhile. */
const LOOK_EVERY_MS = 3_600_000
/** What went wrong here, such as a disk that is full, may go well soon. */
const FAILED_MS = 300_000
/** After a no: a person may change it, and then the stream is served again, or not before this. */
const REFUSED_MS = 24 * 3_600_000
/** Streams that the hub ends before it serves them, until it is asked why: a renewal is told. */
const REFUSALS = 3
/** Asked again as long as it does not serve us: what it says may be another thing by now. */
const WHY_AGAIN = { fromMs: 30_000, toMs: 600_000 } as const
/** The answer to that is not waited for longer: where the hub is away, it is no answer. */
const WHY_MS = 30_000

/**
 * An identity that is kept good: its certificate is renewed in time, also one that ended while the agent was away, and it follows
 * the hub's authorities and addresses. Where the hub does not serve it, it asks why, keeps the answer at hand, and asks again now and then.
 */
export class Membership implements AsyncDisposable {
  readonly #options: MembershipOptions
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  #identity: MemberIdentity
  #writing: Promise<void> = Promise.resolve()
  /** when it is renewed next, by our clock */
  #at: number
  #refusals = 0
  #isTurnedDown = false
  /** how often it was asked why since it was served last */
  #questions = 0
  /** when it may be asked why again, by our clock */
  #askAgainAt = Number.NEGATIVE_INFINITY
  /** the question that is due is that one */
  #isAskingWhy = false
  #why: string | undefined
  #newToken: JoinText | undefined
  #wake = new AbortController()

  constructor(identity: MemberIdentity, options: MembershipOptions) {
    this.#identity = identity
    this.#options = options
    this.#newToken = options.newToken && !isJoinedBy(identity, options.newToken) ? options.newToken : undefined
    this.#at = this.#renewalAt(false)
    this.#running = this.#run()
  }

  get identity(): MemberIdentity {
    return this.#identity
  }

  /** What the hub said when it was asked why it does not serve us; undefined: it does, or was not asked yet. */
  get why(): string | undefined {
    return this.#why
  }

  /**
   * The hub says by which authorities it is known from now on, and where it is. What the disk does not take is said again by the next stream.
   * @param by the address it said so at: where that is none of the new ones, it stays the last of them until another one was good
   */
  trust({ roots, addresses }: HubTrust, by?: string): void {
    const { logger } = this.#options
    const before = this.#identity
    const isKnownAnew = roots !== before.roots && roots.includes('BEGIN CERTIFICATE')
    const hub = followed(before.hub, addresses, by)
    if (!isKnownAnew && hub === before.hub) return
    this.#identity = { ...before, hub, ...(isKnownAnew && { roots }) }
    if (isKnownAnew) logger.info({}, 'the hub is known by other authorities from now on')
    if (hub !== before.hub) logger.info({ addresses: hub.addresses }, 'the hub is at these addresses from now on')
    this.#keep(this.#identity).catch((error: unknown) =>
      logger.error({ err: FleetError.from(error) }, 'what the hub said of itself could not be kept'),
    )
  }

  /** The hub serves our stream: what it said no to, it may say yes to now. */
  welcomed(): void {
    this.#refusals = 0
    this.#questions = 0
    this.#askAgainAt = Number.NEGATIVE_INFINITY
    this.#why = undefined
    if (!this.#isTurnedDown) return
    this.#isTurnedDown = false
    this.#renewFrom(this.#renewalAt(false))
  }

  /** The hub was reached, and did not serve our stream; or it did, and said that our certificate counts no more. */
  refused(how?: 'revoked'): void {
    const now = this.#options.clock.now()
    this.#refusals += how === 'revoked' ? REFUSALS : 1
    // A clock that was set back must not keep it from asking.
    const isEarly = now < this.#askAgainAt && this.#askAgainAt - now <= WHY_AGAIN.toMs
    if (this.#refusals < REFUSALS || this.#isAskingWhy || isEarly) return
    this.#askAgainAt = now + Math.min(WHY_AGAIN.toMs, WHY_AGAIN.fromMs * 2 ** this.#questions)
    this.#questions++
    this.#isAskingWhy = true
    this.#wake.abort()
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

  #renewFrom(at: number): void {
    this.#at = at
    this.#wake.abort()
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      const leftMs = this.#isAskingWhy ? 0 : this.#at - clock.now()
      // The clock was set back meanwhile, by more than can be waited for.
      if (leftMs > 2 * this.#lifeMs()) this.#at = this.#renewalAt(false)
      else if (leftMs > 0) {
        this.#wake = new AbortController()
        await clock.sleep(Math.min(leftMs, LOOK_EVERY_MS), AbortSignal.any([signal, this.#wake.signal]))
      } else await this.#renewOrSay(signal)
    }
  }

  async #renewOrSay(signal: AbortSignal): Promise<void> {
    const late = this.#isAskingWhy ? AbortSignal.timeout(WHY_MS) : undefined
    this.#isAskingWhy = false
    try {
      await this.#renew(late ? AbortSignal.any([signal, late]) : signal)
      this.#begin('the certificate was renewed')
    } catch (error) {
      if (signal.aborted) return
      if (!late?.aborted) {
        this.#failed(FleetError.from(error))
        return await this.#joinAnew(signal)
      }
      // Asked again when it ended as many streams more.
      this.#refusals = 0
      this.#at = this.#renewalAt(false)
    }
  }

  /** Another certificate is in force. */
  #begin(words: string): void {
    const { logger, onRenewed } = this.#options
    this.#isTurnedDown = false
    this.#why = undefined
    this.#at = this.#renewalAt(true)
    const until = new Date(lifeOf(this.#identity.certificate).to).toISOString()
    logger.info({ until, key: keyId(this.#identity.key).slice(0, 16) }, words)
    onRenewed()
  }

  /** However long it takes to be accepted: the membership of before is over. */
  async #joinAnew(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options
    const text = this.#newToken
    const over = this.#why
    if (!text || !this.#isTurnedDown || over === undefined || !JOIN_ANEW.test(over)) return
    this.#newToken = undefined
    const say = (sentence: string) => {
      this.#why = sentence
      logger.info({}, `it joins anew with the token it was given: ${sentence}`)
    }
    try {
      this.#identity = await join(text, { ...this.#options, say, signal })
      this.#begin('it joined anew')
    } catch (error) {
      if (signal.aborted) return
      const { message } = FleetError.from(error)
      this.#why = `${over}; the token it was given since does not let it in: ${message}`
      logger.warn({ reason: message }, 'the token it was given since does not let it join anew')
    }
  }

  #failed(error: FleetError): void {
    const { clock, logger } = this.#options
    this.#isTurnedDown = error instanceof JoinError
    if (!this.#isTurnedDown) logger.error({ err: error }, 'the certificate was not renewed')
    else if (this.#why !== error.message)
      logger.warn(
        { reason: error.message },
        'the hub does not serve this member; it is asked again now and then, and whatever changes is said here',
      )
    if (this.#isTurnedDown) this.#why = error.message
    this.#at = clock.now() + Math.min(this.#isTurnedDown ? REFUSED_MS : FAILED_MS, this.#lifeMs())
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
    // What it was told meanwhile of the hub stays.
    const { hub, roots } = this.#identity
    this.#identity = this.#identity === former ? next : { ...next, hub, roots }
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

/** The same where nothing is new. An address that was never tried must not be the only one. */
function followed(hub: HubEnds, told: readonly string[], by: string | undefined): HubEnds {
  if (!areHubAddresses(told)) return hub
  const rest = by === undefined ? hub.addresses : [by]
  const addresses = [...new Set([...told, ...rest])].slice(0, MAX_HUB_ADDRESSES)
  return addresses.join() === hub.addresses.join() ? hub : { ...hub, addresses }
}
