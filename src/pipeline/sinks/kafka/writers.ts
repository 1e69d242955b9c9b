import { type Admin, AssignerProtocol, type Consumer, type PartitionAssigner } from 'kafkajs'
import { seconds, systemClock } from '#model'
import type { Logger } from '#runtime'
import { untilAborted } from '../events/until-aborted.ts'
import type { SinkContext, Writing } from '../sink.ts'
import { areOfTwoClusters } from '../writer-name.ts'
import { dialerOf, endWithin, kafkaOf } from './client.ts'
import type { KafkaDialer } from './dial.ts'
import { typeOf } from './errors.ts'
import type { KafkaPlan } from './plan.ts'

/** Of whom nothing is heard for so long, Kafka forgets, ms. */
const SESSION_MS = seconds(30)
const HEARTBEAT_MS = seconds(10)
/** Between two looks whether a heartbeat is due, ms: leaving waits for one. */
const TURN_MS = 250
/** An agent that was killed is a member for a session still: who is there longer, beside us, is alive, ms. */
const ALIVE_MS = SESSION_MS + seconds(15)
/** What is closed before joins nothing, ms. */
const JOIN_AFTER_MS = seconds(5)
/** until Kafka says who is there, or does not */
const ANSWER_MS = seconds(3)

/** Of tests, ms. */
export interface WritersTimes {
  readonly aliveMs?: number
  readonly joinAfterMs?: number
}

export interface WritersOptions {
  readonly plan: KafkaPlan
  readonly context: Pick<SinkContext, 'guard' | 'mustLead'>
  /** whom all writers of one identity join */
  readonly group: string
  readonly writer: string
  readonly logger: Logger
  /** ms, goes forward */
  readonly now: () => number
  /** instead of those above */
  readonly times?: WritersTimes
}

/**
 * The group in which writers of inventories of one namespace of a cluster hear of each other; it reads nothing. Neither topics nor
 * namespaces have a slash, so that no two places share a group, whatever the name of the cluster has.
 */
export const groupOf = (topic: string, { cluster, namespace }: Pick<Writing, 'cluster' | 'namespace'>): string =>
  `clusterpulse-writers.${topic}/${cluster}/${namespace}`

/**
 * Who writes under one identity, by the members of a consumer group that has no partitions: Kafka keeps who is alive, so nothing is
 * written to the topic for it, and nothing read. Where the user may not join, nobody is heard of.
 */
export class Writers implements AsyncDisposable {
  readonly #options: WritersOptions
  readonly #dialer: KafkaDialer
  readonly #consumer: Consumer
  readonly #admin: Admin
  readonly #joining: Promise<void>
  readonly #ending = new AbortController()
  #connecting: Promise<void> | undefined
  /** nobody of another cluster was there when this one was to write first, or Kafka did not say */
  #hasBegun = false
  #isMember = false
  #hasWarned = false
  /** when each of the others was seen first */
  readonly #others = new Map<string, number>()

  constructor(options: WritersOptions) {
    this.#options = options
    const { plan, context, group, writer } = options
    this.#dialer = dialerOf(plan, context)
    const kafka = kafkaOf(plan, this.#dialer, writer)
    this.#consumer = kafka.consumer({
      groupId: group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      maxWaitTimeInMs: TURN_MS,
      allowAutoTopicCreation: false,
      partitionAssigners: [nothingToRead],
    })
    this.#admin = kafka.admin()
    this.#joining = this.#join()
  }

  /**
   * Somebody else who is alive; undefined: nobody is known to be. Before the first answer of that kind Kafka is asked who is there: a member
   * of another cluster is no former self that was killed. Waits for no group that is not joined yet.
   */
  async other(): Promise<string | undefined> {
    if (!this.#isMember && this.#hasBegun) return undefined
    const { writer, now, times: { aliveMs = ALIVE_MS } = {} } = this.#options
    const names = await this.#names()
    // Where Kafka does not say, what it said before holds.
    if (names) {
      names.delete(writer)
      for (const name of this.#others.keys()) if (!names.has(name)) this.#others.delete(name)
      for (const name of names) if (!this.#others.has(name)) this.#others.set(name, now())
    }
    if (!this.#hasBegun) {
      const stranger = [...this.#others.keys()].find((name) => areOfTwoClusters(writer, name))
      if (stranger !== undefined) return stranger
      this.#hasBegun = true
    }
    return [...this.#others].find(([, since]) => now() - since >= aliveMs)?.[0]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await endWithin(this.#leave())
    this.#dialer.end()
  }

  async #names(): Promise<Set<string> | undefined> {
    try {
      const asked = this.#connected().then(() => this.#admin.describeGroups([this.#options.group]))
      const { groups } = await untilAborted(asked, AbortSignal.timeout(ANSWER_MS))
      return new Set(groups.flatMap(({ members }) => members.map(({ clientId }) => clientId)))
    } catch (error) {
      // A broker that is away is told by what is written.
      this.#warn(error)
      return undefined
    }
  }

  /** Once it is; one that was not reached is dialed again by who asks next. */
  #connected(): Promise<void> {
    this.#connecting ??= this.#admin.connect().catch((error: unknown) => {
      this.#connecting = undefined
      throw error
    })
    return this.#connecting
  }

  async #join(): Promise<void> {
    const { plan, times: { joinAfterMs = JOIN_AFTER_MS } = {} } = this.#options
    await systemClock.sleep(joinAfterMs, this.#ending.signal)
    if (this.#ending.signal.aborted) return
    this.#consumer.on(this.#consumer.events.CRASH, ({ payload: { error } }) => this.#warn(error))
    this.#consumer.on(this.#consumer.events.GROUP_JOIN, () => {
      this.#isMember = true
    })
    try {
      await this.#connected()
      await this.#consumer.connect()
      await this.#consumer.subscribe({ topics: [plan.topic] })
      await this.#consumer.run({ autoCommit: false, eachMessage: () => Promise.resolve() })
    } catch (error) {
      this.#warn(error)
    }
  }

  /** Once, where somebody has to allow it; what else keeps it from joining passes. */
  #warn(error: unknown): void {
    const { logger, group } = this.#options
    const why = typeOf(error) ?? ''
    if (this.#hasWarned || !/AUTHORIZATION_FAILED/.test(why)) return
    this.#hasWarned = true
    logger.warn({ group, why }, 'other writers of this cluster name are not noticed: allow the user to read this group')
  }

  async #leave(): Promise<void> {
    await this.#joining
    await this.#consumer.disconnect()
    await this.#admin.disconnect()
  }
}

const nothingToRead: PartitionAssigner = () => {
  const [name, version] = ['clusterpulse-writers', 1]
  const userData = Buffer.alloc(0)
  return {
    ...{ name, version },
    assign: async ({ members }) =>
      members.map(({ memberId }) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({ version, assignment: {}, userData }),
      })),
    protocol: ({ topics }) => ({
      name,
      metadata: AssignerProtocol.MemberMetadata.encode({ version, topics, userData }),
    }),
  }
}
