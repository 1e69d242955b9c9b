import { isUtf8 } from 'node:buffer'
import { type Clock, documentText, StoreUnavailableError } from '#model'
import {
  type Command,
  closeRedis,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  sealText,
} from '#redis'
import type { Logger } from '#runtime'
import { OriginalDecisions } from './original-decisions.ts'
import {
  ALL,
  announce,
  DIGEST,
  type Entry,
  enter,
  entriesOf,
  entriesOfText,
  fieldsOf,
  GENERATION,
  GLOBAL_ENTRIES,
  hashKey,
  keyOf,
  mergedStatus,
  readStatus,
  SEAL_SCRIPTS,
  sha1Of,
  transitionOf,
  withdraw,
} from './redis-layout.ts'
import { differences, readEverything } from './redis-resync.ts'
import type { PolicyDocument } from './types.ts'

type Status = Readonly<Record<string, unknown>>

/** One policy as Redis holds it. */
interface Held {
  /** it has a hash, or stands among all */
  readonly isKnown: boolean
  readonly fields: ReadonlyMap<string, string>
  /** makes a new generation of what is there after the write */
  readonly sealing: readonly Command[]
}

const FIELDS = ['data', 'priority', 'effect', 'enabled', 'hash', 'compiled_at', 'status'] as const
/** Tries before a store that others write counts as unavailable, and the longest pause between two, ms. */
const ATTEMPTS = 20
const PAUSE_MS = 20
const LOST = 'it lost policies; they are about to be written again as a whole'

export interface WriterOptions {
  readonly connection: RedisConnection
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Writes policies, one transaction per call: hash, indexes, generation and announcements at once, and only if nobody else
 * wrote in between. Where Redis lost its memory nothing but a resync is accepted: a few policies alone, perhaps without a
 * Deny, would pass for all of them.
 */
export class RedisPolicyWriter {
  /** of its own, as it watches keys; opened by the first write */
  readonly #redis: Redis
  readonly #clock: Clock
  readonly #onLost: () => void
  #connecting: Promise<void> | undefined
  /** counts connections: what was watched on an earlier one is not watched any more */
  #connection = 0
  #turn: Promise<unknown> = Promise.resolve()
  readonly #decisions: OriginalDecisions
  /** digests of all documents by hash, as written; undefined: this process did not write all of them */
  #written: Map<string, string> | undefined
  #begun = 0
  #ended = 0

  /** @param onLost told where only a resync can help */
  constructor({ connection, clock, logger }: WriterOptions, onLost: () => void) {
    this.#redis = redisClient(connection, (reason) => logger.debug({ reason }, 'no connection to write policies'))
    this.#clock = clock
    this.#onLost = onLost
    this.#redis.on('close', () => this.#connection++)
    this.#decisions = new OriginalDecisions({ redis: this.#redis, clock, logger })
  }

  put(document: PolicyDocument, status: Status): Promise<void> {
    const key = keyOf(document)
    const fields = fieldsOf(document)
    const done = this.#writeOne(key, sha1Of(document), (held) => {
      const isChanged = Object.entries(fields).some(([field, value]) => held.fields.get(field) !== value)
      return [
        ...this.#statusCommands(key, held, mergedStatus({}, status)),
        ...(isChanged ? [['HSET', hashKey(key), ...Object.entries(fields).flat()] satisfies Command] : []),
        ...(isChanged ? [...this.#move(key, held, entriesOf(document), 'compiled'), ...held.sealing] : []),
      ]
    })
    return done.then(() => void this.#written?.set(hashKey(key), sha1Of(document)))
  }

  remove(key: string): Promise<void> {
    const done = this.#writeOne(key, '', (held) =>
      held.isKnown ? [['DEL', hashKey(key)], ...this.#move(key, held, [], 'deleted'), ...held.sealing] : [],
    )
    return done.then(() => void this.#written?.delete(hashKey(key)))
  }

  putStatus(key: string, status: Status): Promise<void> {
    return this.#writeOne(key, '', (held) =>
      held.fields.has('data')
        ? this.#statusCommands(key, held, mergedStatus(readStatus(held.fields.get('status')), status))
        : [],
    )
  }

  /** @returns keys of policies that were not there, differed, stood in a wrong index, or did not belong there */
  async resync(policies: readonly { document: PolicyDocument; status: Status }[]): Promise<readonly string[]> {
    const mended = await this.#transact([GENERATION, ALL], async () => {
      const held = await readEverything(this.#redis)
      const { commands, mended } = differences(held, policies, this.#clock.now())
      if (commands.length > 0) this.#decisions.policiesMove()
      return { commands, value: mended }
    })
    this.#written = new Map(policies.map(({ document }) => [hashKey(keyOf(document)), sha1Of(document)]))
    return mended
  }

  /** The stored document of this key; undefined where there is none, or something that is no text. */
  async text(key: string): Promise<string | undefined> {
    await this.#connected()
    try {
      const bytes = await this.#redis.hgetBuffer(hashKey(key), 'data')
      return bytes && isUtf8(bytes) ? bytes.toString('utf8') : undefined
    } catch (error) {
      if (isWrongType(error)) return undefined
      throw redisUnavailable(error)
    }
  }

  /** this process wrote all that Redis should hold */
  get hasWrittenAll(): boolean {
    return this.#written !== undefined
  }

  /** Before a look at Redis: a mark for `contradicts`; undefined while something is being written. */
  mark(): number | undefined {
    return this.#begun === this.#ended ? this.#begun : undefined
  }

  /** Whether somebody else wrote: Redis holds other documents than we wrote, and we wrote nothing since the mark. */
  contradicts(mark: number | undefined, digests: ReadonlyMap<string, { readonly sha1: string }>): boolean {
    const written = this.#written
    if (!written || mark !== this.#begun) return false
    return written.size !== digests.size || [...digests].some(([hash, { sha1 }]) => written.get(hash) !== sha1)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeRedis(this.#redis)
    await this.#turn
    await this.#decisions[Symbol.asyncDispose]()
  }

  #statusCommands(key: string, { fields }: Held, after: Status): readonly Command[] {
    const text = documentText(after)
    const stored = fields.get('status')
    if (stored === text) return []
    const transition = transitionOf(readStatus(stored), after)
    if (transition) this.#decisions.policiesMove()
    return [['HSET', hashKey(key), 'status', text], ...(transition ? announce(transition, key, this.#clock.now()) : [])]
  }

  #move(key: string, { fields }: Held, entries: readonly Entry[], action: 'compiled' | 'deleted'): readonly Command[] {
    const hash = hashKey(key)
    this.#decisions.policiesMove()
    const wanted = new Set(entries.map(({ index }) => index))
    const data = fields.get('data')
    const before = data === undefined ? GLOBAL_ENTRIES : entriesOfText(data)
    // Edited by hand: where else it stands only a look through all indexes tells.
    if (!before) this.#onLost()
    return [
      ...(before ?? GLOBAL_ENTRIES).filter(({ index }) => !wanted.has(index)).map((entry) => withdraw(entry, hash)),
      ...entries.map((entry) => enter(entry, hash)),
      ...announce(action, key, this.#clock.now()),
    ]
  }

  /** @param sha1 of the document that is to be there; '': none */
  #writeOne(key: string, sha1: string, decide: (held: Held) => readonly Command[]): Promise<void> {
    const hash = hashKey(key)
    return this.#transact([GENERATION, hash], async () => {
      const [generation, isListed, values, [isIntact, count, digest]] = (await pipelined(this.#redis, [
        ['GET', GENERATION],
        ['SISMEMBER', ALL, hash],
        ['HMGET', hash, ...FIELDS],
        ['EVAL', SEAL_SCRIPTS.beside, 3, ALL, GENERATION, DIGEST, hash, sha1],
      ])) as [string | null, number, (string | null)[], [number, number, string]]
      if (generation === null || isIntact !== 1) {
        this.#onLost()
        throw new StoreUnavailableError('Redis', LOST)
      }
      const fields = new Map(FIELDS.flatMap((field, i) => (values[i] == null ? [] : [[field, values[i]]])))
      const sealing = sealed(String(Number(generation) + 1), count, digest)
      return { commands: decide({ isKnown: isListed === 1 || fields.size > 0, fields, sealing }), value: undefined }
    })
  }

  /** Reads and decides while these keys are watched, then writes; from the start again where they moved meanwhile. */
  #transact<T>(keys: string[], decide: () => Promise<{ commands: readonly Command[]; value: T }>): Promise<T> {
    this.#begun++
    const turn = this.#turn
      .then(async () => {
        const value = await this.#attempts(keys, decide)
        // Also where nothing was written now: the last clearing may have failed.
        await this.#decisions.clear()
        return value
      })
      .finally(() => {
        this.#ended++
      })
    this.#turn = turn.catch(() => undefined) // told to whoever asked; the next in line begins anew
    return turn
  }

  async #attempts<T>(keys: string[], decide: () => Promise<{ commands: readonly Command[]; value: T }>): Promise<T> {
    await this.#connected()
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const connection = this.#connection
      if (attempt > 0) await this.#clock.sleep(Math.random() * PAUSE_MS)
      await this.#watch(keys)
      const { commands, value } = await decide()
      if (connection !== this.#connection) continue
      if (commands.length === 0 || (await this.#execute(commands))) return value
    }
    throw new StoreUnavailableError('Redis', 'others keep writing the policies at the same time')
  }

  /** The first connection is waited for; later ones come by themselves. */
  async #connected(): Promise<void> {
    if (this.#redis.status === 'wait') this.#connecting = this.#redis.connect()
    try {
      await this.#connecting
    } catch (error) {
      this.#connecting = undefined
      throw redisUnavailable(error)
    }
  }

  async #watch(keys: string[]): Promise<void> {
    try {
      await this.#redis.watch(...keys)
    } catch (error) {
      throw redisUnavailable(error)
    }
  }

  /** @returns false where a watched key moved and nothing was written */
  async #execute(commands: readonly Command[]): Promise<boolean> {
    try {
      const results = await this.#redis.multi(commands.map(([name, ...args]) => [name.toLowerCase(), ...args])).exec()
      const failure = results?.find(([error]) => error)?.[0]
      if (failure) throw failure
      return results !== null
    } catch (error) {
      // A key is not what it should be: the rest is written, and only a resync puts it right.
      if (isWrongType(error)) this.#onLost()
      throw redisUnavailable(error)
    }
  }
}

const sealed = (generation: string, count: number, digest: string): readonly Command[] => [
  ['SET', GENERATION, generation],
  ['SET', DIGEST, sealText(generation, count, digest)],
]

const isWrongType = (error: unknown): boolean => error instanceof Error && error.message.startsWith('WRONGTYPE')
