import { isUtf8 } from 'node:buffer'
import { type Clock, documentText, StoreUnavailableError, systemClock } from '#model'
import { type Command, type Loaded, type RedisConnection, ReplicatedSet, redisUnavailable } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { readStoredPolicy } from './document.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { OriginalDecisions } from './original-decisions.ts'
import { contentsOf, mendings, type Policy } from './redis-contents.ts'
import {
  type Action,
  announce,
  type Entry,
  enter,
  entriesOf,
  fieldsOf,
  GLOBAL_ENTRIES,
  hashKey,
  keyOf,
  keyOfHash,
  LAYOUT,
  mergedStatus,
  readStatus,
  transitionOf,
  withdraw,
} from './redis-layout.ts'
import type { PolicyDocument, PolicyGeneration, PolicySource, PolicyWriter, StoredPolicy } from './types.ts'

type Status = Readonly<Record<string, unknown>>
type Fields = ReadonlyMap<string, string>

/** How compiled policies are followed in Redis; durations in ms. */
export interface RedisPoliciesOptions {
  readonly connection: RedisConnection
  /**
   * how often all documents are compared, ms; default 1.5 s. Bounds how long a change by somebody who neither counts nor
   * announces it goes unseen; our own writers are seen at once.
   */
  readonly checkEveryMs?: number
  /**
   * takes policies as an original manager writes them, without a generation: nothing then proves that they are complete.
   * Default no: without the counter of our writers every question is refused
   */
  readonly takesUnsealed?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

const FIELDS = ['data', 'priority', 'effect', 'enabled', 'hash', 'compiled_at', 'status'] as const

/**
 * Policies in a shared Redis, in the documented layout: read by every API, written by the leading manager.
 *
 * Each `current` asks for the counter of our writers; all documents are compared besides where an announcement says that
 * somebody wrote, and at least every `checkEveryMs`.
 */
export class RedisPolicies implements PolicySource, PolicyWriter, AsyncDisposable {
  readonly #set: ReplicatedSet<StoredPolicy>
  readonly #clock: Clock
  readonly #decisions: OriginalDecisions
  #generation: { readonly of: Loaded<StoredPolicy>['documents']; readonly generation: PolicyGeneration } | undefined

  private constructor(set: ReplicatedSet<StoredPolicy>, clock: Clock, logger: Logger) {
    this.#set = set
    this.#clock = clock
    this.#decisions = new OriginalDecisions({ redis: () => set.connected(), clock, logger })
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: then every question is refused. */
  static async open(options: RedisPoliciesOptions): Promise<RedisPolicies> {
    const { connection, checkEveryMs = 1_500, clock = systemClock, logger = silentLogger } = options
    const set = await ReplicatedSet.open<StoredPolicy>({
      ...{ connection, checkEveryMs, clock, logger },
      layout: LAYOUT,
      // An original that removes its last policy leaves what a Redis that lost its memory has.
      unsealed: options.takesUnsealed ? 'taken-if-any' : 'refused',
      // One that is listed and not there counts as one that cannot be read.
      read: (hash, text = '') => readStoredPolicy(keyOfHash(hash), text),
    })
    return new RedisPolicies(set, clock, logger)
  }

  async current(signal?: AbortSignal): Promise<PolicyGeneration> {
    const loaded = await (signal ? orAborted(this.#set.current(), signal) : this.#set.current()).catch(
      (error: unknown) => {
        throw error instanceof StoreUnavailableError
          ? new PoliciesUnavailableError(error.reason, { cause: error })
          : error
      },
    )
    return this.#generationOf(loaded)
  }

  latest(maxAgeMs: number): PolicyGeneration {
    const { loaded, ageMs } = this.#set
    if (!loaded || !(ageMs <= maxAgeMs))
      throw new PoliciesUnavailableError(this.#set.unavailable()?.reason ?? `the last look is ${ageMs} ms old`)
    return this.#generationOf(loaded)
  }

  onChange(listener: () => void): () => void {
    return this.#set.onChange(listener)
  }

  onLost(listener: () => void): () => void {
    return this.#set.onLost(listener)
  }

  put(document: PolicyDocument, status: Status): Promise<void> {
    const key = keyOf(document)
    const fields = fieldsOf(document)
    return this.#write(key, { text: fields.data ?? '' }, (held) => {
      const isChanged = Object.entries(fields).some(([field, value]) => held.get(field) !== value)
      const commands = this.#statusCommands(key, held, mergedStatus({}, status))
      if (!isChanged) return commands
      const data: Command = ['HSET', hashKey(key), ...Object.entries(fields).flat()]
      return [...commands, data, ...this.#move(key, held, entriesOf(document), 'compiled')]
    })
  }

  remove(key: string): Promise<void> {
    return this.#write(key, 'removed', (held, isListed) =>
      isListed || held.size > 0 ? [['DEL', hashKey(key)], ...this.#move(key, held, [], 'deleted')] : [],
    )
  }

  putStatus(key: string, status: Status): Promise<void> {
    return this.#write(key, 'kept', (held) =>
      held.has('data') ? this.#statusCommands(key, held, mergedStatus(readStatus(held.get('status')), status)) : [],
    )
  }

  async resync(policies: readonly Policy[]): Promise<readonly string[]> {
    const wanted = contentsOf(policies)
    return this.#decisions.around((policiesMove) =>
      this.#set.resync({
        keys: GLOBAL_ENTRIES.map(({ index }) => index),
        patterns: ['policy:*'],
        wanted: () => wanted,
        finish: (moved, stored) => {
          const { announcements, mended } = mendings(policies, { wanted, stored, moved }, this.#clock.now())
          if (moved.size > 0) policiesMove()
          return { commands: announcements, value: mended }
        },
      }),
    )
  }

  async stored(key: string): Promise<PolicyDocument | undefined> {
    const redis = await this.#set.connected()
    const bytes = await redis.hgetBuffer(hashKey(key), 'data').catch((error: unknown) => {
      const failure = redisUnavailable(error)
      if (failure.reason.includes('WRONGTYPE')) return null
      throw failure
    })
    if (!bytes || !isUtf8(bytes)) return undefined
    const { document, faults } = readStoredPolicy(key, bytes.toString('utf8'))
    return faults.length === 0 ? document : undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#set[Symbol.asyncDispose](), this.#decisions[Symbol.asyncDispose]()])
  }

  #generationOf({ digest, documents }: Loaded<StoredPolicy>): PolicyGeneration {
    if (this.#generation?.of !== documents) {
      const policies = [...documents.values()].map(({ value }) => value).sort((a, b) => (a.key < b.key ? -1 : 1))
      this.#generation = { of: documents, generation: { generation: digest, policies } }
    }
    return this.#generation.generation
  }

  #write(
    key: string,
    change: { readonly text: string } | 'kept' | 'removed',
    decide: (held: Fields, isListed: boolean) => readonly Command[],
  ): Promise<void> {
    return this.#decisions.around((policiesMove) =>
      this.#set.write({
        name: hashKey(key),
        change,
        reads: [['HMGET', hashKey(key), ...FIELDS]],
        decide: ([answer], isListed) => {
          const values = answer as readonly (string | null)[]
          const held = new Map(FIELDS.flatMap((field, i) => (values[i] == null ? [] : [[field, values[i]]])))
          const commands = decide(held, isListed)
          // What is announced is what decisions go by.
          if (commands.some(([name]) => name === 'PUBLISH')) policiesMove()
          return commands
        },
      }),
    )
  }

  #statusCommands(key: string, held: Fields, after: Status): readonly Command[] {
    const text = documentText(after)
    const stored = held.get('status')
    if (stored === text) return []
    const transition = transitionOf(readStatus(stored), after)
    return [['HSET', hashKey(key), 'status', text], ...(transition ? this.#announce(transition, key) : [])]
  }

  #move(key: string, held: Fields, entries: readonly Entry[], action: 'compiled' | 'deleted'): readonly Command[] {
    const hash = hashKey(key)
    const wanted = new Set(entries.map(({ index }) => index))
    const data = held.get('data')
    const before = data === undefined ? GLOBAL_ENTRIES : entriesOf(readStoredPolicy(key, data).document)
    return [
      ...before.filter(({ index }) => !wanted.has(index)).map((entry) => withdraw(entry, hash)),
      ...entries.map((entry) => enter(entry, hash)),
      ...this.#announce(action, key),
    ]
  }

  #announce(action: Action, key: string): readonly Command[] {
    return announce(action, key, this.#clock.now())
  }
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
