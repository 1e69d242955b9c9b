import pLimit from 'p-limit'
import { minutes, steadyClock } from '#model'
import { type HeldSnapshot, heldAfter, keyOf, knownBy } from '../events/held.ts'
import { eventMessages, storedBytes, tombstone } from '../events/messages.ts'
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
} from '../sink.ts'
import { dialerOf, type KafkaClient, openClient, type Stored } from './client.ts'
import type { KafkaDialer } from './dial.ts'
import { kafkaSinkError, typeOf } from './errors.ts'
import { recordKey } from './key.ts'
import { type KafkaPlan, kafkaPlan } from './plan.ts'
import type { Reach } from './topic.ts'
import { groupOf, Writers, type WritersTimes } from './writers.ts'

/** A refused size is tried again after so long, ms. */
const LESS_MS = minutes(10)
const nothingLess = { bytes: Number.POSITIVE_INFINITY, until: 0 } as const
/** A broker that takes less than this takes no inventory. */
const LEAST_MESSAGE_BYTES = 8192

interface Connection {
  readonly dialer: KafkaDialer
  readonly client: Promise<KafkaClient>
}

/**
 * Publishes snapshots to a topic, one message after the other. Kafka cannot be asked what it holds of a key: a repeat within this process
 * is not written, and one after a restart is recognised by who reads it, as every message says epoch and sequence. How far the topic
 * reaches tells whether what was written is there at all. Two writers of one identity hear of each other in a group, and both stop until
 * one of them is.
 */
export class KafkaSink implements Sink {
  readonly family = 'event'
  readonly #plan: KafkaPlan
  readonly #times: WritersTimes
  readonly #context: SinkContext
  readonly #held = new Map<string, HeldSnapshot>()
  /** by partition, the offset of the last message that was written */
  readonly #written = new Map<number, bigint>()
  /** by inventory, where the first message of its snapshot stands */
  readonly #firsts = new Map<string, Stored>()
  /** the topic was seen to lack what was written: what an earlier start wrote is not there either */
  #hasLost = false
  readonly #inTurn = pLimit(1)
  readonly #ending = new AbortController()
  #connection: Connection | undefined
  /** by the namespace of inventories; a sink mostly has those of one */
  readonly #writers = new Map<string, Writers>()
  /** inventories that are written */
  readonly #inventories = new Set<string>()
  /** inventories that were not written because of another writer */
  readonly #besides = new Set<string>()
  /** what brokers take, where that was seen to be less than they say, and until when that is believed */
  #less: { readonly bytes: number; readonly until: number } = nothingLess

  /** @param times of tests */
  constructor(declaration: EventDeclaration, context: SinkContext, times: WritersTimes = {}) {
    this.#times = times
    this.#plan = kafkaPlan(declaration, context.semantics)
    this.#context = context
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    const { name, topic } = this.#plan
    try {
      const client = await this.#call(signal, async (one) => {
        await one.look()
        return one
      })
      const { maxBytes, warnings } = client.topic
      // What was refused then may be taken now: it is tried.
      this.#less = nothingLess
      return {
        verified: true,
        message: `${name} is reached, and the topic ${topic} takes messages of up to ${maxBytes} bytes`,
        warnings: [
          ...warnings,
          ...(client.isIdempotent
            ? []
            : [
                'the brokers give this user no IdempotentWrite: where an answer is lost, a message may be in the topic twice',
              ]),
        ],
      }
    } catch (error) {
      signal.throwIfAborted()
      const { message, errorClass } = kafkaSinkError(error, this.#plan, undefined)
      return { verified: false, message, warnings: [], ...(errorClass === 'transient' && { isPassing: true }) }
    }
  }

  deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    return this.#call(signal, async (client) => {
      if (!delivery.isLook) return this.#deliver(client, delivery, signal)
      const reach = await client.reach()
      if (!this.#isLost(reach)) {
        if (this.#isForgotten(keyOf(delivery.writing), reach)) this.#held.delete(keyOf(delivery.writing))
        return this.#deliver(client, delivery, signal, reach)
      }
      this.#held.clear()
      this.#firsts.clear()
      this.#written.clear()
      this.#hasLost = true
      // The numbers of its messages went on where a new topic begins at the first.
      await this.#close()
      return this.#deliver(await this.#connected().client, delivery, signal)
    })
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal): Promise<void> {
    await this.deliver(tombstone(writing, position, this.#context.now()), signal)
    await this.leave(writing)
  }

  /** Behind what is under way or waits for its turn, which would join again. */
  async leave(writing: Writing): Promise<void> {
    await this.#inTurn(async () => {
      this.#inventories.delete(keyOf(writing))
      const isOfIt = keyOf({ ...writing, inventory: '' })
      if ([...this.#inventories].some((key) => key.startsWith(isOfIt))) return
      const writers = this.#writers.get(writing.namespace)
      this.#writers.delete(writing.namespace)
      await writers?.[Symbol.asyncDispose]()
    })
  }

  preview(): SinkPreview {
    const { ensures, topic } = this.#plan
    return { provisioningMode: ensures ? 'ensure' : 'existing', serializationFormat: 'json', kafka: { topic } }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new SinkError('transient', 'the sink was closed'))
    await Promise.all([this.#close(), ...Array.from(this.#writers.values(), (one) => one[Symbol.asyncDispose]())])
  }

  /** @param reach of the topic, at a look */
  async #deliver(
    client: KafkaClient,
    delivery: Delivery,
    signal: AbortSignal,
    reach: ReadonlyMap<number, Reach> = new Map(),
  ): Promise<Receipt> {
    const key = keyOf(delivery.writing)
    this.#inventories.add(key)
    const besides = await this.#beside(key, delivery)
    if (besides) return besides
    // The binding knows that it was taken; of an earlier start nothing is known here, but whether the topic forgets.
    const forgets = [...reach.values()].some(({ low }) => low > 0n)
    if (delivery.isLook && !this.#hasLost && !forgets && !this.#held.has(key))
      this.#held.set(key, heldAfter(delivery, this.#context.writer))
    const known = knownBy(this.#held.get(key), delivery, this.#context.writer)
    if (known) {
      this.#held.set(key, known.held)
      return known.receipt
    }
    // Unknown until all of it is there, also where an answer is lost.
    this.#held.delete(key)
    for (;;) {
      const maxBytes = Math.min(client.topic.maxBytes, this.#lessBytes)
      try {
        const done = await this.#publish(client, delivery, maxBytes, signal)
        this.#held.set(key, heldAfter(delivery, this.#context.writer))
        return { ...done, position: delivery.position, removed: 0 }
      } catch (error) {
        if (typeOf(error) !== 'MESSAGE_TOO_LARGE') throw error
        this.#takeLess(maxBytes)
      }
    }
  }

  /** Whether the topic was made anew since, or lost its end; where nothing was written yet, whether nothing ever was. */
  #isLost(reach: ReadonlyMap<number, Reach>): boolean {
    if (this.#written.size === 0) return [...reach.values()].every(({ high }) => high === 0n)
    return [...this.#written].some(([partition, offset]) => (reach.get(partition)?.high ?? 0n) <= offset)
  }

  /** Whether the topic let go of what was written of an inventory, by age or size. */
  #isForgotten(key: string, reach: ReadonlyMap<number, Reach>): boolean {
    const first = this.#firsts.get(key)
    return first !== undefined && first.offset < (reach.get(first.partition)?.low ?? 0n)
  }

  /** Of a delivery that is not written because somebody else writes, or that must come later than what he wrote. */
  async #beside(key: string, { writing, position }: Delivery): Promise<Receipt | undefined> {
    const other = await this.#writersOf(writing).other()
    const nothing = { written: 0, removed: 0, bytes: 0 }
    if (other !== undefined) {
      this.#besides.add(key)
      const conflict = `${other} writes under the cluster name ${writing.cluster}, too: both are stopped until one of them is`
      return { ...nothing, position, conflict }
    }
    if (!this.#besides.delete(key)) return undefined
    // Readers take the later start for the newer one: what we write from now on is later than his.
    this.#held.delete(key)
    const now = BigInt(this.#context.now())
    return { ...nothing, position: { epoch: now > position.epoch ? now : position.epoch + 1n, sequence: 0n } }
  }

  #writersOf(writing: Writing): Writers {
    const known = this.#writers.get(writing.namespace)
    if (known) return known
    const { writer, logger } = this.#context
    const plan = this.#plan
    const group = groupOf(plan.topic, writing)
    const made = new Writers({
      ...{ plan, context: this.#context, group, writer, logger, times: this.#times },
      now: () => steadyClock.now(),
    })
    this.#writers.set(writing.namespace, made)
    return made
  }

  async #publish(client: KafkaClient, delivery: Delivery, maxBytes: number, signal: AbortSignal) {
    let [written, bytes] = [0, 0]
    const key = keyOf(delivery.writing)
    this.#firsts.delete(key)
    const messages = () => eventMessages({ delivery, writer: this.#context.writer, maxBytes })
    await this.#checkRoom(client, () => storedBytes(messages()))
    for (const message of messages()) {
      signal.throwIfAborted()
      const { body, headers } = message
      const { partition, offset } = await client.send({ key: recordKey(delivery, message), value: body, headers })
      this.#written.set(partition, offset)
      if (written === 0 && offset >= 0n) this.#firsts.set(key, { partition, offset })
      written++
      bytes += Buffer.byteLength(body)
    }
    return { written, bytes }
  }

  /** A partition that cannot hold all of a snapshot lets go of its first part for the last one. */
  async #checkRoom(client: KafkaClient, bytes: () => number): Promise<void> {
    if (client.topic.roomBytes === undefined || bytes() <= client.topic.roomBytes) return
    // Whoever gave it more tells nobody here.
    const { roomBytes } = await client.look()
    const taken = bytes()
    if (roomBytes === undefined || taken <= roomBytes) return
    const { topic } = this.#plan
    throw new SinkError(
      'terminal',
      `a partition of the topic ${topic} keeps ${roomBytes} bytes and lets go of the oldest, and this inventory alone takes about ${taken}: give it room for the others, too (kafka-configs.sh --alter --topic ${topic} --add-config retention.bytes=${2 * taken}), or make its cleanup.policy compact`,
    )
  }

  /** Limits are raised, too. */
  get #lessBytes(): number {
    return this.#context.now() < this.#less.until ? this.#less.bytes : Number.POSITIVE_INFINITY
  }

  /** The broker refused what its settings seem to allow. */
  #takeLess(tooLarge: number): void {
    this.#less = { bytes: Math.floor(tooLarge / 2), until: this.#context.now() + LESS_MS }
    if (this.#less.bytes >= LEAST_MESSAGE_BYTES) return
    this.#less = nothingLess
    const { name, topic } = this.#plan
    throw new SinkError(
      'terminal',
      `${name} refuses messages of ${tooLarge} bytes on the topic ${topic}: raise max.message.bytes of the topic and message.max.bytes of the brokers`,
    )
  }

  /** One after the other: the numbers by which a broker recognises repeats are those of one line. */
  async #call<T>(signal: AbortSignal, work: (client: KafkaClient) => Promise<T>): Promise<T> {
    return untilAborted(
      this.#inTurn(async () => {
        signal.throwIfAborted()
        this.#ending.signal.throwIfAborted()
        const { dialer, client } = this.#connected()
        try {
          const done = await untilAborted(client.then(work), AbortSignal.any([signal, this.#ending.signal]))
          dialer.refused = undefined // one of several brokers, without which it went
          return done
        } catch (error) {
          // What came of the last message is unknown: see KafkaClient.
          await this.#close()
          signal.throwIfAborted()
          throw kafkaSinkError(error, this.#plan, dialer.refused)
        }
      }),
      signal,
    )
  }

  #connected(): Connection {
    if (this.#connection) return this.#connection
    const dialer = dialerOf(this.#plan, this.#context)
    this.#connection = { dialer, client: openClient(this.#plan, dialer) }
    return this.#connection
  }

  async #close(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    if (!connection) return
    connection.dialer.end()
    const client = await connection.client.catch(() => undefined)
    await client?.[Symbol.asyncDispose]()
  }
}

/** @throws SinkError terminal, for a declaration that can never work */
export const openKafka = (declaration: EventDeclaration, context: SinkContext): Sink =>
  new KafkaSink(declaration, context)
