import type { Admin, ConfigResourceTypes } from 'kafkajs'
import { seconds, systemClock } from '#model'
import { SinkError } from '../sink.ts'
import { typeOf } from './errors.ts'
import type { KafkaPlan } from './plan.ts'

/** What is known of the topic after a look at it. */
export interface TopicFacts {
  /** bytes of a message with all around it */
  readonly maxBytes: number
  /** bytes of all inventories that a partition keeps at least, where it lets go of the oldest beyond them */
  readonly roomBytes?: number
  /** what consumers should know of it, a sentence each */
  readonly warnings: readonly string[]
}

/** Of a broker that does not say it. */
const USUAL_MAX_BYTES = 1_048_588
/** The protocol's number; that of the library is no named export where Node loads it. */
const TOPIC = 2 as ConfigResourceTypes
/** The newest of each key is kept, however old it is: what does not change is not written again. */
const MADE = [{ name: 'cleanup.policy', value: 'compact' }]
const MAKING_MS = seconds(15)
/** The brokers hear of a new topic one after the other. */
const NEW_TOPIC_TRIES = 10
const NEW_TOPIC_PAUSE_MS = 200

/**
 * Finds the topic, and makes it where the plan says so: with partitions and replicas as the broker has them by default.
 * @throws SinkError, or what the library says
 */
export async function topicFacts(admin: Admin, plan: KafkaPlan): Promise<TopicFacts> {
  if (!(await isThere(admin, plan.topic))) await make(admin, plan)
  const configs = await configsOf(admin, plan.topic)
  if (!configs)
    return {
      maxBytes: USUAL_MAX_BYTES,
      warnings: [
        `the settings of the topic ${plan.topic} may not be read (DescribeConfigs): messages are made for the usual ceiling of ${USUAL_MAX_BYTES} bytes, and smaller where that is refused`,
      ],
    }
  const maxBytes = Number(configs.get('max.message.bytes'))
  const policy = configs.get('cleanup.policy') ?? ''
  const room = Number(configs.get('retention.bytes'))
  return {
    maxBytes: Number.isSafeInteger(maxBytes) && maxBytes > 0 ? maxBytes : USUAL_MAX_BYTES,
    ...(policy.includes('delete') && room > 0 && { roomBytes: room }),
    warnings:
      policy === 'compact'
        ? []
        : [
            `the topic ${plan.topic} forgets messages by age or size (cleanup.policy ${policy}): an inventory that stays as it is for long is missing there until it is written again, within minutes; with compact alone the newest of each stays`,
          ],
  }
}

/** How far a partition reaches. */
export interface Reach {
  /** offset of the first message that was not forgotten by age or size; 0 where none ever was */
  readonly low: bigint
  /** offset that the next message gets */
  readonly high: bigint
}

/** By partition; none where there is no such topic. */
export async function reachOf(admin: Admin, topic: string): Promise<ReadonlyMap<number, Reach>> {
  if (!(await isThere(admin, topic))) return new Map()
  const offsets = await onceKnown(() => admin.fetchTopicOffsets(topic))
  return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]))
}

async function isThere(admin: Admin, topic: string): Promise<boolean> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics.length > 0
  } catch (error) {
    if (typeOf(error) === 'UNKNOWN_TOPIC_OR_PARTITION') return false
    throw error
  }
}

async function make(admin: Admin, { topic, ensures }: KafkaPlan): Promise<void> {
  if (!ensures)
    throw new SinkError(
      'terminal',
      `there is no topic ${topic}, and provisioning.mode existing makes none: kafka-topics.sh --create --topic ${topic} --config cleanup.policy=compact`,
    )
  // False where another process makes it at this moment.
  await admin.createTopics({ topics: [{ topic, configEntries: MADE }], timeout: MAKING_MS, waitForLeaders: true })
}

/** Undefined where the user may not read them. */
async function configsOf(admin: Admin, topic: string): Promise<ReadonlyMap<string, string> | undefined> {
  const wanted = { type: TOPIC, name: topic, configNames: ['max.message.bytes', 'cleanup.policy', 'retention.bytes'] }
  try {
    const { resources } = await onceKnown(() => admin.describeConfigs({ resources: [wanted], includeSynonyms: false }))
    return new Map(
      resources.flatMap(({ configEntries }) =>
        configEntries.map(({ configName, configValue }) => [configName, configValue] as const),
      ),
    )
  } catch (error) {
    if (/AUTHORIZATION_FAILED/.test(typeOf(error) ?? '')) return undefined
    throw error
  }
}

const NOT_YET: ReadonlySet<string | undefined> = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'NOT_LEADER_FOR_PARTITION'])

/** Asks about a topic that was perhaps made just now. */
async function onceKnown<T>(ask: () => Promise<T>, tries = NEW_TOPIC_TRIES): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!NOT_YET.has(typeOf(error)) || tries <= 1) throw error
    await systemClock.sleep(NEW_TOPIC_PAUSE_MS)
    return onceKnown(ask, tries - 1)
  }
}
