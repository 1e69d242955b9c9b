import { setMaxListeners } from 'node:events'
import { type AgentFacts, FleetError } from '#model'
import type { Logger } from '#runtime'
import { encodeResponse, type JoinRequest } from '#wire'
import type { JoinStep } from '../line/join-desk.ts'
import type { Line, LineSubscriber } from '../line/line.ts'
import type { StreamIngester } from './ingest-port.ts'
import type { Holder } from './places.ts'
import { Session } from './session.ts'
import type { Counted, Effect, SessionEvent, SessionWorld } from './session-events.ts'
import type { Verdict } from './types.ts'

export interface CallOptions {
  readonly line: Line
  /** when it came */
  readonly since: number
  readonly world: Omit<SessionWorld, 'enter'> & {
    enter(...parameters: [...Parameters<SessionWorld['enter']>, Holder]): ReturnType<SessionWorld['enter']>
  }
  readonly ingester: Pick<StreamIngester, 'accept' | 'lost'>
  readonly logger: Logger
  readonly now: () => number
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** resolves when a failure to prove oneself may be answered */
  refused(signal: AbortSignal): Promise<void>
  /** asks for it; ends by itself when the signal aborts */
  join(call: AgentCall, request: JoinRequest, signal: AbortSignal): AsyncIterable<JoinStep>
  facts(call: AgentCall, facts: AgentFacts | undefined, now: boolean): void
  count(what: Counted): void
  received(bytes: number): void
  ended(call: AgentCall, code: string): void
}

/** Ends by which nobody may learn fast what would have counted. */
const SWEEPS_PER_LOOK = 10
const UNPROVEN = new Set(['unauthenticated', 'join_refused'])

/** One stream with its line: brings events to the session and does what it says. */
export class AgentCall implements Holder, LineSubscriber {
  readonly #options: CallOptions
  readonly #session: Session
  readonly #closed = new AbortController()
  #logger: Logger
  #mayRead = false
  /** since the last look */
  #sweeps: number
  #readTimer: NodeJS.Timeout | undefined
  #writable = true
  #flushing = false
  #flushWanted = false
  #ending = false

  constructor(options: CallOptions) {
    const { line, world, logger, since } = options
    this.#options = options
    // While the log takes nothing, every batch under way waits for the end of this: `maxUnacked` of them at the most.
    setMaxListeners(0, this.#closed.signal)
    this.#logger = logger
    const enter: SessionWorld['enter'] = (cluster, claimed) => world.enter(cluster, claimed, this)
    this.#session = new Session({ ...world, enter }, since)
    // Those that came together are not all looked at together.
    this.#sweeps = Math.floor(world.random() * SWEEPS_PER_LOOK)
    line.subscribe(this)
  }

  get session(): Session {
    return this.#session
  }

  get isDelivering(): boolean {
    return this.#session.isDelivering
  }

  /** Whether it is looked at in this sweep: each time while something is under way, else in every tenth, as most streams are open for long. */
  takesTurn(): boolean {
    if (!this.#session.isOpen) return true
    this.#sweeps = (this.#sweeps + 1) % SWEEPS_PER_LOOK
    return this.#sweeps === 0
  }

  facts(now: number): AgentFacts | undefined {
    return this.#session.facts(now)
  }

  replaced(message: string, retryAfterMs: number): void {
    this.tell({ kind: 'replaced', message, retryAfterMs })
  }

  disconnect(code: string, message: string): void {
    this.tell({ kind: 'disconnect', code, message })
  }

  /**
   * The call is here.
   * @param verdict undefined: it showed no credential
   * @param first its first message, where that came already
   */
  open(verdict: Verdict | undefined, first?: Uint8Array): void {
    this.#mayRead = first !== undefined
    this.tell({ kind: 'opened', verdict })
    if (first) this.message(first)
  }

  message(bytes: Uint8Array): void {
    this.#mayRead = false
    this.#options.received(bytes.length)
    this.tell({ kind: 'message', bytes })
  }

  finished(): void {
    this.tell({ kind: 'finished' })
  }

  drained(): void {
    this.#writable = true
    if (this.#flushWanted) this.#flushSoon()
    this.#readMore()
  }

  changed(what: 'credentials' | 'plan'): void {
    this.tell({ kind: what })
  }

  stopping(): void {
    this.disconnect('stopping', 'the hub is stopping')
  }

  closed(why: string, silentMs: number): void {
    if (this.#closed.signal.aborted) return
    this.tell({ kind: 'closed', why, silentMs })
    this.#closed.abort()
    clearTimeout(this.#readTimer)
    this.#options.ended(this, '')
  }

  tell(event: SessionEvent): void {
    const effects = this.#session.on(event, this.#options.now())
    if (effects.some((effect) => effect.kind === 'end' && UNPROVEN.has(effect.code))) {
      void this.#options.refused(this.#closed.signal).then(() => this.#do(effects))
      return
    }
    this.#do(effects)
    this.#readMore()
  }

  #do(effects: readonly Effect[]): void {
    for (const effect of effects) this.#doOne(effect)
  }

  #doOne(effect: Effect) {
    switch (effect.kind) {
      case 'send':
        return this.#send(encodeResponse({ payload: effect.answer }))
      case 'accept':
        return this.#work(effect.ticket, effect.afterMs, (signal) =>
          this.#options.ingester.accept(effect.offer, signal),
        )
      case 'lost':
        return this.#work(effect.ticket, effect.afterMs, () => this.#options.ingester.lost(effect.cluster, effect.loss))
      case 'join':
        return void this.#join(effect.request)
      case 'flush':
        return this.#flushSoon()
      case 'facts':
        return this.#options.facts(this, this.#session.facts(this.#options.now()), effect.now)
      case 'note':
        return this.#logger[effect.level]({ cluster: this.#session.cluster, ...effect.facts }, effect.sentence)
      case 'count':
        return this.#options.count(effect.what)
      case 'end':
        return this.#end(effect)
      default:
        effect satisfies never
    }
  }

  #send(message: Uint8Array): void {
    if (this.#ending || this.#closed.signal.aborted) return
    if (!this.#options.line.write(message)) this.#writable = false
  }

  async #join(request: JoinRequest): Promise<void> {
    const { signal } = this.#closed
    try {
      for await (const step of this.#options.join(this, request, signal)) this.tell({ kind: 'join', step })
    } catch (error) {
      if (signal.aborted) return
      this.#logger.error({ err: FleetError.from(error) }, 'a request to join could not be looked at')
      const message = 'the hub cannot look at the request now'
      this.tell({ kind: 'join', step: { kind: 'over', code: 'join_unavailable', message, retryAfterMs: 2_000 } })
    }
  }

  #work(ticket: number, afterMs: number, work: (signal: AbortSignal) => Promise<unknown>): void {
    const { signal } = this.#closed
    const run = async () => {
      if (afterMs > 0) await this.#options.sleep(afterMs, signal)
      if (signal.aborted) return
      await work(signal)
    }
    run().then(
      () => this.tell({ kind: 'accepted', ticket }),
      (error: unknown) => {
        if (!signal.aborted) this.tell({ kind: 'failed', ticket, error: FleetError.from(error) })
      },
    )
  }

  // What becomes safe in one turn of the log is acknowledged in one message; a reader that is slow gets fewer.
  #flushSoon() {
    if (!this.#writable) {
      this.#flushWanted = true
      return
    }
    if (this.#flushing) return
    this.#flushing = true
    this.#flushWanted = false
    setImmediate(() => {
      this.#flushing = false
      this.tell({ kind: 'flush' })
    })
  }

  #readMore(): void {
    if (this.#mayRead || !this.#writable || this.#closed.signal.aborted) return
    clearTimeout(this.#readTimer)
    const waitMs = this.#session.readAfterMs(this.#options.now())
    if (waitMs === 0) {
      this.#mayRead = true
      this.#options.line.allow(this.#session.isRegistered ? 'member' : 'newcomer')
    } else if (Number.isFinite(waitMs)) this.#readTimer = setTimeout(() => this.#readMore(), waitMs)
  }

  #end({ status, code, message }: Effect & { kind: 'end' }): void {
    this.#options.ended(this, code)
    if (this.#ending || this.#closed.signal.aborted) return
    this.#ending = true
    this.#options.line.end(status, `${code}: ${message}`)
  }
}
