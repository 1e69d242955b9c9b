import { decodeSamples } from '#history'
import { type AgentFacts, type ClusterName, invariant } from '#model'
import type { Accepted } from '../ingester.ts'
import { batchOf } from '../stored-custom.ts'
import type { StreamIngester } from '../stream/ingest-port.ts'
import type { Holder } from '../stream/places.ts'
import type { LocalSeat, LocalSeats } from '../stream/seats.ts'
import { ORIGINAL_ORIGIN, type Place } from '../stream/session.ts'
import type { Peer, Verdict } from '../stream/types.ts'
import type { Admission, AdmissionWanted, ToFront, ToOwner } from './messages.ts'

export interface OwnerEndOptions {
  readonly seats: LocalSeats
  readonly ingester: StreamIngester
  readonly now: () => number
  /** name of the other process */
  readonly process: string
  tell(message: ToFront): void
}

/** Streams of one other process, as the owner of the log has them. What it says of a place is decided here. */
export class OwnerEnd {
  readonly #options: OwnerEndOptions
  readonly #streams = new Map<number, RemoteStream>()

  constructor(options: OwnerEndOptions) {
    this.#options = options
  }

  /** @returns what is asked for: Verdict, Admission, Accepted */
  async asked(message: ToOwner, bytes: Uint8Array): Promise<Verdict | Admission | Accepted> {
    const { seats, ingester } = this.#options
    switch (message.kind) {
      case 'verify':
        return seats.take(message.presented).opened()
      case 'admit':
        return this.#admit(message)
      case 'lost':
        return ingester.lost(message.cluster, message.loss)
      case 'accept':
        return this.#accept(message, bytes)
      default:
        throw new Error(`nobody answers ${message.kind}`)
    }
  }

  heard(message: Extract<ToOwner, { readonly kind: 'facts' | 'recent' | 'left' }>) {
    const stream = this.#streams.get(message.stream)
    if (!stream) return
    if (message.kind === 'facts') return stream.facted(message.facts, message.delivering, message.now)
    if (message.kind === 'recent') return stream.remember(message.ids)
    this.#streams.delete(message.stream)
    stream.gone('the connection ended', this.#options.now())
  }

  /** Credentials changed, or time passed. */
  check(): void {
    for (const stream of this.#streams.values()) stream.check()
  }

  planned(cluster: ClusterName | undefined): void {
    for (const stream of this.#streams.values())
      if (cluster === undefined || stream.peer.cluster === cluster) stream.sendPlan()
  }

  /** The process is gone, and its streams with it. */
  ended(): void {
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.gone('the process of the hub that held the stream ended', this.#options.now())
  }

  async #admit({ stream: id, presented, peer, token, claimed, origin, enters }: AdmissionWanted): Promise<Admission> {
    const seat = this.#options.seats.take(presented)
    const verdict: Verdict = peer ? { peer } : seat.world.verify(token)
    if (!('peer' in verdict)) return { verdict, valid: false, known: false, received: [], plan: null }
    const { cluster } = verdict.peer
    const valid = seat.world.stillValid(verdict.peer)
    const known = seat.world.knows(cluster)
    if (!enters || !valid || !known || claimed !== cluster) return { verdict, valid, known, received: [], plan: null }
    const stream = new RemoteStream({
      id,
      peer: verdict.peer,
      seat,
      process: this.#options.process,
      tell: (message) => this.#options.tell(message),
    })
    this.#streams.set(id, stream)
    const place = stream.enter(origin)
    return {
      verdict,
      valid,
      known,
      received: seat.world.received(cluster, origin),
      plan: seat.world.planOf(cluster) ?? null,
      place,
    }
  }

  async #accept(message: Extract<ToOwner, { kind: 'accept' }>, bytes: Uint8Array): Promise<Accepted> {
    const stream = this.#streams.get(message.stream)
    invariant(stream, 'batches come of streams that were admitted and have not left')
    const samples = bytes.length > 0 ? decodeSamples(bytes) : undefined
    const batch = batchOf(message.batch)
    if (batch.origin !== ORIGINAL_ORIGIN) return this.#options.ingester.accept(batch, stream.signal, samples)
    // Originals are numbered here: two streams of one cluster in two processes must not give one number twice.
    const { originals } = stream.place
    const sequence = ++originals.last
    try {
      return await this.#options.ingester.accept({ ...batch, sequence }, stream.signal, samples)
    } catch (error) {
      if (originals.last === sequence) originals.last--
      throw error
    }
  }
}

interface RemoteStreamOptions {
  readonly id: number
  readonly peer: Peer
  readonly seat: LocalSeat
  readonly process: string
  tell(message: ToFront): void
}

class RemoteStream implements Holder {
  readonly #options: RemoteStreamOptions
  readonly #left = new AbortController()
  #place: Place | undefined
  #facts: AgentFacts | undefined
  #revoked = false
  isDelivering = false

  constructor(options: RemoteStreamOptions) {
    this.#options = options
  }

  get peer(): Peer {
    return this.#options.peer
  }

  get signal(): AbortSignal {
    return this.#left.signal
  }

  get place(): Place {
    invariant(this.#place, 'a stream that is kept has entered')
    return this.#place
  }

  enter(origin: string): Place {
    this.#place = this.#options.seat.enter(this.peer.cluster, origin, this)
    return this.#place
  }

  facts(): AgentFacts | undefined {
    return this.#facts
  }

  facted(given: AgentFacts, delivering: boolean, now: boolean): void {
    const facts = { ...given, process: this.#options.process }
    this.#facts = facts
    this.isDelivering = delivering
    this.#options.seat.facts(this.peer.cluster, this, facts, now)
  }

  /** Ids of an original's last batches, so that its next stream knows what it repeats. */
  remember(ids: readonly string[]): void {
    const { recent } = this.place.originals
    recent.splice(0, recent.length, ...new Set([...recent, ...ids].reverse()))
    recent.reverse()
    recent.splice(0, Math.max(0, recent.length - MAX_RECENT))
  }

  check(): void {
    const { seat, tell, id } = this.#options
    if (this.#revoked || seat.world.stillValid(this.peer)) return
    this.#revoked = true
    tell({ kind: 'revoked', stream: id })
  }

  sendPlan(): void {
    const { seat, tell, id } = this.#options
    tell({ kind: 'plan', stream: id, plan: seat.world.planOf(this.peer.cluster) ?? null })
  }

  replaced(message: string, retryAfterMs: number): void {
    const { tell, id } = this.#options
    tell({ kind: 'replaced', stream: id, message, retryAfterMs })
  }

  disconnect(code: string, message: string): void {
    const { tell, id } = this.#options
    tell({ kind: 'disconnect', stream: id, code, message })
  }

  /** Gives its place back, where it has not. */
  gone(reason: string, now: number): void {
    this.#left.abort()
    this.isDelivering = false
    if (this.#facts?.connected) this.facted({ ...this.#facts, connected: false, since: now, reason }, false, true)
    else this.#options.seat.leave(this.peer.cluster, this)
  }
}

const MAX_RECENT = 64
