import { samplesOf } from '#history'
import {
  type Batch,
  type BatchView,
  countInRanges,
  FleetError,
  inRanges,
  type Loss,
  missingFrom,
  ORIGINAL_ORIGIN,
  type SequenceRange,
} from '#model'
import { type Frame, type Hello, type Loss as LossMessage, negotiate, WireError } from '#wire'
import { grpcStatus } from '../line/grpc-status.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { type Channel, type ChannelContext, delivered } from './channel.ts'
import { decodeFrame, FrameRefusedError, hasChanges, isSequence, lossOf, withoutBase } from './frames.ts'
import type { Work } from './in-flight.ts'
import { planned } from './planned.ts'
import type { Farewell, Offering, Payload } from './session-events.ts'
import { correctTime } from './times.ts'

/** A frame this young tells what its sender's clock shows. */
const FRESH_MS = 5_000
const KEPT_VIEWS = 3
const MAX_RESTORED_RANGES = 1_024
const MAX_RECEIVED_RANGES = 4_096
const ORIGIN = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/

type Agreed = NonNullable<ReturnType<typeof negotiate>>

/** What hub and agent speak, or why they cannot. */
export function agreeOn(hello: Hello): Agreed | { readonly farewell: Farewell } {
  const { origin, nowMs } = hello
  if (!ORIGIN.test(origin) || origin === ORIGINAL_ORIGIN || !Number.isFinite(nowMs)) {
    const message = 'the hello names no usable origin or time'
    return { farewell: { status: grpcStatus.invalidArgument, code: 'invalid_hello', message } }
  }
  const agreed = negotiate(hello)
  if (agreed) return agreed
  const message = 'this hub and this agent have no version in common'
  return { farewell: { status: grpcStatus.failedPrecondition, code: 'version', message, retryAfterMs: 60_000 } }
}

/** Batches and losses of an agent of ours, which numbers them and keeps them until they are acknowledged. */
export class OwnFrames implements Channel {
  readonly #context: ChannelContext
  readonly #origin: string
  readonly #acks: Acknowledgements
  readonly #underWay = new Set<number>()
  /** of live frames of this stream, oldest first; only acknowledged ones are bases */
  readonly #views = new Map<number, BatchView>()
  /** what its buffer held at the registration, `empty` where it held nothing; undefined: no longer of interest */
  #pending: SequenceRange | 'empty' | undefined
  /** collection times: of the newest batch before this stream, and of the oldest that came by it */
  readonly #heardTo: number | undefined
  #earliestAt = Number.POSITIVE_INFINITY

  constructor(context: ChannelContext, { origin, oldestSequence: first, newestSequence: last }: Hello) {
    this.#context = context
    this.#origin = origin
    this.#acks = new Acknowledgements(context.effects, () => context.world.random())
    this.#heardTo = context.world.heardTo(this.#cluster, origin)
    this.#pending = isSequence(first) && isSequence(last) && first <= last ? [first, last] : 'empty'
  }

  welcome({ version, capabilities }: Agreed, now: number) {
    const { world, stream, effects } = this.#context
    const { maxMessageBytes, backlogBytesPerSecond, maxUnacked } = world.limits
    effects.send({
      case: 'welcome',
      value: {
        version,
        capabilities: [...capabilities],
        // The newest runs: what is left out is sent again and dropped here.
        received: this.#received.slice(-MAX_RECEIVED_RANGES).map(([first, last]) => ({ first, last })),
        nowMs: now,
        maxMessageBytes,
        backlogBytesPerSecond,
        epoch: stream.registered.place.epoch,
        maxUnacked,
      },
    })
  }

  take(payload: Payload, bytes: number, now: number): boolean {
    if (payload.case === 'frame') this.#frame(payload.value, bytes, now)
    else if (payload.case === 'loss') this.#loss(payload.value, bytes, now)
    else return false
    return true
  }

  flush() {
    this.#acks.flush()
  }

  get #cluster() {
    return this.#context.stream.registered.peer.cluster
  }

  get #received(): readonly SequenceRange[] {
    return this.#context.world.received(this.#cluster, this.#origin)
  }

  #frame(frame: Frame, bytes: number, now: number) {
    const { world, stream, effects, rate } = this.#context
    const { clock } = stream.registered
    const { sequence, base, bodyBytes, collectedAtMs: collectedAt, ageMs } = frame
    effects.count('frame')
    if (!isSequence(sequence)) {
      this.#acks.refuse(0, new FrameRefusedError('it has no sequence'))
      return this.#bad()
    }
    if (this.#underWay.has(sequence)) return
    rate.inflate(Math.max(0, Math.min(bodyBytes, world.limits.maxBodyBytes)), now)
    const known = base === 0 ? undefined : this.#views.get(base)
    if (base !== 0 && !known) return this.#withoutView(sequence)
    // Sent as soon as it was collected: what the clock showed then it shows still.
    if (!frame.backfill && ageMs !== undefined && ageMs >= 0 && ageMs < FRESH_MS && Number.isFinite(collectedAt))
      clock.compare(collectedAt + ageMs, now)
    const time = correctTime({ collectedAt, ageMs, offsetMs: clock.ms ?? 0, now })
    if (time.corrected) effects.count('time_corrected')
    this.#lookForRestored(sequence, time.at, now)
    try {
      const head = { cluster: this.#cluster, origin: this.#origin, collectedAt: time.at }
      const { batch, view } = decodeFrame(frame, head, known, world.limits)
      this.#deliver(planned(batch, this.#context), view, bytes + bodyBytes, now)
    } catch (error) {
      if (error instanceof WireError && error.code === 'base_mismatch') return this.#resync(sequence)
      this.#refused(sequence, error)
    }
  }

  #loss(message: LossMessage, bytes: number, now: number) {
    this.#context.effects.count('loss')
    if (this.#underWay.has(message.sequence)) return
    try {
      const loss = lossOf(message, this.#origin)
      const offsetMs = this.#context.stream.registered.clock.ms ?? 0
      const [from, to] = [loss.from, loss.to].map((collectedAt) => correctTime({ collectedAt, offsetMs, now }).at)
      this.#declare({ ...loss, from: from ?? loss.from, to: to ?? loss.to }, bytes, now)
    } catch (error) {
      this.#refused(message.sequence, error)
    }
  }

  #declare(loss: Loss, bytes: number, now: number) {
    const { sequence } = loss
    this.#offer({ sequence, bytes, offering: () => ({ kind: 'lost', cluster: this.#cluster, loss }) }, now)
  }

  #deliver(given: Batch, view: BatchView, bytes: number, now: number) {
    let batch = given
    const { sequence, backfill } = given
    const offering = (): Offering => {
      // Of a difference only we know the whole.
      const samples = hasChanges(batch) ? samplesOf(batch, view) : undefined
      return { kind: 'accept', offer: { batch, samples } }
    }
    const rebase = () => {
      if (!hasChanges(batch) && batch.base === undefined) return false
      batch = withoutBase(batch, view)
      return true
    }
    const accepted = () => {
      if (backfill) return
      this.#keepView(sequence, view)
      delivered(this.#context)
    }
    this.#offer({ sequence, bytes, offering, rebase, accepted }, now)
  }

  #offer({ sequence, accepted, ...work }: Offered, now: number) {
    const { inFlight, world } = this.#context
    this.#underWay.add(sequence)
    inFlight.open(
      {
        ...work,
        holdMs: world.limits.holdMs,
        accepted: () => {
          this.#underWay.delete(sequence)
          this.#acks.add(sequence)
          accepted?.()
        },
        failed: (error) => {
          this.#underWay.delete(sequence)
          this.#acks.refuse(sequence, error)
        },
      },
      now,
    )
  }

  /**
   * What we acknowledged, so that the agent has it no more, and have not ourselves: our folder was put back from an older copy. Looked for
   * once per stream, as soon as all that its buffer held has arrived, its declared losses among it.
   */
  #lookForRestored(sequence: number, at: number, now: number) {
    const pending = this.#pending
    if (!pending) return
    this.#earliestAt = Math.min(this.#earliestAt, at)
    const from = pending === 'empty' ? sequence : pending[0]
    const received = this.#received
    if (pending !== 'empty' && missingFrom(received, pending).length > 0) return
    this.#pending = undefined
    // What came before the first that we know may have gone to another hub.
    const known = received[0]?.[0] ?? from
    const lost = known < from ? missingFrom(received, [known, from - 1]) : []
    const [first] = lost
    if (!first) return
    this.#context.effects.note(
      'warn',
      { lost },
      'what was received of an agent is not here any more: it is declared lost',
    )
    const loss: Loss = {
      origin: this.#origin,
      sequence: first[0],
      lost: lost.slice(0, MAX_RESTORED_RANGES),
      from: Math.min(this.#heardTo ?? this.#earliestAt, this.#earliestAt),
      to: this.#earliestAt,
      cause: 'restored',
      count: countInRanges(lost),
      keptEveryMs: 0,
    }
    this.#declare(loss, 0, now)
  }

  // A repeat needs no base: it is here already.
  #withoutView(sequence: number) {
    if (!inRanges(this.#received, sequence)) return this.#resync(sequence)
    this.#context.effects.count('duplicate')
    this.#acks.add(sequence)
  }

  #resync(sequence: number) {
    const { effects } = this.#context
    effects.count('resync')
    effects.send({ case: 'resync', value: {} })
    this.#acks.resend(sequence, { code: 'base_mismatch', message: 'the base is not known here' }, 0)
  }

  #refused(sequence: number, error: unknown) {
    this.#acks.refuse(sequence, FleetError.from(error))
    this.#bad()
  }

  /** A sound agent sends a bad frame now and then at most, as of a buffer that was damaged. */
  #bad() {
    const { world, stream } = this.#context
    if (!world.badFrame(stream.registered.peer)) return
    const message = 'too many frames were no batches'
    this.#context.end({ status: grpcStatus.invalidArgument, code: 'bad_frames', message, retryAfterMs: 60_000 })
  }

  #keepView(sequence: number, view: BatchView) {
    this.#views.set(sequence, view)
    const oldest = this.#views.keys().next().value
    if (this.#views.size > KEPT_VIEWS && oldest !== undefined) this.#views.delete(oldest)
  }
}

type Offered = Pick<Work, 'bytes' | 'offering' | 'rebase'> & {
  readonly sequence: number
  readonly accepted?: () => void
}
