import { encodeSamples } from '#history'
import type { AgentFacts, Batch, ClusterName, Loss, Plan, SampleSet, SequenceRange } from '#model'
import { invariant, systemClock } from '#model'
import { type ConnectRequest, decodeRequest, negotiate } from '#wire'
import { batchCheck } from '../check-batch.ts'
import type { Accepted } from '../ingester.ts'
import { plainBatch } from '../stored-custom.ts'
import type { Holder } from '../stream/places.ts'
import { addSequence } from '../stream/ranges.ts'
import type { Changed, Seat, Seats } from '../stream/seats.ts'
import { namesItself, ORIGINAL_ORIGIN, type Place, type SessionWorld } from '../stream/session.ts'
import type { Peer, Presented, Verdict } from '../stream/types.ts'
import type { Channel } from './channel.ts'
import { Credit } from './credit.ts'
import type { Admission, ToFront, ToOwner } from './messages.ts'

/** Bytes of batches that are with the owner of the log, of one process. */
const CREDIT_BYTES = 32 * 2 ** 20
/** With nothing but a heartbeat to tell, it is told so often. */
const HEARTBEAT_EVERY_MS = 5_000
const LAST_WORDS_MS = 1_000

export interface RemoteSeatsOptions {
  readonly channel: Channel<ToOwner, ToFront>
  now(): number
}

/** Seats whose owner is another process. It decides; here is what it said, pushed when it changes. */
export class RemoteSeats implements Seats {
  readonly #options: RemoteSeatsOptions
  readonly #credit = new Credit(CREDIT_BYTES)
  readonly #check = batchCheck()
  readonly #seats = new Map<number, RemoteSeat>()
  readonly #listeners = new Set<Changed>()
  #next = 1
  #empty: (() => void) | undefined

  constructor(options: RemoteSeatsOptions) {
    this.#options = options
  }

  take(presented: Presented): Seat {
    const id = this.#next++
    const { channel, now } = this.#options
    const seat = new RemoteSeat({
      id,
      presented,
      channel,
      now,
      credit: this.#credit,
      check: this.#check,
      gone: () => {
        this.#seats.delete(id)
        if (this.#seats.size === 0) this.#empty?.()
      },
    })
    this.#seats.set(id, seat)
    return seat
  }

  onChange(listener: Changed): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  sweep(): void {
    // The owner sweeps.
  }

  /** What was said last to agents goes out, as far as it does so soon. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#seats.size === 0) return
    const patience = new AbortController()
    const empty = new Promise<void>((resolve) => {
      this.#empty = resolve
    })
    await Promise.race([empty, systemClock.sleep(LAST_WORDS_MS, patience.signal)])
    patience.abort()
  }

  /** What the owner says of one stream. */
  heard(message: Extract<ToFront, { readonly stream: number }>) {
    const seat = this.#seats.get(message.stream)
    if (!seat) return
    switch (message.kind) {
      case 'revoked':
        seat.revoke()
        return this.#changed('credentials')
      case 'plan':
        seat.plan = message.plan ?? undefined
        return this.#changed('plan', seat.cluster)
      case 'replaced':
        return seat.tell((holder) => holder.replaced(message.message, message.retryAfterMs))
      case 'disconnect':
        return seat.tell((holder) => holder.disconnect(message.code, message.message))
      default:
        message satisfies never
    }
  }

  #changed(...what: Parameters<Changed>) {
    for (const listener of this.#listeners) listener(...what)
  }
}

interface RemoteSeatOptions {
  readonly id: number
  readonly presented: Presented
  readonly channel: Channel<ToOwner, ToFront>
  readonly credit: Credit
  check(batch: Batch): void
  now(): number
  gone(): void
}

class RemoteSeat implements Seat {
  readonly #options: RemoteSeatOptions
  #peer: Peer | undefined
  #admission: Admission | undefined
  #valid = true
  #received: readonly SequenceRange[] = []
  plan: Plan | undefined
  #holder: Holder | undefined
  #toTell: ((holder: Holder) => void)[] = []
  #told: AgentFacts | undefined
  #toldAt = 0
  #toldDelivering = false
  #ended = false

  constructor(options: RemoteSeatOptions) {
    this.#options = options
  }

  get cluster(): ClusterName | undefined {
    return this.#peer?.cluster
  }

  readonly world: Pick<SessionWorld, 'verify' | 'stillValid' | 'knows' | 'received' | 'planOf'> = {
    verify: () => this.#admission?.verdict ?? { refused: 'unknown' },
    stillValid: () => this.#valid,
    knows: () => this.#admission?.known ?? false,
    received: () => this.#received,
    planOf: () => this.plan,
  }

  readonly ingester: Seat['ingester'] = {
    accept: (batch, _signal, samples) => this.#accept(batch, samples),
    lost: (cluster, loss) => this.#lost(cluster, loss),
  }

  async opened(): Promise<Verdict> {
    const { channel, presented } = this.#options
    const verdict = await channel.ask<Verdict>({ kind: 'verify', presented })
    if ('peer' in verdict) this.#peer = verdict.peer
    return verdict
  }

  async prepare(message: Uint8Array): Promise<void> {
    const register = registrationIn(message)
    if (!register || this.#admission) return
    const { id, channel, presented } = this.#options
    const { hello } = register
    const admission = await channel.ask<Admission>({
      kind: 'admit',
      stream: id,
      presented,
      ...(this.#peer && { peer: this.#peer }),
      token: register.token,
      claimed: register.clusterName,
      origin: hello?.origin ?? ORIGINAL_ORIGIN,
      enters: !hello || (namesItself(hello) && negotiate(hello) !== undefined),
    })
    this.#admission = admission
    this.#received = admission.received
    this.plan ??= admission.plan ?? undefined
    this.#valid &&= admission.valid
    if ('peer' in admission.verdict) this.#peer = admission.verdict.peer
    if (this.#ended) this.#leave()
  }

  enter(_cluster: ClusterName, _identity: string, holder: Holder): Place {
    const place = this.#admission?.place
    invariant(place, 'a session enters only where the owner of the log found nothing against it')
    this.#holder = holder
    // What was said of the place before it was taken is told once the session has taken it.
    if (this.#toTell.length > 0) setImmediate(() => this.#toTell.splice(0).forEach((tell) => void tell(holder)))
    return place
  }

  facts(_cluster: ClusterName, holder: Holder, facts: AgentFacts, now: boolean): void {
    const delivering = holder.isDelivering
    const at = this.#options.now()
    const isNew = now || delivering !== this.#toldDelivering
    if (!isNew && (at - this.#toldAt < HEARTBEAT_EVERY_MS || same(this.#told, facts))) return
    this.#told = facts
    this.#toldAt = at
    this.#toldDelivering = delivering
    this.#options.channel.tell({ kind: 'facts', stream: this.#options.id, facts, delivering, now })
  }

  ended(): void {
    this.#ended = true
    this.#options.gone()
    this.#leave()
  }

  revoke(): void {
    this.#valid = false
  }

  tell(what: (holder: Holder) => void): void {
    if (this.#holder) what(this.#holder)
    else this.#toTell.push(what)
  }

  #leave() {
    if (this.#admission?.place) this.#options.channel.tell({ kind: 'left', stream: this.#options.id })
  }

  async #accept(batch: Batch, samples: SampleSet | undefined): Promise<Accepted> {
    const { id, channel, check } = this.#options
    check(batch)
    const accepted = await this.#onCredit(sizeOf(batch), () =>
      channel.ask<Accepted>(
        { kind: 'accept', stream: id, batch: plainBatch(batch) },
        samples && encodeSamples(samples),
      ),
    )
    if (batch.origin === ORIGINAL_ORIGIN) setImmediate(() => this.#tellRecent())
    else this.#received = addSequence(this.#received, batch.sequence)
    return accepted
  }

  // The session has noted the id by now, and its ack is on its way.
  #tellRecent() {
    const ids = this.#admission?.place?.originals.recent.slice(-1)
    if (ids) this.#options.channel.tell({ kind: 'recent', stream: this.#options.id, ids })
  }

  async #lost(cluster: ClusterName, loss: Loss): Promise<Accepted> {
    const accepted = await this.#options.channel.ask<Accepted>({ kind: 'lost', cluster, loss })
    this.#received = addSequence(this.#received, loss.sequence)
    return accepted
  }

  async #onCredit<T>(bytes: number, action: () => Promise<T>): Promise<T> {
    const { credit } = this.#options
    await credit.take(bytes)
    try {
      return await action()
    } finally {
      credit.give(bytes)
    }
  }
}

/** Near enough for a bound: an item is about a kibibyte as text. */
function sizeOf({ parts, custom = [] }: Batch): number {
  let items = 0
  for (const part of parts) {
    if (part.outcome === 'complete') items += part.items.length
    else if (part.outcome === 'changed') items += part.put.length + part.removed.length
  }
  let values = 0
  for (const part of custom) {
    const rows = part.outcome === 'complete' ? part.rows : part.outcome === 'changed' ? part.put : undefined
    values += 16 + (rows ? rows.size * (4 + rows.fields.length) : 0)
  }
  return 512 + 1024 * items + 16 * values
}

type Registration = Extract<ConnectRequest['payload'], { readonly case: 'register' }>['value']

/** undefined: another message, or none of this protocol; the session says what becomes of it. */
function registrationIn(message: Uint8Array): Registration | undefined {
  try {
    const { payload } = decodeRequest(message)
    return payload.case === 'register' ? payload.value : undefined
  } catch {
    return undefined // the session reads it again, and refuses it
  }
}

const same = (told: AgentFacts | undefined, facts: AgentFacts) =>
  told !== undefined && (Object.keys(facts) as (keyof AgentFacts)[]).every((key) => facts[key] === told[key])
