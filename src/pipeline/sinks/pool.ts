import { createHash } from 'node:crypto'
import { canonicalJson } from '#extract'
import { minutes, seconds, steadyClock } from '#model'
import { CircuitBreaker } from '#runtime'
import { openSink } from './open.ts'
import { type DeclarationOf, type Sink, type SinkContext, SinkError, type SinkFamily } from './sink.ts'
import { Slots } from './slots.ts'

/** One object of a sink, with what its references lead to. */
export type SinkObject = {
  readonly [F in SinkFamily]: { readonly family: F; readonly uid: string; readonly declaration: DeclarationOf[F] }
}[SinkFamily]

export interface SinkPoolOptions {
  readonly context: SinkContext
  /** a call that takes longer fails; default 2 min */
  readonly callTimeoutMs?: number
  /** how long a call may go on after that or after its signal; then its sink is closed and opened anew; default 5 s */
  readonly graceMs?: number
  /** until a sink is opened; default 30 s */
  readonly openTimeoutMs?: number
  /** calls to one sink at the same time; default 4 */
  readonly parallelCalls?: number
  /** a sink that nobody used for so long is closed; default 48 h */
  readonly unusedMs?: number
  /** how long a sink that failed five times in a row is left alone; default 5 s */
  readonly recoveryMs?: number
  /** opens the sink of an object; default: by its type */
  readonly open?: (object: SinkObject, context: SinkContext) => Promise<Sink>
  /** ms that pass evenly; default: those of this process */
  readonly now?: () => number
}

const MAX_WAITING = 1000

/**
 * The open sinks of a process. A sink stays open between calls; it is opened anew when anything of its declaration changes: spec,
 * credentials, CAs. Calls have a deadline, and those to one sink a budget, so that one that hangs holds up nobody else.
 *
 *   use ─▶ breaker: left alone? ─▶ a slot of this sink ─▶ opened? ─▶ the call, within its deadline
 */
export class SinkPool implements AsyncDisposable {
  readonly #options: Required<SinkPoolOptions>
  readonly #backends = new Map<string, Backend>()
  readonly #closing = new Set<Promise<void>>()
  readonly #sweep: NodeJS.Timeout

  constructor(options: SinkPoolOptions) {
    this.#options = {
      callTimeoutMs: minutes(2),
      graceMs: seconds(5),
      openTimeoutMs: seconds(30),
      parallelCalls: 4,
      unusedMs: 48 * minutes(60),
      recoveryMs: seconds(5),
      open: ({ family, declaration }, context) =>
        openSink(family, declaration as DeclarationOf[typeof family], context),
      now: steadyClock.now,
      ...options,
    }
    this.#sweep = setInterval(() => this.closeUnused(), minutes(10)).unref()
  }

  /** How many sinks are held. */
  get size(): number {
    return this.#backends.size
  }

  /**
   * Runs one call against a sink.
   * @throws SinkError, transient, where the call took too long, too many wait, or the sink is left alone after failures
   */
  async use<T>(
    object: SinkObject,
    call: (sink: Sink, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    signal.throwIfAborted()
    this.#options.context.mustLead?.()
    const backend = this.#backendOf(object)
    try {
      return await backend.run(call, signal)
    } finally {
      if (backend.hangs) this.#replace(backend)
    }
  }

  /** Closes the sink of an object that is no more. */
  async forget(uid: string): Promise<void> {
    const backend = this.#backends.get(uid)
    if (backend) await this.#retire(backend)
  }

  /** Closes what nobody used for long. Runs by itself, too. */
  closeUnused(): void {
    const before = this.#options.now() - this.#options.unusedMs
    for (const backend of [...this.#backends.values()]) if (backend.usedAt <= before) void this.#retire(backend)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweep)
    for (const backend of [...this.#backends.values()]) void this.#retire(backend, true)
    await Promise.all(this.#closing)
  }

  #backendOf(object: SinkObject): Backend {
    const fingerprint = fingerprintOf(object)
    const held = this.#backends.get(object.uid)
    if (held?.fingerprint === fingerprint) return held
    // A changed sink may work again: what its former self went through does not count.
    if (held) void this.#retire(held)
    const backend = new Backend(object, fingerprint, this.#options, new SinkBreaker(this.#options))
    this.#backends.set(object.uid, backend)
    return backend
  }

  /** A call hangs in it: the next one gets a sink of its own, which is the same sink to the breaker. */
  #replace(backend: Backend): void {
    const { object, fingerprint, breaker } = backend
    if (this.#backends.get(object.uid) !== backend) return
    void this.#retire(backend)
    this.#backends.set(object.uid, new Backend(object, fingerprint, this.#options, breaker))
  }

  #retire(backend: Backend, atOnce = false): Promise<void> {
    if (this.#backends.get(backend.object.uid) === backend) this.#backends.delete(backend.object.uid)
    const closed = backend.close(atOnce).finally(() => this.#closing.delete(closed))
    this.#closing.add(closed)
    return closed
  }
}

/** By content, not by versions of objects: a label on a Secret closes no connection, and no caller can forget a version. */
function fingerprintOf({ family, declaration }: SinkObject): string {
  const hash = createHash('sha256')
  const { credentials, ...plain } = declaration
  hash.update(family).update(canonicalJson(plain))
  for (const [key, value] of Object.entries(credentials).sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`\n${JSON.stringify(key)} ${value.length} `).update(value)
  return hash.digest('base64')
}

/** The breaker of a sink: an answer such as "forbidden" proves that it lives. */
class SinkBreaker extends CircuitBreaker {
  constructor({ recoveryMs, now }: Pick<Required<SinkPoolOptions>, 'recoveryMs' | 'now'>) {
    super({ recoveryMs, clock: { ...steadyClock, now } }, (trouble, waitMs) => {
      const said = trouble instanceof Error ? trouble.message : 'it failed'
      return new SinkError(
        'transient',
        `after five failures in a row the sink is left alone for ${Math.ceil(waitMs / 1000)} s; the last one was: ${said}`,
        { sparedMs: waitMs },
      )
    })
  }

  run<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.pass(call, (error) => {
      if (signal.aborted) return 'unknown'
      if (!(error instanceof SinkError)) return 'trouble'
      return error.errorClass !== 'transient' || error.retryAfterMs !== undefined ? 'alive' : 'trouble'
    })
  }
}

/** One open sink with its calls. */
class Backend {
  readonly object: SinkObject
  readonly fingerprint: string
  readonly breaker: SinkBreaker
  readonly #options: Required<SinkPoolOptions>
  readonly #slots: Slots
  readonly #running = new Set<Promise<unknown>>()
  readonly #end = new AbortController()
  #sink: Promise<Sink> | undefined
  usedAt: number
  /** whether a call went on although its deadline and its grace were over */
  hangs = false

  constructor(object: SinkObject, fingerprint: string, options: Required<SinkPoolOptions>, breaker: SinkBreaker) {
    this.object = object
    this.fingerprint = fingerprint
    this.breaker = breaker
    this.#options = options
    this.#slots = new Slots(options.parallelCalls, MAX_WAITING)
    this.usedAt = options.now()
  }

  async run<T>(call: (sink: Sink, signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const ended = this.#guarded(call, signal)
    this.#running.add(ended)
    try {
      return await ended
    } finally {
      this.#running.delete(ended)
    }
  }

  #guarded<T>(call: (sink: Sink, signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.breaker.run(async () => {
      const { callTimeoutMs, now } = this.#options
      const deadline = new AbortController()
      const late = new SinkError('transient', `the sink did not answer within ${callTimeoutMs / 1000} s`)
      const timer = setTimeout(() => deadline.abort(late), callTimeoutMs)
      try {
        this.usedAt = now()
        return await this.#called(call, AbortSignal.any([signal, deadline.signal, this.#end.signal]))
      } finally {
        clearTimeout(timer)
        this.usedAt = now()
      }
    }, signal)
  }

  /** Closes it once its calls have ended; those that hang lose their connections. @param atOnce its calls are ended, too */
  async close(atOnce: boolean): Promise<void> {
    const { context } = this.#options
    if (atOnce) this.#end.abort(new SinkError('transient', 'the sink is closed'))
    if (!this.hangs) await Promise.allSettled(this.#running)
    try {
      await (await this.#sink)?.[Symbol.asyncDispose]()
    } catch (error) {
      context.logger.warn({ sink: this.object.declaration.name, error }, 'a sink did not close well')
    }
  }

  async #called<T>(call: (sink: Sink, signal: AbortSignal) => Promise<T>, until: AbortSignal): Promise<T> {
    const giveBack = await this.#slots.take(until)
    const work = this.#open()
      .then((sink) => {
        until.throwIfAborted()
        return call(sink, until)
      })
      .finally(giveBack)
    try {
      return await this.#unlessItHangs(work, until)
    } catch (error) {
      // A driver that gave up on its signal may say so in words of its own.
      throw until.aborted && !(error instanceof SinkError) ? until.reason : error
    }
  }

  /** The call's own answer, also after the signal where it comes soon: it knows best what was written. */
  #unlessItHangs<T>(work: Promise<T>, until: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const ended = () => {
        timer = setTimeout(() => {
          this.hangs = true
          reject(until.reason)
        }, this.#options.graceMs)
      }
      until.addEventListener('abort', ended, { once: true })
      if (until.aborted) ended()
      work.then(resolve, reject).finally(() => {
        clearTimeout(timer)
        until.removeEventListener('abort', ended)
      })
    })
  }

  #open(): Promise<Sink> {
    if (this.#sink) return this.#sink
    const { open, context, openTimeoutMs } = this.#options
    const opening = open(this.object, context)
    const sink = within(opening, openTimeoutMs)
    this.#sink = sink
    sink.catch(() => {
      if (this.#sink === sink) this.#sink = undefined
      // What opens after all is not left open.
      opening.then((forgotten) => forgotten[Symbol.asyncDispose]()).catch(() => undefined)
    })
    return sink
  }
}

/** @throws SinkError, transient, where it takes longer */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new SinkError('transient', `the sink could not be opened within ${ms / 1000} s`)),
      ms,
    )
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
