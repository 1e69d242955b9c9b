import { randomUUID } from 'node:crypto'
import { headers } from '@nats-io/transport-node'
import { isUntaken, NATS_ANSWERS_WITHIN_MS } from '#nats'
import { eventFacts } from '../events/headers.ts'
import { type HeldSnapshot, heldAfter, keyOf, knownBy } from '../events/held.ts'
import { type EventMessage, eventMessages, storedBytes, tombstone } from '../events/messages.ts'
import { untilAborted } from '../events/until-aborted.ts'
import {
  type Delivery,
  type EventDeclaration,
  type Position,
  type Probe,
  type Receipt,
  type Sink,
  type SinkContext,
  SinkError,
  type SinkPreview,
  type Writing,
  writingWords,
} from '../sink.ts'
import { replacedBy } from '../writer-name.ts'
import { isWrongLast, natsSinkError } from './errors.ts'
import { type NatsPlan, natsPlan } from './plan.ts'
import { type NatsSession, openSession } from './session.ts'

/** Others who write on the same subject at the same time are waited for so often. */
const RACES = 5

/** Inventories that a warning is given of. */
const MAX_NAMED = 3

/** What is last on a subject. */
interface Last {
  /** in the stream; 0: nothing is on it */
  readonly sequence: number
  /** absent where somebody else's message is last */
  readonly held?: HeldSnapshot
}
const NOTHING: Last = { sequence: 0 }

/**
 * Publishes snapshots to JetStream. Where each inventory has a subject of its own, what is last on it says what the stream holds: a
 * repeat is not written, and no two writers can mix their parts, as each message names the one it follows.
 */
class NatsSink implements Sink {
  readonly family = 'event'
  readonly #plan: NatsPlan
  readonly #context: SinkContext
  readonly #ending = new AbortController()
  readonly #last = new Map<string, Last>()
  /** what this process published in parts, by inventory */
  readonly #large = new Map<string, { readonly writing: Writing; readonly parts: number; readonly bytes: number }>()
  #session: Promise<NatsSession> | undefined

  constructor(declaration: EventDeclaration, context: SinkContext) {
    this.#plan = natsPlan(declaration)
    this.#context = context
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    const { name, stream, filter, isOwnSubject } = this.#plan
    const warnings = [
      ...this.#plan.warnings,
      ...(isOwnSubject
        ? []
        : [
            'the subject does not hold {cluster}, {namespace} and {name}: inventories share it, consumers tell them apart by headers alone, and a restart may write once more what is there',
          ]),
    ]
    try {
      const session = await this.#call(signal, async (one) => {
        await one.look()
        return one
      })
      return {
        verified: true,
        message: `${name} is reached, and the stream ${stream} takes ${filter} in messages of up to ${session.maxBytes} bytes`,
        warnings: [...warnings, ...session.stream.warnings, ...this.#narrowWords(session)],
      }
    } catch (error) {
      signal.throwIfAborted()
      const { message, errorClass } = natsSinkError(error, this.#plan)
      return { verified: false, message, warnings, ...(errorClass === 'transient' && { isPassing: true }) }
    }
  }

  deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    return this.#call(signal, (session) => this.#deliver(session, delivery, signal))
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal): Promise<void> {
    const empty = tombstone(writing, position, this.#context.now())
    await this.#call(signal, async (session) => {
      const isThere = !this.#plan.isOwnSubject || (await this.#lastOf(session, writing)).sequence > 0
      if (isThere) await this.#deliver(session, empty, signal)
    })
  }

  preview(writing: Writing): SinkPreview {
    const { ensures, subjectOf } = this.#plan
    return {
      provisioningMode: ensures ? 'ensure' : 'existing',
      serializationFormat: 'json',
      objectPath: subjectOf(writing),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new SinkError('transient', 'the sink was closed'))
    const session = await this.#session?.catch(() => undefined)
    await session?.connection.close()
  }

  async #deliver(session: NatsSession, delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const { writer } = this.#context
    const key = keyOf(delivery.writing)
    // Of a subject that several share nothing is known, so that a look tells nothing.
    if (delivery.isLook && !this.#plan.isOwnSubject)
      return { position: delivery.position, written: 0, removed: 0, bytes: 0 }
    const before = this.#narrowWords(session).length
    const warns = () => this.#narrowWords(session).length !== before && { warnsAnew: true as const }
    for (let left = RACES; left > 0; left--) {
      const last = await this.#lastOf(session, delivery.writing, delivery.isLook)
      const known = knownBy(last.held, delivery, writer)
      if (known) {
        this.#last.set(key, { ...last, held: known.held })
        return { ...known.receipt, ...warns() }
      }
      // Unknown until all of it is there.
      this.#last.delete(key)
      try {
        const { sequence, ...done } = await this.#publish(session, delivery, last.sequence, signal)
        this.#last.set(key, { sequence, held: heldAfter(delivery, writer) })
        const replaced = replacedBy(writer, last.held?.writer)
        const told = { ...(replaced !== undefined && { replaced }), ...warns() }
        return { ...done, position: delivery.position, removed: 0, ...told }
      } catch (error) {
        if (!isWrongLast(error)) throw error
      }
    }
    const subject = this.#plan.subjectOf(delivery.writing)
    throw new SinkError('transient', `others publish on ${subject} all the time: it is tried again`)
  }

  /** What is last on the subject of an inventory; of a subject that several share, only what this process wrote is known. */
  async #lastOf(session: NatsSession, writing: Writing, isLook = false): Promise<Last> {
    const known = this.#last.get(keyOf(writing))
    if (known && !isLook) return known
    if (!this.#plan.isOwnSubject) return NOTHING
    const last = await this.#read(session, writing)
    return known && known.sequence === last.sequence && last.held?.isWhole !== false ? known : last
  }

  async #read(session: NatsSession, writing: Writing): Promise<Last> {
    const { stream, subjectOf } = this.#plan
    const subject = subjectOf(writing)
    const message = await session.manager.streams.getMessage(stream, { last_by_subj: subject })
    if (!message) return NOTHING
    const facts = eventFacts((name) => message.header.get(name))
    if (!facts || keyOf(facts.writing) !== keyOf(writing)) return { sequence: message.seq }
    const { part, position, checksum, complete, writer } = facts
    if (part.total > 1 && !this.#large.has(keyOf(writing))) {
      const bytes = (part.total - 1) * session.maxBytes + message.data.length
      this.#large.set(keyOf(writing), { writing, parts: part.total, bytes })
    }
    // Parts are published in order, each behind the one before: where the last one is there, all were.
    const isWhole = part.index === part.total && (await this.#hasLast(session, subject, part.total))
    return { sequence: message.seq, held: { position, checksum, complete, writer, isWhole } }
  }

  /** Whether the stream still has so many messages of a subject: it lets go of the oldest first. */
  async #hasLast({ manager }: NatsSession, subject: string, count: number): Promise<boolean> {
    if (count <= 1) return true
    const { state } = await manager.streams.info(this.#plan.stream, { subjects_filter: subject })
    return (state.subjects?.[subject] ?? 0) >= count
  }

  async #publish(session: NatsSession, delivery: Delivery, after: number, signal: AbortSignal) {
    const { writer } = this.#context
    const subject = this.#plan.subjectOf(delivery.writing)
    const key = keyOf(delivery.writing)
    const messages = () => eventMessages({ delivery, writer, maxBytes: session.maxBytes })
    let [sequence, written, bytes, stored] = [after, 0, 0, 0]
    for (const message of messages()) {
      signal.throwIfAborted()
      if (message.part.index === 1) await this.#checkRoom(session, message.part.total, () => storedBytes(messages()))
      const own = headers()
      for (const [name, value] of Object.entries(message.headers)) own.set(name, value)
      const put = (msgID: string) =>
        session.client
          .publish(subject, message.body, {
            ...{ msgID, headers: own, timeout: NATS_ANSWERS_WITHIN_MS },
            ...(this.#plan.isOwnSubject && { expect: { lastSubjectSequence: sequence } }),
          })
          .catch((error: unknown) => Promise.reject(isUntaken(error) ? this.#untaken(subject, error) : error))
      const id = this.#messageId(delivery, message, after)
      let ack = await put(id)
      // What this one is taken for is not on the subject any more: somebody purged it.
      if (ack.duplicate && this.#plan.isOwnSubject) ack = await put(`${id}:${randomUUID()}`)
      sequence = ack.seq
      written++
      bytes += Buffer.byteLength(message.body)
      stored += storedBytes([message])
    }
    if (written > 1) this.#large.set(key, { writing: delivery.writing, parts: written, bytes: stored })
    else this.#large.delete(key)
    return { sequence, written, bytes }
  }

  #untaken(subject: string, cause: unknown): SinkError {
    const sentence = `no stream took what is published on ${subject}: the stream ${this.#plan.stream} is looked at again`
    return new SinkError('transient', sentence, { cause })
  }

  /** The stream drops what comes twice within its window. A content that comes back after another one is no repeat. */
  #messageId({ writing, position, checksum }: Delivery, { part }: EventMessage, after: number): string {
    const place = this.#plan.isOwnSubject ? after : `${position.epoch}.${position.sequence}`
    return `${keyOf(writing)}:${checksum}:${place}:${part.index}/${part.total}`
  }

  /** A stream that cannot hold all of a snapshot would let go of its first part for the last one, and of what others have there. */
  async #checkRoom(session: NatsSession, parts: number, bytes: () => number): Promise<void> {
    if (this.#lackOfRoom(session, parts, bytes) === undefined) return
    // Whoever gave it more tells nobody here.
    await session.look()
    const lack = this.#lackOfRoom(session, parts, bytes)
    if (lack !== undefined) throw new SinkError('terminal', lack)
  }

  #lackOfRoom({ stream: { kept, roomBytes } }: NatsSession, parts: number, bytes: () => number): string | undefined {
    const { stream } = this.#plan
    if (kept !== undefined && parts > kept.messages)
      return `the stream ${stream} keeps ${kept.words}, and this inventory takes ${parts}: let it keep more (nats stream edit ${stream} --${kept.option}=${2 * parts}), or let NATS take larger messages (max_payload)`
    if (roomBytes === undefined) return undefined
    const taken = bytes()
    if (taken <= roomBytes) return undefined
    return `the stream ${stream} has room for ${roomBytes} bytes of all subjects and lets go of the oldest, and this inventory alone takes about ${taken}: give it room for the others, too (nats stream edit ${stream} --max-bytes=${2 * taken} or more)`
  }

  /** In parts each new message may push out one of the snapshot that readers have until the last one is there. */
  #narrowWords({ stream: { kept, roomBytes } }: NatsSession): readonly string[] {
    const { stream } = this.#plan
    return [...this.#large.values()].slice(0, MAX_NAMED).flatMap(({ writing, parts, bytes }) => {
      const isFew = kept !== undefined && 2 * parts > kept.messages
      if (!isFew && (roomBytes === undefined || 2 * bytes <= roomBytes)) return []
      const option = isFew ? `--${kept.option}=${2 * parts}` : `--max-bytes=${2 * bytes}`
      return [
        `the stream ${stream} has no room for two snapshots of ${writingWords(writing)}, which takes ${parts} messages: readers may find neither while one replaces the other, and none until the agent is back where it ends meanwhile (nats stream edit ${stream} ${option} or more)`,
      ]
    })
  }

  /** @throws SinkError; where the signal ends it, its reason */
  async #call<T>(signal: AbortSignal, work: (session: NatsSession) => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const opening = this.#connected()
    try {
      return await untilAborted(opening.then(work), signal)
    } catch (error) {
      const judged = signal.aborted ? undefined : natsSinkError(error, this.#plan)
      // What the server did with the last message is unknown, or its stream is another one now: both are looked at anew.
      if (judged === undefined || judged.errorClass === 'transient') this.#forget(opening)
      throw judged ?? signal.reason
    }
  }

  #connected(): Promise<NatsSession> {
    if (this.#session) return this.#session
    this.#ending.signal.throwIfAborted()
    const opening = openSession(this.#plan, this.#context.guard, this.#ending.signal)
    this.#session = opening
    const forget = () => this.#forget(opening)
    opening.then(({ connection }) => connection.closed().then(forget), forget)
    return opening
  }

  /** The next call connects anew. */
  #forget(opening: Promise<NatsSession>): void {
    if (this.#session !== opening) return
    this.#session = undefined
    this.#last.clear()
    opening.then(({ connection }) => connection.close()).catch(() => undefined) // it is of no use any more, however it ends
  }
}

/** @throws SinkError terminal, for a declaration that can never work */
export const openNats = (declaration: EventDeclaration, context: SinkContext): Sink =>
  new NatsSink(declaration, context)
