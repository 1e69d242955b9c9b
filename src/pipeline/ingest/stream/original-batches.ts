import { FleetError, type NodeSnapshot, ORIGINAL_ORIGIN } from '#model'
import { batchFromOriginal, type MetricsBatch, type ReadOriginal, readOriginal } from '#wire'
import { ack } from './acknowledgements.ts'
import { type Channel, type ChannelContext, delivered } from './channel.ts'
import { millisecondsOf } from './open-stream.ts'
import { planned, sourcesOf } from './planned.ts'
import type { Payload } from './session-events.ts'
import { correctOriginalTime } from './times.ts'

const RECENT = 64

interface Queued {
  readonly metrics: MetricsBatch
  readonly bytes: number
  /** where it was read from its bytes: the nodes, and the bytes */
  readonly read?: Pick<ReadOriginal, 'nodes'> & { readonly message: Uint8Array }
}

/**
 * Batches of a collector of the original: the hub numbers them, and takes one after the other, so that their acks keep their
 * order.
 */
export class OriginalBatches implements Channel {
  readonly #context: ChannelContext
  readonly #queue: Queued[] = []
  #isBusy = false
  /** as they were told last, so that what did not move is not made anew */
  #nodes: readonly NodeSnapshot[] = []

  constructor(context: ChannelContext) {
    this.#context = context
  }

  read(message: Uint8Array, now: number): boolean {
    if (this.#context.stream.registered.protocol !== 'original') return false
    const read = readOriginal(message, this.#nodes)
    if (!read) return false
    this.#add({ metrics: read.metrics, bytes: message.length, read: { nodes: read.nodes, message } }, now)
    return true
  }

  take(payload: Payload, bytes: number, now: number): boolean {
    if (payload.case !== 'metrics') return false
    this.#add({ metrics: payload.value, bytes }, now)
    return true
  }

  leave() {
    for (const { bytes } of this.#queue.splice(0)) this.#context.inFlight.release(bytes)
  }

  #add(queued: Queued, now: number) {
    const { world, identity, effects, inFlight, end } = this.#context
    const { metrics, bytes } = queued
    const other = identity.claim(metrics.clusterName)
    if (other) return end(other)
    effects.count('original')
    if (bytes > world.limits.maxOriginalMessageBytes)
      return this.#refuse(metrics.batchId, `the batch of ${bytes} bytes is too large`)
    inFlight.hold(bytes)
    this.#queue.push(queued)
    this.#next(now)
  }

  #next(now: number) {
    while (!this.#isBusy) {
      const next = this.#queue.shift()
      if (!next) return
      this.#context.inFlight.release(next.bytes)
      this.#offer(next, now)
    }
  }

  #offer({ metrics, bytes, read }: Queued, now: number) {
    const { world, stream, effects, inFlight } = this.#context
    const { place, peer, clock } = stream.registered
    const { originals } = place
    const { cluster } = peer
    const { batchId } = metrics
    if (batchId !== '' && originals.recent.includes(batchId)) {
      effects.count('duplicate')
      return this.#ack(batchId, '')
    }
    const collectedAt = millisecondsOf(metrics.collectedAt) ?? Number.NaN
    const time = correctOriginalTime({ collectedAt, offsetMs: clock.ms ?? 0, now })
    if (time.corrected) effects.count('time_corrected')
    const sequence = originals.last + 1
    const head = { cluster, origin: ORIGINAL_ORIGIN, sequence, collectedAt: time.at }
    const plan = world.planOf(cluster)
    const hashOf = (source: string) => (plan && sourcesOf(plan).get(source)?.hash) ?? ''
    try {
      const batch = planned(batchFromOriginal(metrics, head, hashOf, read?.nodes), this.#context)
      originals.last = sequence
      if (read) this.#nodes = read.nodes
      this.#isBusy = true
      inFlight.open(
        {
          bytes,
          holdMs: world.limits.holdOriginalMs,
          offering: () => ({ kind: 'accept', offer: { batch, message: read?.message } }),
          accepted: (then) => {
            originals.recent.push(batchId)
            if (originals.recent.length > RECENT) originals.recent.shift()
            this.#ack(batchId, '')
            delivered(this.#context)
            this.#ended(then)
          },
          failed: (error, then) => {
            if (originals.last === sequence) originals.last--
            this.#refuse(batchId, error.message)
            this.#ended(then)
          },
        },
        now,
      )
    } catch (error) {
      this.#refuse(batchId, FleetError.from(error).message)
    }
  }

  #ended(now: number) {
    this.#isBusy = false
    this.#next(now)
  }

  #refuse(batchId: string, why: string) {
    const { effects } = this.#context
    effects.count('refused')
    effects.note('warn', { batchId, error: why }, 'a batch of a collector was refused')
    this.#ack(batchId, why.slice(0, 1024))
  }

  #ack(batchId: string, error: string) {
    this.#context.effects.send(ack({ batchId, success: error === '', error }))
  }
}
