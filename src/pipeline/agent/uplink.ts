import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Batch, BatchView, Clock, ClusterName } from '#model'
import type { Logger } from '#runtime'
import {
  asItIs,
  batchFor,
  type ConnectResponse,
  decodeBody,
  decodeResponse,
  encodeBody,
  encodeRequest,
  originalFromBatch,
  ownOffer,
  type RequestInit,
  viewOf,
} from '#wire'
import { agentName } from './agent-name.ts'
import type { Monotonic } from './boot.ts'
import type { BatchBuffer } from './buffer.ts'
import type { BatchRecord, BufferRecord } from './buffer-record.ts'
import type { OriginalConfig } from './config-plan.ts'
import { LinkError } from './errors.ts'
import { Fresh } from './fresh.ts'
import { goodbyeWords } from './goodbye-words.ts'
import { Seldom } from './seldom.ts'
import type { HubTrust, Link, Transport } from './types.ts'
import { decide, type Effect, type Event, initial, type State, wakeAt } from './uplink-machine.ts'

export interface UplinkOptions {
  readonly cluster: ClusterName
  readonly version: string
  /** of this start of the agent, told to the hub; default: the machine's, and a part of its own */
  readonly name?: string
  readonly transport: Transport
  readonly buffer: BatchBuffer
  /** asked at each attempt, so that a rotated one is taken; undefined where a certificate tells who we are */
  readonly token: () => Promise<string | undefined>
  readonly planVersion: () => string
  /** bytes of a PlanUpdate, its version beside */
  readonly onPlan: (bytes: Uint8Array) => void
  /** what a hub of the original says instead; undefined: it took a batch and said nothing before, as one without MetricSources does */
  readonly onConfig: (config: OriginalConfig | undefined) => void
  /** by what the hub is known from now on, and where it is */
  readonly onTrust?: (trust: HubTrust) => void
  /** a stream begins: what is said only while there is one can be said */
  readonly onLive?: () => void
  readonly health: () => {
    readonly uptimeMs: number
    readonly lastCollectionMs: number
    readonly rssBytes: number
    /** reads that could be followed, and are polled; default none */
    readonly polled?: readonly string[]
  }
  readonly clock: Clock
  readonly monotonic: Monotonic
  readonly random: () => number
  readonly logger: Logger
}

/** What the uplink is doing, for people and metrics. */
export interface UplinkStatus {
  readonly phase: State['phase']['kind']
  readonly protocol: 'none' | 'ours' | 'original'
  /** why there is no stream; '' while there is one */
  readonly reason: string
  /** since when there is none, ms since the Unix epoch; undefined while there is one */
  readonly awaySince: number | undefined
  /** what the hub said as it last refused to serve this agent, which a person must change; undefined: it never did, or serves it since */
  readonly refusal: string | undefined
  /** streams that were registered since the start */
  readonly streams: number
  /** ms since the last ack; undefined before the first */
  readonly lastAckAgeMs: number | undefined
  readonly sentBytes: number
  readonly sentBatches: number
}

/** Whoever waits for a hub to come back sees soon that the agent goes on trying; a log of days stays short. */
const SAID_AGAIN_MS = 15_000
const MIN_COMPRESSED_BYTES = 256
const STOP_MS = 2_000
const MAX_VIEWS = 3
/** Goodbyes after which a person must act before an attempt can succeed. */
const SLOW = new Set([
  'revoked',
  'unauthenticated',
  'wrong_cluster',
  'version',
  'invalid_hello',
  'not_negotiated',
  'not_registered',
  'malformed',
])
const NOTHING: ReadonlySet<string> = new Set()
const MAX_BODY_BYTES = 256 * 2 ** 20

/** Packs a body where that makes it smaller. */
export function packed(body: Uint8Array): Pick<BatchRecord, 'body' | 'bodyBytes' | 'compression'> {
  const plain = { body, bodyBytes: body.length, compression: 'none' as const }
  if (body.length < MIN_COMPRESSED_BYTES) return plain
  const deflated = deflateRawSync(body, { level: 5 })
  return deflated.length < body.length ? { body: deflated, bodyBytes: body.length, compression: 'deflate' } : plain
}

function unpacked({
  body,
  bodyBytes,
  compression,
}: Pick<BatchRecord, 'body' | 'bodyBytes' | 'compression'>): Uint8Array {
  return compression === 'none'
    ? body
    : inflateRawSync(body, { maxOutputLength: Math.min(bodyBytes + 1, MAX_BODY_BYTES) })
}

/**
 * The stream to the hub: opened, registered, fed from the buffer and opened again, until it is stopped. What is decided
 * stands in uplink-machine.ts; here it is done.
 */
export class Uplink {
  readonly #options: UplinkOptions
  /** of this start: a copy of the buffer elsewhere has another */
  readonly #instance: string
  #state: State = initial
  #queue: Event[] = []
  #running = false
  #link: { readonly link: Link; readonly abort: AbortController } | undefined
  #attempt = 0
  #timer: { readonly at: number; readonly abort: AbortController } | undefined
  readonly #fresh = new Fresh()
  #prefetched: BufferRecord | undefined
  /** of the live frames of this stream that may become a base */
  #views = new Map<number, BatchView>()
  #deflate = false
  /** what the hub at the other end can do */
  #capabilities: ReadonlySet<string> = NOTHING
  /** a hub of the original has said on this stream what to collect, or that it has nothing to say */
  #isConfigured = false
  /** who waits for the answer to a batch */
  readonly #waiting = new Map<number, () => void>()
  #tasks = new Set<Promise<void>>()
  #onStopped: (() => void) | undefined
  /** since when there is no stream, by the clock of the wall; undefined while there is one */
  #awaySince: number | undefined
  #refusal: string | undefined
  readonly #seldom: Seldom
  /** what the last registration showed */
  #hasToken = false
  #lastAckAt: number | undefined
  #streams = 0
  #sentBytes = 0
  #sentBatches = 0

  constructor(options: UplinkOptions) {
    this.#options = options
    this.#instance = options.name ?? agentName()
    this.#seldom = new Seldom(() => options.monotonic.now(), SAID_AGAIN_MS)
    options.buffer.inFlight = (sequence) => this.#isInFlight(sequence)
  }

  status(): UplinkStatus {
    const { phase } = this.#state
    return {
      phase: phase.kind,
      protocol: phase.kind === 'live' ? phase.protocol : 'none',
      reason: phase.kind === 'backing-off' ? phase.reason : phase.kind === 'live' ? '' : 'not connected yet',
      awaySince: this.#awaySince,
      refusal: this.#refusal,
      streams: this.#streams,
      lastAckAgeMs: this.#lastAckAt === undefined ? undefined : this.#options.monotonic.now() - this.#lastAckAt,
      sentBytes: this.#sentBytes,
      sentBatches: this.#sentBatches,
    }
  }

  start(): void {
    this.#awaySince = this.#options.clock.now()
    this.#dispatch({ type: 'start' })
  }

  /** Whether what moves between two rounds can be told now. */
  get takesSteps(): boolean {
    return this.#protocol() === 'ours' && this.#capabilities.has('steps')
  }

  /**
   * A batch that was just collected and is in the buffer; in the order of their sequences.
   * @param isHollow the record has nothing of what it says
   */
  collected(batch: Batch, record: BatchRecord, isHollow = false): void {
    this.#fresh.add(batch, record, isHollow)
    this.#dispatch({ type: 'collected', sequence: record.sequence, fresh: this.#fresh.sequences() })
  }

  /** Resolves when the hub has answered for it, or there is no stream to wait for. */
  async handled(sequence: number): Promise<void> {
    if (!this.#options.buffer.has(sequence) || this.#state.phase.kind !== 'live') return
    await new Promise<void>((resolve) => this.#waiting.set(sequence, resolve))
  }

  /** The buffer may hold something new, such as a declaration. */
  stored(): void {
    this.#dispatch({ type: 'stored' })
  }

  /** Begins nothing new, waits up to 2 s for what is on its way, then ends the stream. What is not acknowledged stays. */
  async stop(): Promise<void> {
    const { clock } = this.#options
    const late = new AbortController()
    const stopped = new Promise<void>((resolve) => {
      this.#onStopped = resolve
    })
    this.#dispatch({ type: 'stop' })
    await Promise.race([stopped, clock.sleep(STOP_MS, late.signal)])
    late.abort()
    this.#timer?.abort.abort()
    await this.#close()
    await Promise.all(this.#tasks)
  }

  #isInFlight(sequence: number): boolean {
    const { phase } = this.#state
    return phase.kind === 'live' && phase.inFlight.has(sequence)
  }

  #dispatch(event: Event): void {
    this.#queue.push(event)
    if (this.#running) return
    this.#running = true
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#take(next)
    } finally {
      this.#running = false
    }
    this.#arm()
  }

  #take(event: Event): void {
    const { monotonic, random } = this.#options
    const before = this.#state.phase
    const { state, effects } = decide(this.#state, event, { now: monotonic.now(), random })
    this.#state = state
    this.#tell(before, state.phase)
    for (const effect of effects) this.#do(effect)
    this.#answer()
    if (state.phase.kind === 'stopped') this.#onStopped?.()
  }

  #answer(): void {
    const isLive = this.#state.phase.kind === 'live'
    for (const [sequence, resolve] of this.#waiting) {
      if (isLive && this.#options.buffer.has(sequence)) continue
      this.#waiting.delete(sequence)
      resolve()
    }
  }

  #tell(before: State['phase'], after: State['phase']): void {
    if (before.kind === after.kind) return
    const { logger, monotonic, clock } = this.#options
    if (after.kind === 'live') {
      this.#streams++
      this.#awaySince = undefined
      this.#refusal = undefined
      this.#seldom.forget()
      this.#options.onLive?.()
      logger.info({ protocol: after.protocol, buffered: this.#options.buffer.stats().batches }, 'connected to the hub')
    }
    if (after.kind === 'backing-off') {
      this.#views.clear()
      this.#prefetched = undefined
      this.#awaySince ??= clock.now()
      if (!this.#seldom.isNews(after.reason)) return
      const retryInMs = Math.round(after.until - monotonic.now())
      const since = new Date(this.#awaySince).toISOString()
      logger.warn(
        { reason: after.reason, since, retryInMs, attempt: after.failures },
        'no stream to the hub; batches are buffered',
      )
    }
  }

  #arm(): void {
    const { clock, monotonic } = this.#options
    const now = monotonic.now()
    const at = this.#state.phase.kind === 'stopped' ? Number.POSITIVE_INFINITY : wakeAt(this.#state, now)
    if (this.#timer?.at === at) return
    this.#timer?.abort.abort()
    this.#timer = undefined
    if (at === Number.POSITIVE_INFINITY) return
    const abort = new AbortController()
    const timer = { at, abort }
    this.#timer = timer
    // At most an hour, as timers of more than 24 days fire at once.
    const sleep = clock.sleep(Math.min(3_600_000, Math.max(1, Math.ceil(at - now))), abort.signal).then(() => {
      if (this.#timer !== timer) return
      this.#timer = undefined
      this.#dispatch({ type: 'tick' })
    })
    this.#track(sleep)
  }

  #track(task: Promise<void>): void {
    const tracked = task.finally(() => this.#tasks.delete(tracked))
    this.#tasks.add(tracked)
  }

  #do(effect: Effect): void {
    const { buffer } = this.#options
    switch (effect.type) {
      case 'open':
        this.#track(this.#open())
        return
      case 'close':
        this.#track(this.#close())
        return
      case 'register':
        this.#track(this.#register())
        return
      case 'fetch':
        this.#track(this.#fetch())
        return
      case 'send':
        this.#send(effect)
        return
      case 'health':
        this.#sendHealth()
        return
      case 'settle':
        if (effect.received.length > 0) this.#lastAckAt = this.#options.monotonic.now()
        buffer.settle(effect.received)
        this.#fresh.keep((sequence) => buffer.has(sequence))
        this.#forgetViews()
        return
      case 'refuse':
        this.#options.logger.error(
          { sequence: effect.sequence },
          'the hub refuses a batch for good; it is declared lost',
        )
        this.#track(buffer.refuse(effect.sequence).then(() => this.#dispatch({ type: 'stored' })))
        return
    }
  }

  /** Only the newest acknowledged one, and those that may still become it. */
  #forgetViews(): void {
    const { phase } = this.#state
    if (phase.kind !== 'live') return
    for (const sequence of this.#views.keys()) {
      if (sequence !== phase.base && !phase.inFlight.has(sequence)) this.#views.delete(sequence)
    }
  }

  /** A view is as large as the cluster: where acks are slow a later frame is complete instead of many views being held. */
  #remember(sequence: number, view: BatchView): void {
    this.#views.set(sequence, view)
    const [oldest] = this.#views.keys()
    if (this.#views.size > MAX_VIEWS && oldest !== undefined) this.#views.delete(oldest)
  }

  async #open(): Promise<void> {
    const attempt = ++this.#attempt
    const abort = new AbortController()
    const ended = (error: unknown) => {
      if (attempt !== this.#attempt) return
      const reason = error instanceof Error ? error.message : 'the hub ended the stream'
      const fault = error instanceof LinkError ? error : undefined
      if (fault?.fault === 'unauthenticated') this.#refusal = reason
      // A hub that is away says nothing of whom it serves, and may have been about to.
      if (fault?.isNowhere) this.#refusal = undefined
      this.#dispatch({ type: 'closed', reason, nowhere: fault?.isNowhere === true, cut: fault?.isCut === true })
    }
    const opening = { link: undefined as Link | undefined, abort }
    this.#link = { link: notOpen(), abort }
    try {
      const link = await this.#options.transport.open(abort.signal)
      opening.link = link
      if (attempt !== this.#attempt) return await link[Symbol.asyncDispose]()
      this.#link = { link, abort }
      this.#deflate = false
      this.#capabilities = NOTHING
      this.#isConfigured = false
      this.#dispatch({ type: 'opened' })
      for await (const message of link.messages) {
        if (attempt !== this.#attempt) break
        this.#receive(decodeResponse(message))
      }
      ended(undefined)
    } catch (error) {
      ended(error)
    } finally {
      await opening.link?.[Symbol.asyncDispose]()
    }
  }

  async #close(): Promise<void> {
    const link = this.#link
    this.#link = undefined
    this.#attempt++
    link?.abort.abort()
    await link?.link[Symbol.asyncDispose]()
  }

  async #register(): Promise<void> {
    const { cluster, version, buffer, token, planVersion, clock } = this.#options
    const attempt = this.#attempt
    try {
      const secret = (await token()) ?? ''
      if (attempt !== this.#attempt) return
      this.#hasToken = secret !== ''
      const hello = {
        ...ownOffer,
        capabilities: [...ownOffer.capabilities],
        origin: buffer.origin,
        instance: this.#instance,
        nowMs: clock.now(),
        planVersion: planVersion(),
        oldestSequence: buffer.oldest,
        newestSequence: buffer.oldest === 0 ? 0 : buffer.newest,
      }
      this.#write({ payload: { case: 'register', value: { clusterName: cluster, token: secret, version, hello } } })
    } catch (error) {
      // Without a token there is nothing to register with: the attempt is over.
      this.#track(this.#close())
      this.#dispatch({ type: 'closed', reason: error instanceof Error ? error.message : String(error) })
    }
  }

  async #fetch(): Promise<void> {
    const attempt = this.#attempt
    const skip = (sequence: number) =>
      this.#isInFlight(sequence) || (this.#state.live.includes(sequence) && this.#protocol() === 'ours')
    try {
      const record = await this.#options.buffer.next(skip)
      if (attempt !== this.#attempt) return
      this.#prefetched = record
      const bytes = record?.kind === 'batch' ? record.body.length : 256
      this.#dispatch({ type: 'fetched', item: record && { sequence: record.sequence, bytes, kind: record.kind } })
    } catch (error) {
      if (attempt !== this.#attempt) return
      // The disk does not read now: the stream goes on with what is live, and this is tried again with the next batch.
      this.#options.logger.error({ err: error }, 'the buffer could not be read')
      this.#dispatch({ type: 'fetched', item: undefined })
    }
  }

  #protocol(): 'none' | 'ours' | 'original' {
    return this.#state.phase.kind === 'live' ? this.#state.phase.protocol : 'none'
  }

  #send({ sequence, as, base }: Extract<Effect, { type: 'send' }>): void {
    const { buffer } = this.#options
    const fresh = this.#fresh.get(sequence)
    const record = fresh?.record ?? this.#prefetched
    if (!record || record.sequence !== sequence || !buffer.has(sequence)) {
      this.#dispatch({ type: 'unsent', sequence })
      return
    }
    if (this.#protocol() === 'original') {
      this.#sendOriginal(record)
      return
    }
    if (record.kind === 'loss') {
      this.#sendLoss(record)
      return
    }
    // Of what the record does not hold only this process knows.
    const isHollow = as === 'live' && fresh?.isHollow === true
    const older = isHollow ? batchFor(fresh.batch, this.#capabilities) : this.#forOlder(record)
    const batch = as === 'live' ? fresh && (older ?? fresh.batch) : undefined
    const view = batch && base > 0 ? this.#views.get(base) : undefined
    if (batch) this.#remember(sequence, viewOf(batch, view))
    const sendable = view || isHollow ? batch : older
    const frame = sendable
      ? packed(encodeBody(sendable, view, { rowSums: this.#capabilities.has('row-sums') }))
      : record
    this.#sendFrame(record, frame, { base: view ? base : 0, backfill: as === 'backlog' })
  }

  /** What a hub that lacks some of our abilities can take instead; undefined: the record itself. */
  #forOlder(record: BatchRecord): Batch | undefined {
    if (asItIs.every((one) => this.#capabilities.has(one))) return undefined
    const { batch } = this.#decoded(record)
    const sendable = batchFor(batch, this.#capabilities)
    return sendable === batch ? undefined : sendable
  }

  #decoded(record: BatchRecord) {
    const { cluster, buffer } = this.#options
    const { sequence, collectedAt } = record
    return decodeBody(unpacked(record), { cluster, origin: buffer.origin, sequence, collectedAt })
  }

  #sendFrame(
    record: BatchRecord,
    packing: Pick<BatchRecord, 'body' | 'bodyBytes' | 'compression'>,
    { base, backfill }: { readonly base: number; readonly backfill: boolean },
  ): void {
    const { monotonic } = this.#options
    const { sequence, collectedAt, stamp, bootId } = record
    const isPacked = packing.compression === 'deflate' && this.#deflate
    const message = encodeRequest({
      payload: {
        case: 'frame',
        value: {
          sequence,
          base,
          backfill,
          collectedAtMs: collectedAt,
          ...(bootId === monotonic.bootId && { ageMs: Math.max(0, monotonic.now() - stamp) }),
          compression: isPacked ? 1 : 0,
          bodyBytes: packing.bodyBytes,
          body: isPacked ? packing.body : unpacked(packing),
        },
      },
    })
    this.#sendBatch(sequence, message)
  }

  #sendBatch(sequence: number, message: Uint8Array): void {
    const { phase } = this.#state
    if (phase.kind === 'live' && message.length > phase.maxMessageBytes) {
      const facts = { sequence, bytes: message.length, maxBytes: phase.maxMessageBytes }
      this.#options.logger.error(facts, 'a batch is larger than the hub takes')
      this.#dispatch({ type: 'unsent', sequence })
      this.#do({ type: 'refuse', sequence })
      return
    }
    this.#sentBatches++
    this.#write(message)
  }

  #sendLoss({ sequence, loss }: Extract<BufferRecord, { kind: 'loss' }>): void {
    const { phase } = this.#state
    if (phase.kind === 'live' && !phase.losses) {
      this.#settleUnsent(sequence)
      return
    }
    const { from, to, cause, count, keptEveryMs } = loss
    const lost = loss.lost.map(([first, last]) => ({ first, last }))
    this.#write({
      payload: { case: 'loss', value: { sequence, lost, fromMs: from, toMs: to, cause, count, keptEveryMs } },
    })
  }

  /** A hub of the original keeps no account of losses, and an agent of the original does not send rounds that failed. */
  #settleUnsent(sequence: number): void {
    this.#dispatch({ type: 'ack', received: [[sequence, sequence]], success: true, retryable: false, retryAfterMs: 0 })
  }

  #sendOriginal(record: BufferRecord): void {
    if (record.kind === 'loss') {
      this.#settleUnsent(record.sequence)
      return
    }
    const { sequence } = record
    const batch = batchFor(this.#decoded(record).batch, NOTHING)
    // It takes every batch for a sign that the cluster is well, so one is sent that brings something only.
    const isEmpty = batch.partial && !batch.tables?.some(({ outcome }) => outcome === 'complete')
    if (batch.failure || isEmpty) {
      this.#settleUnsent(sequence)
      return
    }
    this.#sendBatch(sequence, encodeRequest({ payload: { case: 'metrics', value: originalFromBatch(batch) } }))
  }

  #sendHealth(): void {
    const { cluster, buffer, health, planVersion, clock } = this.#options
    const { batches, bytes, oldestAt, lostBatches } = buffer.stats()
    const { uptimeMs, lastCollectionMs, rssBytes, polled = [] } = health()
    const now = clock.now()
    this.#write({
      payload: {
        case: 'health',
        value: {
          clusterName: cluster,
          timestamp: { seconds: BigInt(Math.floor(now / 1000)), nanos: Math.floor(now % 1000) * 1_000_000 },
          uptimeSeconds: BigInt(Math.floor(uptimeMs / 1000)),
          bufferedBatches: Math.min(batches, 2 ** 31 - 1),
          lastCollectionDurationMs: BigInt(Math.round(lastCollectionMs)),
          bufferedBytes: bytes,
          oldestBufferedMs: oldestAt ?? 0,
          lostBatches,
          planVersion: planVersion(),
          rssBytes,
          polled: [...polled],
        },
      },
    })
  }

  #write(message: Uint8Array | RequestInit): void {
    const link = this.#link?.link
    if (!link) return
    const bytes = message instanceof Uint8Array ? message : encodeRequest(message)
    this.#sentBytes += bytes.length
    if (link.send(bytes)) return
    this.#dispatch({ type: 'blocked' })
    this.#track(
      link.writable().then(() => {
        if (this.#link?.link === link) this.#dispatch({ type: 'writable' })
      }),
    )
  }

  #receive({ payload }: ConnectResponse): void {
    const { onPlan, onConfig, logger, cluster } = this.#options
    switch (payload.case) {
      case 'welcome': {
        const { value } = payload
        this.#deflate = value.capabilities.includes('deflate')
        this.#capabilities = new Set(value.capabilities)
        this.#dispatch({ type: 'welcome', ...value, received: value.received.map(({ first, last }) => [first, last]) })
        this.#sendHealth()
        return
      }
      case 'ack': {
        const { batchId, success, retryable, retryAfterMs, code, error } = payload.value
        if (!success && code !== 'base_mismatch')
          logger.warn({ code, error, retryable }, 'the hub did not take what was sent')
        const received = payload.value.received.map(({ first, last }) => [first, last] as const)
        if (batchId !== '') {
          this.#ackedOriginal(batchId, success)
          return
        }
        this.#dispatch({ type: 'ack', received, success, retryable, retryAfterMs, mismatch: code === 'base_mismatch' })
        return
      }
      case 'plan':
        onPlan(payload.value.json)
        break
      case 'config':
        // A hub that speaks ours says it by a plan.
        if (this.#protocol() === 'ours') return
        this.#isConfigured = true
        onConfig(payload.value)
        return
      case 'resync':
        this.#dispatch({ type: 'resync' })
        return
      case 'joinState':
        if (payload.value.phase === 'trust') this.#options.onTrust?.(payload.value)
        return
      case 'goodbye': {
        const { code, retryAfterMs } = payload.value
        const reason = goodbyeWords(payload.value, { cluster, hasToken: this.#hasToken })
        if (SLOW.has(code)) this.#refusal = reason
        this.#dispatch({ type: 'goodbye', reason, retryAfterMs, slow: SLOW.has(code) })
        return
      }
    }
  }

  /** An original hub never says why; one that could not store is asked again after half a minute. */
  #ackedOriginal(batchId: string, success: boolean): void {
    const sequence = Number(batchId.slice(batchId.lastIndexOf('-') + 1))
    if (!batchId.startsWith(this.#options.buffer.origin) || !Number.isSafeInteger(sequence)) return
    // What it has to say it says before its first ack.
    if (!this.#isConfigured) this.#options.onConfig(undefined)
    this.#isConfigured = true
    const received = [[sequence, sequence] as const]
    this.#dispatch({ type: 'ack', received, success, retryable: !success, retryAfterMs: success ? 0 : 30_000 })
  }
}

/** While the transport opens there is nothing to send to. */
function notOpen(): Link {
  return {
    send: () => false,
    writable: () => Promise.resolve(),
    messages: (async function* () {
      // nothing comes
    })(),
    async [Symbol.asyncDispose]() {
      // nothing is open
    },
  }
}
