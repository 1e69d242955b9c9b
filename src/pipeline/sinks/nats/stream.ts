import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream'
import { coversSubject } from '#nats'
import { SinkError } from '../sink.ts'
import { isFull } from './errors.ts'
import type { NatsPlan } from './plan.ts'

/** What is known of the stream after a look at it. */
export interface StreamFacts {
  /** bytes of one message it takes, where it has a bound of its own */
  readonly maxMessageBytes?: number
  /** messages of one inventory it keeps, where it has a bound that lets go of the oldest */
  readonly kept?: { readonly messages: number; readonly words: string; readonly option: string }
  /** bytes of all subjects it keeps, where it lets go of the oldest beyond them */
  readonly roomBytes?: number
  /** what consumers should know of it, a sentence each */
  readonly warnings: readonly string[]
}

/** Of a stream that nobody made before: each subject keeps its newest, for as long as it takes; what is full says so. */
const MADE = {
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  discard: DiscardPolicy.New,
  max_msgs_per_subject: 64,
  max_bytes: 2 ** 30,
} satisfies Partial<StreamConfig>

/** of the server: a subject is a part of another stream already */
const OVERLAP = 10065
/** Others may add theirs meanwhile. */
const MERGES = 5

/**
 * Finds the stream, and makes it or adds the subjects it lacks where the plan says so. What somebody else set stays as it is.
 * @throws SinkError, or what the library says
 */
export async function streamFacts(manager: JetStreamManager, plan: NatsPlan): Promise<StreamFacts> {
  for (let left = MERGES; ; left--) {
    const config = (await found(manager, plan.stream)) ?? (await made(manager, plan))
    if (config.sealed)
      throw new SinkError(
        'terminal',
        `the stream ${plan.stream} is sealed: it takes no message any more; name another one in nats.stream`,
      )
    if (config.no_ack)
      throw new SinkError(
        'terminal',
        `the stream ${plan.stream} acknowledges nothing (no_ack), so that nobody knows what it holds: let it (nats stream edit ${plan.stream} --ack), or name another one in nats.stream`,
      )
    if (config.subjects?.some((filter) => coversSubject(filter, plan.filter))) return factsOf(config)
    if (!plan.ensures || left === 0) throw uncovered(plan, config.subjects ?? [])
    await merge(manager, plan, config.subjects ?? [])
  }
}

async function found(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined
    throw error
  }
}

async function made(manager: JetStreamManager, plan: NatsPlan): Promise<StreamConfig> {
  const { stream, filter, ensures } = plan
  if (!ensures)
    throw new SinkError(
      'terminal',
      `there is no stream ${stream}, and provisioning.mode existing makes none: nats stream add ${stream} --subjects='${filter}'`,
    )
  try {
    return (await manager.streams.add({ ...MADE, name: stream, subjects: [filter] })).config
  } catch (error) {
    const meanwhile = await found(manager, stream)
    if (meanwhile) return meanwhile
    throw await refusal(manager, plan, error)
  }
}

/** Adds ours to what is there, and takes away nothing but what ours holds anyway. */
async function merge(manager: JetStreamManager, plan: NatsPlan, subjects: readonly string[]): Promise<void> {
  const kept = subjects.filter((subject) => !coversSubject(plan.filter, subject))
  try {
    await manager.streams.update(plan.stream, { subjects: [...kept, plan.filter] })
  } catch (error) {
    throw await refusal(manager, plan, error)
  }
}

async function refusal(manager: JetStreamManager, { stream, filter }: NatsPlan, error: unknown): Promise<unknown> {
  if (!(error instanceof JetStreamApiError)) return error
  if (error.code !== OVERLAP)
    return new SinkError(
      isFull(error) ? 'forbidden' : 'terminal',
      `the stream ${stream} with the subject ${filter} is refused (${error.message}): make it with limits of your own, which stay as they are (nats stream add ${stream} --subjects='${filter}')`,
      { cause: error },
    )
  const other = await manager.streams.find(filter).catch(() => undefined)
  return new SinkError(
    'terminal',
    `${other === undefined ? 'another stream' : `the stream ${other}`} has subjects of ${filter} already, and no two streams may: name that stream in nats.stream, or take another subject`,
    { cause: error },
  )
}

const uncovered = ({ stream, filter }: NatsPlan, subjects: readonly string[]): SinkError =>
  new SinkError(
    'terminal',
    `the stream ${stream} has the subjects ${subjects.join(', ') || '(none)'}, which do not cover ${filter}: nothing of that would be kept; nats stream edit ${stream} --subjects='${[...subjects, filter].join(',')}'`,
  )

function factsOf(config: StreamConfig): StreamFacts {
  const { name, max_msg_size: bytes, max_msgs_per_subject: kept, max_age: age, retention, storage } = config
  const { discard, max_msgs: all, max_bytes: room } = config
  const letsGo = discard === DiscardPolicy.Old
  const bounds = [all > 0 && `${all} messages`, room > 0 && `${room} bytes`].filter((one) => one !== false)
  const warnings = [
    ...(retention === RetentionPolicy.Limits
      ? []
      : [`the stream ${name} has the retention ${retention}: what one consumer has read, others never see`]),
    ...(storage === StorageType.Memory ? [`the stream ${name} is in memory: it is empty after a restart of NATS`] : []),
    ...(age > 0
      ? [
          `the stream ${name} forgets messages after ${Math.round(age / 1e9)} s: an inventory that stays as it is for so long is in it no more`,
        ]
      : []),
    ...(letsGo && bounds.length > 0
      ? [
          `the stream ${name} has room for ${bounds.join(', ')} and lets go of the oldest where more come: of an inventory that does not change nothing may be left`,
        ]
      : []),
  ]
  const isOfAll = letsGo && all > 0 && (kept <= 0 || all < kept)
  return {
    warnings,
    ...(bytes > 0 && { maxMessageBytes: bytes }),
    ...(letsGo && room > 0 && { roomBytes: room }),
    ...(isOfAll
      ? { kept: { messages: all, words: `${all} messages of all subjects`, option: 'max-msgs' } }
      : kept > 0 && {
          kept: { messages: kept, words: `${kept} messages of a subject`, option: 'max-msgs-per-subject' },
        }),
  }
}
