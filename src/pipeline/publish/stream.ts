import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { FleetError, minutes } from '#model'
import { coversSubject, NATS_ANSWERS_WITHIN_MS } from '#nats'

/** Where events are kept, by the name that consumers of the original know. */
export const STREAM = 'CLUSTER'
const SUBJECTS = 'cluster.>'

/** Of the stream where nobody made one before. */
const MADE = {
  name: STREAM,
  subjects: [SUBJECTS],
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
  max_msgs: 1_000_000,
  max_bytes: 2 ** 30,
  max_age: 7 * 24 * minutes(60) * 1e6, // nanoseconds
} satisfies Partial<StreamConfig>

/** of the server: a subject is a part of another stream already */
const OVERLAP = 10065

/** What is known of the stream after a look at it. */
export interface StreamFacts {
  /** a sentence for people: why not all is kept under that name; undefined: it is */
  readonly fault?: string
  /** bytes of one message it takes, where it has a bound of its own */
  readonly maxMessageBytes?: number
}

/**
 * Makes the stream, or takes it as somebody made it: settings of others are not touched, and what they lack is said in words.
 * @param subjects what is published by us
 * @throws nothing of the server's: what it answers is a fault; where it does not answer, that of the library
 */
export async function ensureStream(nc: NatsConnection, subjects: readonly string[]): Promise<StreamFacts> {
  const manager = await jetstreamManager(nc, { checkAPI: false, timeout: NATS_ANSWERS_WITHIN_MS })
  let config: StreamConfig
  try {
    config = await found(manager)
  } catch (error) {
    if (nc.isClosed()) throw error
    return { fault: await refusal(manager, error) }
  }
  const uncovered = subjects.filter((subject) => !config.subjects.some((filter) => coversSubject(filter, subject)))
  const [first] = uncovered
  return {
    ...(config.max_msg_size > 0 && { maxMessageBytes: config.max_msg_size }),
    ...(first !== undefined && {
      fault: `the stream ${STREAM} is there with the subjects ${config.subjects.join(', ')}, which do not cover ${first}${uncovered.length > 1 ? ` and ${uncovered.length - 1} more` : ''}: nothing of that is kept; add ${SUBJECTS} to its subjects (nats stream edit ${STREAM} --subjects=${SUBJECTS})`,
    }),
  }
}

async function found(manager: JetStreamManager): Promise<StreamConfig> {
  try {
    return (await manager.streams.info(STREAM)).config
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== JetStreamApiCodes.StreamNotFound) throw error
  }
  try {
    return (await manager.streams.add(MADE)).config
  } catch (error) {
    // Another replica may have made it meanwhile, or somebody else with other settings.
    return (await manager.streams.info(STREAM).catch(() => Promise.reject(error))).config
  }
}

async function refusal(manager: JetStreamManager, error: unknown): Promise<string> {
  const why = FleetError.from(error).message
  if (error instanceof JetStreamApiError && error.code === OVERLAP) {
    const other = await manager.streams.find('cluster.metrics').catch(() => undefined)
    return `the stream ${STREAM} cannot be made, as ${other === undefined ? 'another stream' : `the stream ${other}`} has subjects of ${SUBJECTS} already (${why}): events are kept there, and consumers of ${STREAM} find none`
  }
  if (error instanceof JetStreamApiError)
    return `the stream ${STREAM} cannot be made (${why}): make room for it, or make it with limits of your own, which are taken as they are (nats stream add ${STREAM} --subjects=${SUBJECTS})`
  return `JetStream does not answer (${why}): events are published when it does; start nats-server with -js, and allow this user $JS.API.> and ${SUBJECTS}`
}
