import { type JetStreamClient, jetstream } from '@nats-io/jetstream'
import { errors, type NatsConnection } from '@nats-io/transport-node'
import { type Clock, FleetError, seconds } from '#model'
import { connectNats, NATS_ANSWERS_WITHIN_MS, type NatsConfig, type NatsServer } from '#nats'
import { OutboundGuard } from '#outbound'
import { Listeners, type Logger } from '#runtime'
import { Report } from './report.ts'
import { ensureStream } from './stream.ts'

/** A connection of which the stream was looked at. */
export interface Session {
  readonly jetstream: JetStreamClient
  /** bytes of a message with its headers that server and stream take */
  readonly maxBytes: number
  /** whether it is asked just now if it answers: what is sent to one that does not would be old when it is read */
  readonly isDoubted: boolean
  /** Something was not acknowledged: where the server does not answer at all, the connection ends. */
  doubt(): void
}

export interface LinkOptions {
  readonly nats: NatsConfig
  /** what is published by now */
  readonly subjects: () => readonly string[]
  readonly clock: Clock
  readonly logger: Logger
}

/** Between two tries to connect, as the original. */
const RETRY_MS = seconds(2)
/** Between two looks at a stream that is not as it should be. */
const LOOK_AGAIN_MS = seconds(10)
/** Of a server that does not say it. */
const USUAL_MAX_BYTES = 2 ** 20

/**
 * Keeps one connection to NATS at a time, and looks at the stream on each of them before anything is published.
 *
 *   connect ──▶ ensure the stream ──▶ session ──(a fault of the stream: look again)──▶ closed ──▶ wait ──▶ the next server
 */
export class NatsLink {
  /** undefined: not connected */
  session: Session | undefined
  /** told when `session` is another one */
  readonly changed = new Listeners()
  readonly #options: LinkOptions
  readonly #connection: Report
  readonly #stream: Report
  #lookAgain = new AbortController()
  #lookedAt = 0

  constructor(options: LinkOptions) {
    this.#options = options
    this.#connection = new Report(options.logger, 'NATS is reached')
    this.#stream = new Report(options.logger, 'the stream takes what is published')
  }

  /** Resolves when the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { nats } = this.#options
    const guard = new OutboundGuard({ use: 'broker', allow: nats.outboundAllow ?? [] })
    const { servers } = nats
    for (let attempt = 0; !signal.aborted; attempt++) {
      // At least one: parseNatsServers gives no empty list.
      const server = servers[attempt % servers.length] as NatsServer
      try {
        const nc = await connectNats(server, nats, guard, signal)
        await this.#serve(nc, signal)
        if (signal.aborted) return
        this.#connection.failing(`the connection to ${nameOf(server)} ended`)
      } catch (error) {
        if (signal.aborted) return
        const why = FleetError.from(error).message
        this.#connection.failing(
          isRefusal(error)
            ? `${nameOf(server)} is there and refuses the hub (${why}); check NATS_USER and NATS_PASSWORD, NATS_TOKEN, NATS_NKEY or NATS_CREDS`
            : `${nameOf(server)} is not reached (${why})`,
        )
      }
      await this.#options.clock.sleep(RETRY_MS * (0.5 + Math.random()), signal)
    }
  }

  /** The stream seems to be another than it was: it is looked at, though not all the time. */
  lookAgain(): void {
    if (this.#options.clock.now() - this.#lookedAt >= RETRY_MS) this.#lookAgain.abort()
  }

  async #serve(nc: NatsConnection, signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const end = () => ended.abort()
    signal.addEventListener('abort', end, { once: true })
    const closed = nc.closed().then(end)
    const doubts = { isOpen: false }
    const doubt = () => {
      if (doubts.isOpen) return
      doubts.isOpen = true
      void this.#answers(nc, ended.signal).then((isThere) => {
        if (!isThere) {
          end()
          // What it is being asked meanwhile fails with it.
          void nc.close()
          return
        }
        doubts.isOpen = false
        this.changed.tell()
      })
    }
    try {
      while (!ended.signal.aborted) {
        const facts = await ensureStream(nc, this.#options.subjects())
        this.#lookedAt = this.#options.clock.now()
        this.#connection.working()
        if (facts.fault === undefined) this.#stream.working()
        else this.#stream.failing(facts.fault)
        const maxBytes = Math.min(
          nc.info?.max_payload ?? USUAL_MAX_BYTES,
          facts.maxMessageBytes ?? Number.POSITIVE_INFINITY,
        )
        this.#set({
          ...{ jetstream: jetstream(nc), maxBytes, doubt },
          get isDoubted() {
            return doubts.isOpen
          },
        })
        await this.#untilNextLook(facts.fault !== undefined, ended.signal)
      }
    } finally {
      this.#set(undefined)
      signal.removeEventListener('abort', end)
      await nc.close()
      await closed
    }
  }

  /** A server that is well may have no stream for what was sent, and somebody else who hears it. */
  async #answers(nc: NatsConnection, signal: AbortSignal): Promise<boolean> {
    const answered = new AbortController()
    const pong = nc.rtt().then(
      () => answered.abort(),
      () => undefined,
    )
    await Promise.race([
      pong,
      this.#options.clock.sleep(NATS_ANSWERS_WITHIN_MS, AbortSignal.any([signal, answered.signal])),
    ])
    return answered.signal.aborted
  }

  async #untilNextLook(isFaulty: boolean, ended: AbortSignal): Promise<void> {
    this.#lookAgain = new AbortController()
    const { clock } = this.#options
    const woken = AbortSignal.any([ended, this.#lookAgain.signal])
    await clock.sleep(isFaulty ? LOOK_AGAIN_MS : Number.POSITIVE_INFINITY, woken)
  }

  #set(session: Session | undefined): void {
    this.session = session
    this.changed.tell()
  }
}

const nameOf = ({ host, port }: NatsServer): string => `NATS at ${host}:${port}`

/** It answers, and does not take who we say we are. */
const isRefusal = (error: unknown): boolean =>
  error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError
