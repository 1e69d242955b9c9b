import { type Admin, Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { seconds } from '#model'
import type { SinkContext } from '../sink.ts'
import { KafkaDialer } from './dial.ts'
import { typeOf } from './errors.ts'
import { partitionKey } from './key.ts'
import type { KafkaPlan } from './plan.ts'
import { type Reach, reachOf, type TopicFacts, topicFacts } from './topic.ts'

const CONNECT_TIMEOUT_MS = seconds(5)
const REQUEST_TIMEOUT_MS = seconds(15)
const CLOSE_TIMEOUT_MS = seconds(2)
const RETRY = { initialRetryTime: 200, multiplier: 2, factor: 0.3, maxRetryTime: seconds(2), retries: 3 }

/** One message as it is sent. */
export interface KafkaRecord {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** A producer whose topic was looked at. Once a send failed it must not be used again: see `send`. */
export interface KafkaClient extends AsyncDisposable {
  /** as it was looked at last */
  readonly topic: TopicFacts
  /** Looks at the topic again: its settings may have changed. */
  look(): Promise<TopicFacts>
  /** false: the brokers do not give this user the numbers that retries are recognised by */
  readonly isIdempotent: boolean
  /**
   * Resolves when all replicas that must have it have it. After a failure the broker may have stored the message under a number that the
   * next one would get, and would take that for a repeat: the client is closed then.
   */
  send(record: KafkaRecord): Promise<Stored>
  /** by partition; none where there is no such topic any more */
  reach(): Promise<ReadonlyMap<number, Reach>>
}

/** Where a message is in the topic. */
export interface Stored {
  readonly partition: number
  /** below 0: the broker did not say */
  readonly offset: bigint
}

/** Connects; `dialer` remembers why it could not. @throws SinkError, or what the library says */
export async function openClient(plan: KafkaPlan, dialer: KafkaDialer): Promise<KafkaClient> {
  const kafka = kafkaOf(plan, dialer, 'clusterpulse')
  try {
    const look = () => asAdmin(kafka, (admin) => topicFacts(admin, plan))
    let topic = await look()
    const { producer, isIdempotent } = await producerOf(kafka)
    return {
      get topic() {
        return topic
      },
      async look() {
        topic = await look()
        return topic
      },
      isIdempotent,
      async send(record) {
        const { key, value, headers } = record
        const [stored] = await producer.send({
          topic: plan.topic,
          acks: -1,
          timeout: REQUEST_TIMEOUT_MS,
          messages: [{ key, value, headers }],
        })
        return { partition: stored?.partition ?? 0, offset: BigInt(stored?.baseOffset ?? -1) }
      },
      reach: () => asAdmin(kafka, (admin) => reachOf(admin, plan.topic)),
      async [Symbol.asyncDispose]() {
        await endWithin(producer.disconnect())
        dialer.end()
      },
    }
  } catch (error) {
    dialer.end()
    throw error
  }
}

/** The brokers of a plan; nothing is dialed before something is asked. */
export const kafkaOf = (plan: KafkaPlan, dialer: KafkaDialer, clientId: string): Kafka =>
  new Kafka({
    clientId,
    brokers: dialer.seeds,
    ...(plan.tls && { ssl: plan.tls }),
    ...(plan.sasl && { sasl: plan.sasl }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: RETRY,
    socketFactory: dialer.dial,
    logLevel: logLevel.NOTHING,
  })

export const dialerOf = (
  { brokers }: KafkaPlan,
  { guard, mustLead }: Pick<SinkContext, 'guard' | 'mustLead'>,
): KafkaDialer => new KafkaDialer(brokers, guard, mustLead)

async function asAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin()
  try {
    await admin.connect()
    return await work(admin)
  } finally {
    await endWithin(admin.disconnect())
  }
}

async function producerOf(kafka: Kafka): Promise<{ readonly producer: Producer; readonly isIdempotent: boolean }> {
  try {
    return { producer: await connected(kafka, true), isIdempotent: true }
  } catch (error) {
    // Before Kafka 2.8 these numbers needed a right of their own.
    if (typeOf(error) !== 'CLUSTER_AUTHORIZATION_FAILED') throw error
    return { producer: await connected(kafka, false), isIdempotent: false }
  }
}

async function connected(kafka: Kafka, idempotent: boolean): Promise<Producer> {
  const partition = Partitioners.DefaultPartitioner()
  const producer = kafka.producer({
    idempotent,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    // All parts of an inventory go into one partition, so that consumers have them in their order.
    createPartitioner: () => (args) => {
      const { key } = args.message
      return partition({ ...args, message: { ...args.message, key: partitionKey(String(key)) } })
    },
    retry: RETRY,
  })
  await producer.connect()
  return producer
}

/** Waits no longer than the end of a connection may take; what hangs is cut by its dialer. */
export async function endWithin(ending: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_TIMEOUT_MS)
  })
  await Promise.race([ending.catch(() => undefined), enough])
  clearTimeout(timer)
}
