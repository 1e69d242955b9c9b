import type { ChannelCredentials } from '@grpc/grpc-js'
import { type Batch, parseClusterName } from '#model'
import { StreamClient } from '../src/pipeline/ingest/stream/test/clients.ts'
import { frame, hello } from '../src/pipeline/ingest/stream/test/own-agent.ts'
import { aNode } from '../src/pipeline/state/test/fleet-words.ts'

interface PusherOptions {
  readonly host: string
  readonly port: number
  readonly cluster: string
  readonly token: string
  /** default: without TLS */
  readonly credentials?: ChannelCredentials
}

/** As many samples come late together at most: less than makes a hub think that a clock was set. */
const UNACKED = 32

interface Produced {
  readonly batch: Batch
  readonly madeAt: number
}

/**
 * An agent without cluster and without disk, for tests that know every batch: the CPU that is requested on its only node
 * is the batch's number. It connects again when its stream ends, and sends again what was not acknowledged.
 */
export class WirePusher implements AsyncDisposable {
  readonly #options: PusherOptions
  readonly #origin = `pusher-${Math.random().toString(36).slice(2)}`
  readonly #produced: Produced[] = []
  readonly #safe = new Set<number>()
  readonly #loop: Promise<void>
  #link: StreamClient | undefined
  #newestSent = 0
  #isStopped = false
  /** acks that asked for a frame again */
  held = 0
  /** what the hub refused for good: never to happen */
  readonly refusals: string[] = []
  streams = 0
  /** from a batch to its acknowledgement, ms, of each; a reader may empty it */
  readonly waits: number[] = []

  constructor(options: PusherOptions) {
    this.#options = options
    this.#loop = this.#run()
  }

  /** numbers of all batches there are */
  get numbers(): readonly number[] {
    return this.#produced.map(({ batch }) => batch.sequence)
  }

  get unsafe(): readonly number[] {
    return this.numbers.filter((number) => !this.#safe.has(number))
  }

  get isConnected(): boolean {
    return this.#link !== undefined
  }

  /** A hub that is far behind is given nothing more, as by an agent. */
  push(count = 1): void {
    if (this.#link && this.unsafe.length > UNACKED) return
    for (let i = 0; i < count; i++) {
      const sequence = this.#produced.length + 1
      // No two of one time, however fast they are made.
      const collectedAt = Math.max(Date.now(), (this.#produced.at(-1)?.batch.collectedAt ?? 0) + 1)
      const node = { ...aNode('n1'), requested: { cpuCores: sequence, memoryBytes: 0 } }
      const batch: Batch = {
        cluster: parseClusterName(this.#options.cluster),
        origin: this.#origin,
        sequence,
        source: 'push',
        collectedAt,
        durationMs: 1,
        parts: [{ type: 'node', collector: 'nodes', durationMs: 1, outcome: 'complete', items: [node] }],
      }
      const produced = { batch, madeAt: performance.now() }
      this.#produced.push(produced)
      this.#send(produced)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true
    await this.#link?.[Symbol.asyncDispose]()
    await this.#loop
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const { host, port, token, cluster, credentials } = this.#options
      await using link = new StreamClient({ address: { host, port }, token, ...(credentials && { credentials }) })
      link.send(hello({ cluster, token, origin: this.#origin }))
      await this.#serve(link).catch((error: unknown) => String(error)) // the hub is away: so it is tried again
      this.#link = undefined
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async #serve(link: StreamClient): Promise<void> {
    this.#take((await link.next('welcome')).received)
    if (this.#isStopped) return
    this.#link = link
    this.streams++
    this.#newestSent = 0
    for (const produced of this.#produced) if (!this.#safe.has(produced.batch.sequence)) this.#send(produced)
    for (;;) {
      const ack = await link.next('ack')
      if (ack.success) this.#take(ack.received)
      else if (!ack.retryable) this.refusals.push(`${ack.code}: ${ack.error}`)
      else {
        this.held++
        const again = this.#produced.filter(({ batch }) =>
          ack.received.some(({ first, last }) => batch.sequence >= first && batch.sequence <= last),
        )
        setTimeout(() => {
          if (this.#link === link) for (const one of again) this.#send(one)
        }, ack.retryAfterMs)
      }
    }
  }

  #send({ batch, madeAt }: Produced): void {
    const backfill = batch.sequence < this.#newestSent
    this.#newestSent = Math.max(this.#newestSent, batch.sequence)
    this.#link?.send(frame({ ...batch, backfill }, { ageMs: performance.now() - madeAt }))
  }

  #take(ranges: readonly { readonly first: number; readonly last: number }[]): void {
    const now = performance.now()
    for (const { first, last } of ranges)
      for (let n = first; n <= last; n++) {
        const produced = this.#safe.has(n) ? undefined : this.#produced[n - 1]
        if (produced) this.waits.push(now - produced.madeAt)
        this.#safe.add(n)
      }
  }
}
