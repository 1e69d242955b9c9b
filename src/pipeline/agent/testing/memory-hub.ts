import { inflateRawSync } from 'node:zlib'
import {
  type Batch,
  type BatchView,
  type ClusterName,
  inRanges,
  type Loss,
  type Plan,
  type Ranges,
  rangesOf,
  withRange,
} from '#model'
import {
  type ConnectRequest,
  capabilities,
  decodeBody,
  decodeRequest,
  encodePlan,
  encodeResponse,
  type ResponseInit,
} from '#wire'
import { LinkError } from '../errors.ts'
import type { Link, Transport } from '../types.ts'

export interface Arrival {
  readonly batch: Batch
  readonly view: BatchView
  readonly backfill: boolean
  readonly base: number
  readonly ageMs: number | undefined
  readonly messageBytes: number
  /** by the hub's clock */
  readonly at: number
}

export interface MemoryHubOptions {
  readonly cluster: ClusterName
  readonly now: () => number
  readonly backlogBytesPerSecond?: number
  readonly maxUnacked?: number
  /** `original`: it knows neither Hello nor frames */
  readonly speaks?: 'ours' | 'original'
  /** default: all there are */
  readonly capabilities?: readonly string[]
  /** false: of the batches only the sizes are kept, for long runs. Default true */
  readonly keepViews?: boolean
  /** waits before an ack; default: none */
  readonly beforeAck?: () => Promise<void>
}

/** A hub in memory that knows every batch it took, by sequence. What it says is scripted by its fields. */
export class MemoryHub implements Transport {
  readonly #options: MemoryHubOptions
  readonly #links = new Set<MemoryLink>()
  up = true
  plan: Plan | undefined
  received: Ranges = []
  readonly arrivals = new Map<number, Arrival>()
  readonly losses = new Map<number, Loss>()
  /** batches that came again after they were acknowledged */
  repeats = 0
  streams = 0
  /** the newest batch that was taken live */
  #live = 0
  origin = ''
  readonly originalIds: string[] = []
  readonly requests: ConnectRequest[] = []
  /** called before a frame is taken; what it returns is said instead of an ack */
  onFrame: ((sequence: number) => ResponseInit | 'nothing' | 'resync' | undefined) | undefined

  constructor(options: MemoryHubOptions) {
    this.#options = options
  }

  async open(signal: AbortSignal): Promise<Link> {
    signal.throwIfAborted()
    if (!this.up) throw new LinkError('refused', 'the hub is away')
    this.streams++
    const link = new MemoryLink((bytes) => this.#take(link, bytes))
    this.#links.add(link)
    return link
  }

  /** Ends every stream, as a broken network does. */
  cut(): void {
    for (const link of this.#links) link.end(new LinkError('ended', 'the network broke'))
    this.#links.clear()
  }

  say(message: ResponseInit): void {
    for (const link of this.#links) link.deliver(encodeResponse(message))
  }

  #take(link: MemoryLink, bytes: Uint8Array): void {
    const request = decodeRequest(bytes)
    this.requests.push(request)
    if (this.requests.length > 100) this.requests.shift()
    const { payload } = request
    const say = (message: ResponseInit) => link.deliver(encodeResponse(message))
    switch (payload.case) {
      case 'register':
        if (this.#options.speaks === 'original') return
        this.origin = payload.value.hello?.origin ?? ''
        link.views.clear()
        say({
          payload: {
            case: 'welcome',
            value: {
              version: 1,
              capabilities: [...(this.#options.capabilities ?? capabilities)],
              received: this.received.map(([first, last]) => ({ first, last })),
              nowMs: this.#options.now(),
              maxMessageBytes: 4 * 2 ** 20,
              backlogBytesPerSecond: this.#options.backlogBytesPerSecond ?? 0,
              epoch: this.streams,
              maxUnacked: this.#options.maxUnacked ?? 8,
            },
          },
        })
        if (this.plan)
          say({ payload: { case: 'plan', value: { version: this.plan.version, json: encodePlan(this.plan) } } })
        return
      case 'metrics':
        this.originalIds.push(payload.value.batchId)
        say({ payload: { case: 'ack', value: { batchId: payload.value.batchId, success: true } } })
        return
      case 'frame':
        this.#frame(link, payload.value, bytes.length)
        return
      case 'loss': {
        const { sequence, lost, fromMs, toMs, cause, count, keptEveryMs } = payload.value
        const ranges = lost.map(({ first, last }) => [first, last] as const)
        this.received = rangesOf([...this.received, ...ranges])
        const loss = { origin: this.origin, sequence, lost: ranges, from: fromMs, to: toMs, count, keptEveryMs }
        this.losses.set(sequence, { ...loss, cause: cause as Loss['cause'] })
        this.#ack(link, sequence)
        return
      }
      default:
        return
    }
  }

  #frame(
    link: MemoryLink,
    frame: Extract<ConnectRequest['payload'], { case: 'frame' }>['value'],
    messageBytes: number,
  ): void {
    const { sequence, base, backfill, collectedAtMs, ageMs } = frame
    const said = this.onFrame?.(sequence)
    if (said === 'nothing') return
    if (said !== undefined && said !== 'resync') {
      link.deliver(encodeResponse(said))
      return
    }
    // A difference is to the newest that was taken live, and to nothing else.
    const view = base > 0 && base === this.#live ? link.views.get(base) : undefined
    if (said === 'resync' || (base > 0 && !view)) {
      // As a hub does: the next must be complete, and this one was refused.
      const received = [{ first: sequence, last: sequence }]
      const refusal = { success: false, retryable: true, code: 'base_mismatch', received }
      link.deliver(encodeResponse({ payload: { case: 'resync', value: {} } }))
      link.deliver(encodeResponse({ payload: { case: 'ack', value: refusal } }))
      return
    }
    const body = frame.compression === 1 ? inflateRawSync(frame.body) : frame.body
    const { cluster, now } = this.#options
    const head = {
      cluster,
      origin: this.origin,
      sequence,
      collectedAt: collectedAtMs,
      ...(base > 0 && { base }),
      backfill,
    }
    const decoded = decodeBody(body, head, view)
    if (!backfill) {
      for (const older of link.views.keys()) if (older < base) link.views.delete(older)
      link.views.set(sequence, decoded.view)
      this.#live = Math.max(this.#live, sequence)
    }
    if (inRanges(this.received, sequence)) this.repeats++
    else {
      const kept = this.#options.keepViews === false ? { batch: { ...decoded.batch, parts: [] }, view: {} } : decoded
      this.arrivals.set(sequence, { ...kept, backfill, base, ageMs, messageBytes, at: now() })
    }
    this.#ack(link, sequence)
  }

  #ack(link: MemoryLink, sequence: number): void {
    this.received = withRange(this.received, [sequence, sequence])
    const value = { success: true, received: [{ first: sequence, last: sequence }] }
    const say = () => link.deliver(encodeResponse({ payload: { case: 'ack', value } }))
    const { beforeAck } = this.#options
    if (beforeAck) void beforeAck().then(say)
    else say()
  }
}

class MemoryLink implements Link {
  readonly views = new Map<number, BatchView>()
  readonly #onMessage: (bytes: Uint8Array) => void
  readonly #waiting: Uint8Array[] = []
  #wake: (() => void) | undefined
  #over: LinkError | 'ended' | undefined

  constructor(onMessage: (bytes: Uint8Array) => void) {
    this.#onMessage = onMessage
  }

  send(message: Uint8Array): boolean {
    if (this.#over === undefined) this.#onMessage(message)
    return true
  }

  writable(): Promise<void> {
    return Promise.resolve()
  }

  get messages(): AsyncIterable<Uint8Array> {
    return this.#read()
  }

  deliver(bytes: Uint8Array): void {
    this.#waiting.push(bytes)
    this.#wake?.()
  }

  end(over: LinkError | 'ended'): void {
    this.#over ??= over
    this.#wake?.()
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) yield next
      if (this.#over instanceof LinkError) throw this.#over
      if (this.#over === 'ended') return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end('ended')
  }
}
