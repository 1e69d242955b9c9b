import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, seconds } from '#model'
import { type Logger, type Metrics, SlowWriter, type Turns } from '#runtime'
import { WakeUp } from '../bindings/wake-up.ts'
import type { Verdict } from './access.ts'
import type { Question } from './query.ts'
import { HEADERS, unavailable } from './refusal.ts'
import { Teller } from './teller.ts'
import type { InventoryView } from './view.ts'

/** Streams at once; further ones are told to come back. */
const MAX_STREAMS = 100
/** A stream says that it lives at least so often, and whether its reader still may is asked again, ms. */
const BEAT_MS = seconds(15)
const REVIEW_EVERY_MS = seconds(30)
/** A client that lost its stream comes back after this, ms. */
const RETRY_MS = seconds(5)
/** After an event a stream rests so many times as long as that took, so that churn costs a bounded share of the process. */
const REST_FACTOR = 5
const MAX_REST_MS = seconds(5)
/** Who is refused a stream comes back after this. */
const BUSY_SECONDS = 10

export interface OpenStream {
  readonly view: InventoryView
  readonly cluster: string
  readonly question: Question
  /** whether its reader may read it (still) */
  readonly judge: () => Promise<Verdict>
}

export interface EventStreamsOptions {
  readonly clock: Clock
  readonly turns: Turns
  readonly logger: Logger
  readonly metrics: Metrics
  readonly maxStreams?: number
}

/** Server-sent events about rows, to a bounded number of readers. */
export class EventStreams implements AsyncDisposable {
  readonly #options: EventStreamsOptions
  readonly #closing = new AbortController()
  readonly #streams = new Set<Promise<void>>()
  readonly #refused

  constructor(options: EventStreamsOptions) {
    this.#options = options
    const { metrics } = options
    metrics.gauge('kollect_inventory_streams', 'Open event streams of the inventory API', [], (gauge) =>
      gauge.set(this.#streams.size),
    )
    this.#refused = metrics.counter(
      'kollect_inventory_streams_refused_total',
      'Event streams for which there was no room',
    )
  }

  /** Answers with a stream. @throws Refusal where there is no room; then nothing was sent */
  open(request: IncomingMessage, response: ServerResponse, stream: OpenStream): void {
    // It went while it was found out who asks: nothing would end its stream.
    if (response.destroyed) return
    if (this.#streams.size >= (this.#options.maxStreams ?? MAX_STREAMS) || this.#closing.signal.aborted) {
      this.#refused.inc()
      throw unavailable('too_many_streams', 'the agent has all the event streams it can take', BUSY_SECONDS)
    }
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    request.socket.setTimeout(0)
    response.writeHead(200, {
      ...HEADERS,
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    })
    response.write(`retry: ${RETRY_MS}\n\n`)
    const signal = AbortSignal.any([gone.signal, this.#closing.signal])
    const running = this.#run(response, stream, signal)
      .catch((err: unknown) => this.#options.logger.error({ err }, 'an event stream of inventory met an error'))
      .finally(() => {
        this.#streams.delete(running)
        response.end()
      })
    this.#streams.add(running)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#streams)
  }

  async #run(response: ServerResponse, stream: OpenStream, signal: AbortSignal): Promise<void> {
    const { clock, turns } = this.#options
    const { view, question } = stream
    const wake = new WakeUp()
    const unsubscribe = view.changes.add(() => wake.now())
    const writer = new SlowWriter(response, { clock, turns, signal })
    const teller = new Teller(stream)
    let reviewedAt = clock.now()
    try {
      while (!signal.aborted) {
        const woken = wake.next()
        // A clock that was set back makes what it measured old.
        if (Math.abs(clock.now() - reviewedAt) >= REVIEW_EVERY_MS) {
          // Who is asked anew is told why; what cannot be found out now is not shown either.
          if ((await stream.judge().catch(() => 'forbidden')) !== 'allowed') return
          reviewedAt = clock.now()
        }
        if (view.named(question.filter)?.length === 0) return
        const beganAt = performance.now()
        let isQuiet = true
        for (const event of teller.news()) {
          isQuiet = false
          if (!(await writer.write(event))) return
        }
        if (isQuiet) {
          await clock.sleep(BEAT_MS, AbortSignal.any([signal, woken.signal]))
          if (!woken.signal.aborted && !signal.aborted && !(await writer.write([': \n\n']))) return
        } else {
          await clock.sleep(Math.min(MAX_REST_MS, (performance.now() - beganAt) * REST_FACTOR), signal)
        }
      }
    } finally {
      unsubscribe()
    }
  }
}
